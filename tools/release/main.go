// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run is the whole program. Results go to out, progress to progress.
func run(ctx context.Context, args []string, out, progress io.Writer) error {
	commands := map[string]func() error{
		"build":  func() error { return runBuild(ctx, args[1:], out, progress) },
		"sign":   func() error { return runSign(args[1:], out, progress) },
		"verify": func() error { return runVerify(args[1:], out, progress) },
		"push":   func() error { return runPush(ctx, args[1:], out, progress) },
	}
	if len(args) == 0 || commands[args[0]] == nil {
		return errors.New("want build, sign, verify or push; see the package comment")
	}
	return commands[args[0]]()
}

func flagSet(name string, progress io.Writer) *flag.FlagSet {
	f := flag.NewFlagSet(name, flag.ContinueOnError)
	f.SetOutput(progress)
	return f
}

func runBuild(ctx context.Context, args []string, out, progress io.Writer) error {
	r := release{progress: progress}
	var created int64
	var list string
	f := flagSet("build", progress)
	f.StringVar(&r.version, "version", "", "version, as v0.1.0; CHANGELOG.md must have its section")
	f.StringVar(&r.revision, "revision", "", "commit")
	f.Int64Var(&created, "created", 0, "Unix time of the commit")
	f.StringVar(&r.url, "url", "", "address of the directory from which users will download the files; "+
		"without it, the release cannot be pushed")
	f.StringVar(&r.sourceURL, "source-url", "", "address of the source; empty if it is published nowhere")
	f.StringVar(&r.builder, "builder", unidentified, "URI that identifies the machine or the workflow that builds")
	f.StringVar(&r.repository, "repository", "kumiki", "name of the image")
	f.StringVar(&r.source, "source", ".", "root of the source tree")
	f.StringVar(&r.imageTool, "image", "bin/image", "program of tools/image")
	f.StringVar(&list, "platforms", "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64",
		"platforms of the programs; the image contains those of linux")
	f.StringVar(&r.out, "out", "out/release", "directory to write; it must be empty or missing")
	if err := f.Parse(args); err != nil {
		return err
	}
	if f.NArg() > 0 {
		return fmt.Errorf("build takes no arguments, got %q", f.Args())
	}
	r.created = time.Unix(created, 0).UTC()
	r.platforms = strings.Fields(strings.ReplaceAll(list, ",", " "))
	if err := r.build(ctx); err != nil {
		return err
	}
	fmt.Fprintln(out, r.out)
	return nil
}

// directory returns the one argument of a command.
func directory(f *flag.FlagSet, args []string) (string, error) {
	if err := f.Parse(args); err != nil {
		return "", err
	}
	if f.NArg() != 1 {
		return "", fmt.Errorf("%s wants the directory of a release", f.Name())
	}
	return f.Arg(0), nil
}
