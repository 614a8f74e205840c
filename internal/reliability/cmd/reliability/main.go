// SPDX-License-Identifier: Apache-2.0

// Command reliability puts bad inputs and faults to kumiki and to kube-scheduler and prints what held and what broke.
//
//	reliability --cases 'B.*' --scheduler kumiki,kube-scheduler --runs 3 -o markdown
//
// It exits with 1 when kumiki broke a case, or a case could not be put to it.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"github.com/kumiki-scheduler/kumiki/internal/reliability"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	code, err := run(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "reliability:", err)
	}
	os.Exit(code)
}

// Exit codes: 1 means that kumiki failed a case or that the run did not finish; 2 means a mistake on the command
// line.
const (
	exitBroke = 1
	exitUsage = 2
)

func run(ctx context.Context, args []string) (int, error) {
	flags := flag.NewFlagSet("reliability", flag.ContinueOnError)
	cases := flags.String("cases", ".*", "which cases: a regular expression that the whole of an ID must match")
	names := flags.String("scheduler", "kumiki,kube-scheduler", "which schedulers, with commas between")
	runs := flags.Int("runs", 1, "how often each case is run")
	format := flags.String("o", "table", "table, json or markdown")
	from := flags.String("from", "", "print the results in this file, written with -o json, and run nothing")
	list := flags.Bool("list", false, "only list the cases")
	logs := flags.String("logs", "", "directory for the logs of the schedulers; empty: a temporary one, removed at the end")
	bin := flags.String("bin", "bin", "directory of the binaries kumiki and kube-scheduler")
	if err := flags.Parse(args); err != nil {
		return exitUsage, nil
	}
	if *from != "" {
		return show(*from, *format)
	}
	chosen, err := choose(*cases)
	if err != nil {
		return exitUsage, err
	}
	if *list {
		for _, c := range chosen {
			fmt.Printf("%-5s %s\n", c.ID, c.What)
		}
		return 0, nil
	}
	programs, err := find(*bin, strings.Split(*names, ","))
	if err != nil {
		return exitUsage, err
	}
	dir := *logs
	if dir == "" {
		if dir, err = os.MkdirTemp("", "kumiki-reliability-"); err != nil {
			return exitBroke, err
		}
		defer os.RemoveAll(dir)
	}
	results, err := reliability.Run(ctx, reliability.Options{Cases: chosen, Programs: programs, Runs: *runs, Dir: dir, Progress: os.Stderr})
	if werr := reliability.Write(os.Stdout, *format, results); werr != nil {
		return exitUsage, werr
	}
	if err != nil {
		return exitBroke, err
	}
	return verdict(results), nil
}

func show(file, format string) (int, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return exitUsage, err
	}
	var results []reliability.Result
	if err := json.Unmarshal(text, &results); err != nil {
		return exitUsage, fmt.Errorf("reading %s: %w", file, err)
	}
	if err := reliability.Write(os.Stdout, format, results); err != nil {
		return exitUsage, err
	}
	return verdict(results), nil
}

func verdict(results []reliability.Result) int {
	for _, r := range results {
		if r.Scheduler == reliability.Kumiki && (r.Outcome == reliability.Broke || r.Failed) {
			return exitBroke
		}
	}
	return 0
}

func choose(pattern string) ([]reliability.Case, error) {
	re, err := regexp.Compile("^(?:" + pattern + ")$")
	if err != nil {
		return nil, err
	}
	chosen := slices.DeleteFunc(reliability.Cases(), func(c reliability.Case) bool { return !re.MatchString(c.ID) })
	if len(chosen) == 0 {
		return nil, fmt.Errorf("no case matches %q", pattern)
	}
	return chosen, nil
}

func find(bin string, names []string) ([]reliability.Program, error) {
	var out []reliability.Program
	for _, name := range names {
		if name != reliability.Kumiki && name != reliability.Upstream {
			return nil, fmt.Errorf("scheduler %q is unknown; there are %s and %s", name, reliability.Kumiki, reliability.Upstream)
		}
		p := reliability.Program{Name: name, Path: bin + "/" + name}
		if _, err := os.Stat(p.Path); err != nil {
			return nil, fmt.Errorf("%w; make reliability builds it", err)
		}
		out = append(out, p)
	}
	return out, nil
}
