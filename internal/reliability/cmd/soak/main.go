// SPDX-License-Identifier: Apache-2.0

// Command soak runs a scheduler for a long time under load, while nodes change and faults happen, and looks once a
// minute whether what must hold holds.
//
//	soak --duration 30m --rate 200 --seed 7 -o markdown
//
// It exits with 1 when something did not hold.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/kumiki-scheduler/kumiki/internal/reliability"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	os.Exit(run(ctx, os.Args[1:]))
}

// Exit codes: 1 means that an invariant did not hold or that the run did not finish; 2 means a mistake on the command
// line.
const (
	exitWrong = 1
	exitUsage = 2
)

func run(ctx context.Context, args []string) int {
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	name := flags.String("scheduler", reliability.Kumiki, "kumiki or kube-scheduler")
	duration := flags.Duration("duration", 30*time.Minute, "how long")
	rate := flags.Int("rate", 200, "pods per second")
	alive := flags.Int("alive", 2000, "how many bound pods there are before the oldest go")
	nodes := flags.Int("nodes", 100, "nodes of 32 cores")
	seed := flags.Uint64("seed", uint64(time.Now().UnixNano()%1_000_000), "of pods, nodes and faults")
	format := flags.String("o", "markdown", "markdown or json")
	logs := flags.String("logs", "", "directory for the logs of the schedulers; empty: a temporary one, removed at the end")
	bin := flags.String("bin", "bin", "directory of the binaries kumiki and kube-scheduler")
	if err := flags.Parse(args); err != nil {
		return exitUsage
	}
	dir := *logs
	if dir == "" {
		made, err := os.MkdirTemp("", "kumiki-soak-")
		if err != nil {
			fmt.Fprintln(os.Stderr, "soak:", err)
			return exitWrong
		}
		defer os.RemoveAll(made)
		dir = made
	}
	fmt.Fprintf(os.Stderr, "%s for %s at %d pods/s, seed %d\n", *name, *duration, *rate, *seed)
	report, err := reliability.Soak{Program: reliability.Program{Name: *name, Path: *bin + "/" + *name}, Duration: *duration, Rate: *rate,
		Alive: *alive, Nodes: *nodes, Seed: *seed, Dir: dir, Progress: os.Stderr}.Run(ctx)
	if werr := report.Write(os.Stdout, *format); werr != nil {
		fmt.Fprintln(os.Stderr, "soak:", werr)
		return exitUsage
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "soak:", err)
		return exitWrong
	}
	if !report.Held() {
		return exitWrong
	}
	return 0
}
