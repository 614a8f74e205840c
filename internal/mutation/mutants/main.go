// SPDX-License-Identifier: Apache-2.0

// Command mutants runs the tests of this repository with faults put in, and fails if a fault is not detected.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/kumiki-scheduler/kumiki/internal/mutation"
)

func main() {
	flag.Usage = func() {
		fmt.Fprint(os.Stderr, `Run tests with faults put in. Each fault must make its tests fail.

Usage: go run ./internal/mutation/mutants [flags] [DIRECTORY | DIRECTORY/FAULT]...

Without arguments all faults of the repository are run. Call it in the root of the repository.

`)
		flag.PrintDefaults()
	}
	workers := flag.Int("p", 3, "number of test `processes` at a time; some wait until a test gives up")
	timeout := flag.Duration("timeout", 5*time.Minute, "time for one test process; a test that takes longer has detected its fault")
	search := flag.String("search", "", "instead of the tests that the patches name, run tests that match this `pattern` and print which fail first")
	within := flag.String("in", "", "the `directory` of the package whose tests -search runs; the package of each fault by default")
	checks := flag.Int("checks", 0, "`number` of random cases of each property test that -search runs; 0 is the default of the test")
	least := flag.Int("least", 0, "fail if -search finds a failing test for less than this `percent` of the faults")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	err := run(ctx, *workers, *timeout, *search, *within, *checks, *least, flag.Args())
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, workers int, timeout time.Duration, search, within string, checks, least int, only []string) error {
	all, err := mutation.LoadAll(".")
	if err != nil {
		return err
	}
	faults := slices.DeleteFunc(slices.Clone(all), func(f mutation.Fault) bool { return !chosen(f, only) })
	if len(faults) == 0 {
		return fmt.Errorf("no fault matches %s", strings.Join(only, " "))
	}
	temp, err := os.MkdirTemp("", "kumiki-mutants-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(temp)
	t := table{done: map[string]int{}, missed: map[string]int{}, took: map[string]time.Duration{}, of: len(faults), search: search != ""}
	r := mutation.Runner{Root: ".", Temp: temp, Timeout: timeout, Workers: workers, Checks: checks, Report: t.add}
	fmt.Fprintf(os.Stderr, "compiling the tests with %d faults ...\n", len(faults))
	if search != "" {
		if err := searchIn(ctx, &r, faults, search, within); err != nil {
			return err
		}
		return t.share(least)
	}
	if err := r.Build(ctx, faults); err != nil {
		return err
	}
	fmt.Fprintln(os.Stderr, "running the tests without a fault ...")
	if err := r.Baseline(ctx, faults); err != nil {
		return err
	}
	if err := r.Run(ctx, faults); err != nil {
		return err
	}
	return t.print()
}

// searchIn runs tests of one package, or of the package of each fault.
func searchIn(ctx context.Context, r *mutation.Runner, faults []mutation.Fault, search, within string) error {
	byDir := map[string][]mutation.Fault{} // directory of a test package -> faults to run its tests with
	var dirs []string
	for _, f := range faults {
		dir := f.Dir
		if within != "" {
			dir = within
		}
		if byDir[dir] == nil {
			dirs = append(dirs, dir)
		}
		byDir[dir] = append(byDir[dir], f)
	}
	if err := r.Build(ctx, faults, dirs...); err != nil {
		return err
	}
	for _, dir := range dirs {
		if err := r.Search(ctx, dir, search, byDir[dir]); err != nil {
			return err
		}
	}
	return nil
}

// chosen reports whether a fault is one of those asked for.
func chosen(f mutation.Fault, only []string) bool {
	return len(only) == 0 || slices.ContainsFunc(only, func(o string) bool {
		o = strings.TrimPrefix(strings.TrimSuffix(o, "/"), "./")
		return o == f.Dir || o == f.ID()
	})
}

// table collects results by package.
type table struct {
	done, missed map[string]int // directory of a package -> number of faults
	took         map[string]time.Duration
	dirs         []string
	of, count    int
	search       bool
}

func (t *table) add(r mutation.Result) {
	if t.search {
		if t.count++; len(r.Found) == 0 {
			t.missed[r.Dir]++
		}
		fmt.Printf("%s\t%s\t%s\n", r.ID(), strings.Join(r.Found, " "), r.Took.Round(time.Millisecond))
		return
	}
	t.count++
	if t.done[r.Dir] == 0 {
		t.dirs = append(t.dirs, r.Dir)
	}
	t.done[r.Dir]++
	t.took[r.Dir] += r.Took
	if !r.Detected() {
		t.missed[r.Dir]++
		for _, m := range r.Missed {
			fmt.Printf("NOT DETECTED %s: %s; test %s of %s passes\n", r.ID(), r.Breaks, m.Name, m.Dir)
		}
	}
	if t.count%25 == 0 || t.count == t.of {
		fmt.Fprintf(os.Stderr, "%d of %d faults\n", t.count, t.of)
	}
}

// share prints how many faults a search found a failing test for.
func (t *table) share(least int) error {
	found := t.count
	for _, n := range t.missed { // order: a sum is the same in any
		found -= n
	}
	percent := 100 * found / max(t.count, 1)
	fmt.Fprintf(os.Stderr, "%d of %d faults make a test fail, %d %%\n", found, t.count, percent)
	if percent < least {
		return fmt.Errorf("%d %% of the faults make a test fail, want %d %%", percent, least)
	}
	return nil
}

func (t *table) print() error {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "PACKAGE\tFAULTS\tDETECTED\tTIME")
	slices.Sort(t.dirs)
	missed := 0
	for _, dir := range t.dirs {
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\n", dir, t.done[dir], t.done[dir]-t.missed[dir], t.took[dir].Round(time.Second))
		missed += t.missed[dir]
	}
	fmt.Fprintf(w, "all\t%d\t%d\t\n", t.of, t.of-missed)
	if err := w.Flush(); err != nil {
		return err
	}
	if missed > 0 {
		return fmt.Errorf("%d of %d faults are not detected", missed, t.of)
	}
	return nil
}
