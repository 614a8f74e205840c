// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

func main() {
	if err := run(os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// run is the whole program. Files that were made go to out, one to a line; what is going on goes to progress.
func run(args []string, out, progress io.Writer) error {
	if len(args) == 0 {
		return errors.New("want build, check or unpack; see the package comment")
	}
	switch args[0] {
	case "build":
		return runBuild(args[1:], out, progress)
	case "check":
		if len(args) < 2 {
			return errors.New("check wants the file of a layout, and what to run it with")
		}
		return check(args[1], args[2:], out, progress)
	case "unpack":
		if len(args) != 3 {
			return errors.New("unpack wants the file of a layout and a directory")
		}
		return unpackTo(args[1], args[2])
	}
	return fmt.Errorf("no command %q; there are build, check and unpack", args[0])
}

func runBuild(args []string, out, progress io.Writer) error {
	var w wanted
	var created int64
	var dir string
	flags := flag.NewFlagSet("build", flag.ContinueOnError)
	flags.SetOutput(progress)
	flags.Func("binary", "`PLATFORM=FILE`, as linux/amd64=bin/kumiki; once for each platform", func(s string) error {
		platform, file, ok := strings.Cut(s, "=")
		if !ok {
			return fmt.Errorf("%q is not PLATFORM=FILE", s)
		}
		w.Binaries = append(w.Binaries, binary{Platform: platform, File: file})
		return nil
	})
	flags.StringVar(&w.Name, "name", "kumiki", "repository of the image; what stands behind its last / names the files")
	flags.StringVar(&w.Version, "version", "development", "version, and tag of the image")
	flags.StringVar(&w.Revision, "revision", "", "commit")
	flags.StringVar(&w.Source, "source", "", "address of the source, for the label org.opencontainers.image.source")
	flags.Int64Var(&created, "created", 0, "Unix time that the image says it was made at; the commit's, so that it is the same again")
	flags.StringVar(&w.Licence, "licence", "", "file with the licence")
	flags.StringVar(&dir, "out", "out/image", "directory to write to")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || len(w.Binaries) == 0 {
		return errors.New("build wants at least one --binary and no arguments")
	}
	w.Created = time.Unix(created, 0).UTC()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	files, err := build(w, dir, progress)
	if err != nil {
		return err
	}
	for _, f := range files {
		fmt.Fprintln(out, filepath.ToSlash(f))
	}
	return nil
}
