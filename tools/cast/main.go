// SPDX-License-Identifier: Apache-2.0

// Command cast runs the commands of a script in a shell and records what a reader would see, as an asciinema cast
// (version 2) and as an SVG.
//
//	cast --to docs/img/why-gang docs/img/why-gang.script    # writes .cast and .svg
//
// A line of a script begins with a sign:
//
//	$ COMMAND                runs it, and shows it with its output
//	! COMMAND                runs it, and shows nothing
//	? TEXT :: COMMAND        repeats it until its output contains TEXT, at most for a minute, and shows nothing
//	& TEXT :: COMMAND        starts it, waits until its output contains TEXT, and interrupts it at the end
//	= NAME=VALUE             sets an environment variable; $NAME is replaced
//	# COMMENT
//
// The times of a recording are those of a person who types and reads, and not those of the commands: a recording of the
// same output is the same file.
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	to := flag.String("to", "", "path of the files to write, without their endings")
	title := flag.String("title", "", "title of the recording")
	flag.Parse()
	if err := run(*to, *title, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "cast:", err)
		os.Exit(1)
	}
}

func run(to, title string, args []string) error {
	if to == "" || len(args) != 1 {
		return fmt.Errorf("want --to PATH and one script")
	}
	src, err := os.ReadFile(args[0])
	if err != nil {
		return err
	}
	script, err := parse(string(src))
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	shown, err := play(script, os.Stderr)
	if err != nil {
		return fmt.Errorf("%s: %w", args[0], err)
	}
	r := recording{title: title, steps: shown}
	if err := os.WriteFile(to+".cast", r.cast(), 0o644); err != nil {
		return err
	}
	return os.WriteFile(to+".svg", r.svg(), 0o644)
}
