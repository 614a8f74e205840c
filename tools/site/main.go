// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
)

func main() {
	if err := run(os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
}

// run is the whole program; what it wrote is reported to progress.
func run(args []string, progress io.Writer) error {
	flags := flag.NewFlagSet("site", flag.ContinueOnError)
	flags.SetOutput(progress)
	root := flags.String("root", ".", "directory of the repository")
	out := flags.String("out", "out/site", "directory to write to; it is emptied first")
	if err := flags.Parse(args); err != nil {
		return err
	}
	files, err := build(os.DirFS(*root))
	if err != nil {
		return err
	}
	if broken := check(files); len(broken) > 0 {
		for _, b := range broken {
			fmt.Fprintln(progress, b)
		}
		return fmt.Errorf("%d links are broken", len(broken))
	}
	if err := os.RemoveAll(*out); err != nil {
		return err
	}
	for _, name := range sortedKeys(files) {
		file := filepath.Join(*out, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, files[name], 0o644); err != nil {
			return err
		}
	}
	fmt.Fprintf(progress, "%d files; open %s\n", len(files), filepath.Join(*out, "index.html"))
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// relative returns the link from one page of the site to another path of it.
func relative(from, to string) string {
	rel, err := filepath.Rel(path.Dir("/"+from), "/"+to)
	if err != nil {
		panic(err) // both are absolute
	}
	return filepath.ToSlash(rel)
}
