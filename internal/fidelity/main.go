// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/kumiki-scheduler/kumiki/bench/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := measure(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "fidelity:", err)
		os.Exit(1)
	}
}

// settings are the flags.
type settings struct {
	kumiki, localcluster, dir, page string
	sizes                           []int
	train, test                     uint64
	timeout                         time.Duration
	again                           bool
}

func parse(args []string) (*settings, error) {
	s := &settings{}
	f := flag.NewFlagSet("fidelity", flag.ContinueOnError)
	f.StringVar(&s.kumiki, "kumiki", "bin/kumiki", "the program")
	f.StringVar(&s.localcluster, "localcluster", "", "directory of kumiki-localcluster; empty builds it")
	f.StringVar(&s.dir, "dir", "out/fidelity", "directory of recordings, models and results")
	f.StringVar(&s.page, "page", "", "page that gets the table, between two markers; empty for standard output")
	sizes := f.String("nodes", "1000,5000", "sizes of clusters")
	f.Uint64Var(&s.train, "train", 1, "seed of the runs that the model is fitted to")
	f.Uint64Var(&s.test, "test", 2, "seed of the runs that are predicted")
	f.DurationVar(&s.timeout, "timeout", 10*time.Minute, "limit of time for a run")
	f.BoolVar(&s.again, "again", false, "record and compare again what the directory has")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if s.train == s.test {
		return nil, errors.New("--train and --test: a run is not predicted by itself; give two seeds")
	}
	for _, text := range strings.Split(*sizes, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("--nodes: %q is no size of a cluster", text)
		}
		s.sizes = append(s.sizes, n)
	}
	var err error
	s.dir, err = filepath.Abs(s.dir)
	return s, err
}

// run is a workload with a size and a seed.
type run struct {
	family string
	nodes  int
	seed   uint64
}

// String returns the name of its directory.
func (r run) String() string { return fmt.Sprintf("%s-%d-%d", r.family, r.nodes, r.seed) }

func measure(ctx context.Context, args []string) error {
	s, err := parse(args)
	if err != nil {
		return err
	}
	var failed error
	for _, nodes := range s.sizes {
		if err := s.size(ctx, nodes); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%d nodes: %w", nodes, err))
		}
		if ctx.Err() != nil {
			return errors.Join(failed, ctx.Err())
		}
	}
	results, err := readResults(s.dir)
	if err != nil {
		return errors.Join(failed, err)
	}
	return errors.Join(failed, writePage(s.page, results))
}

// size measures all workloads on clusters of a size.
func (s *settings) size(ctx context.Context, nodes int) error {
	var recordings []string
	for _, family := range families {
		name, err := s.recording(ctx, run{family, nodes, s.train})
		if err != nil {
			return err
		}
		recordings = append(recordings, name)
	}
	model := filepath.Join(s.dir, fmt.Sprintf("model-%d-%d.yaml", nodes, s.train))
	if err := os.Remove(model); err != nil && !os.IsNotExist(err) {
		return err
	}
	args := append([]string{"simulate", "fit", "--to", model}, recordings...)
	if text, err := exec.CommandContext(ctx, s.kumiki, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("fitting a model: %w\n%s", err, text)
	}
	for _, family := range families {
		r := run{family, nodes, s.test}
		name, err := s.recording(ctx, r)
		if err == nil {
			err = s.compare(ctx, r, model, name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// recording returns the recording of a run, which is made if it is not there.
func (s *settings) recording(ctx context.Context, r run) (string, error) {
	dir := filepath.Join(s.dir, r.String())
	name := filepath.Join(dir, tapeName)
	if _, err := os.Stat(name); err == nil && !s.again {
		return name, nil
	}
	if err := os.RemoveAll(dir); err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	fmt.Fprintf(os.Stderr, "recording %s\n", r)
	if err := s.recordRun(ctx, r, dir); err != nil {
		return "", fmt.Errorf("recording %s: %w", r, err)
	}
	return name, nil
}

// compare simulates a recorded run under a model, and keeps the result.
func (s *settings) compare(ctx context.Context, r run, model, name string) error {
	fmt.Fprintf(os.Stderr, "simulating %s\n", r)
	cmd := exec.CommandContext(ctx, s.kumiki, "simulate", "check", model, name, "-o", "json")
	var errs strings.Builder
	cmd.Stderr = &errs
	text, err := cmd.Output() // it fails if a figure is further off than allowed, which the page states
	out := result{Family: r.family, Nodes: r.nodes, Train: s.train, Test: s.test}
	if json.Unmarshal(text, &out.Check) != nil || len(out.Check.Rows) == 0 {
		return fmt.Errorf("simulating %s: %w\n%s", r, err, errs.String())
	}
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	out.Date = info.ModTime().UTC().Format(time.DateOnly)
	if out.Machine, err = report.ThisMachine(); err != nil {
		return err
	}
	if text, err = json.MarshalIndent(out, "", "  "); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(s.dir, r.String(), resultName), text, 0o600)
}
