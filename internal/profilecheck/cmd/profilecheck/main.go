// SPDX-License-Identifier: Apache-2.0

// Command profilecheck injects bottlenecks on a local cluster and prints which ones kumiki profile why names.
//
//	profilecheck --causes 'api.*' --seeds 1,2,3 --schedulers bin/kumiki,bin/kube-scheduler
//	profilecheck --reanalyse DIR --results FILE --reanalysed OTHER
//
// The second form injects nothing: it applies the rules of this program to the profiles that a check with --dir DIR
// --results FILE kept, and writes the results into another file.
//
// Results are kept in a file: after an abort, the same command goes on. It exits with 1 if another cause than the
// injected one was named, or if an injection failed.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/kumiki-scheduler/kumiki/internal/profilecheck"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	code, err := run(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "profilecheck:", err)
	}
	os.Exit(code)
}

// settings are the flags.
type settings struct {
	causes, seeds, schedulers, results, root, ldflags string
	reanalyse, reanalysed                             string
	o                                                 profilecheck.Options
}

func parse(args []string) (*settings, error) {
	s := &settings{}
	flags := flag.NewFlagSet("profilecheck", flag.ContinueOnError)
	flags.StringVar(&s.causes, "causes", "", "which causes: a regular expression that the whole name must match")
	flags.StringVar(&s.seeds, "seeds", "1,2,3", "seeds")
	flags.StringVar(&s.schedulers, "schedulers", "bin/kumiki,bin/kube-scheduler", "programs that are recorded")
	flags.StringVar(&s.results, "results", "out/profile-check.jsonl", "file with results; those in it are not "+
		"measured again")
	flags.StringVar(&s.reanalyse, "reanalyse", "", "apply the rules of this program to the profiles in this "+
		"directory, which --dir of a check kept, and inject nothing")
	flags.StringVar(&s.reanalysed, "reanalysed", "out/profile-check-reanalysed.jsonl", "file for the results of that")
	flags.StringVar(&s.root, "root", ".", "the repository, for building kumiki with causes in it")
	flags.StringVar(&s.ldflags, "ldflags", "", "flags of the linker for that")
	flags.IntVar(&s.o.Seconds, "seconds", 4, "duration of a recording")
	flags.BoolVar(&s.o.Gains, "gains", true, "also remove each cause that was named, and compare the gain")
	flags.StringVar(&s.o.Kumiki, "kumiki", "bin/kumiki", "the program that records")
	flags.StringVar(&s.o.LocalCluster, "localcluster", "", "directory of kumiki-localcluster; empty builds it")
	flags.StringVar(&s.o.Dir, "dir", "", "directory for logs and profiles; empty: a temporary one, removed at the end")
	if err := flags.Parse(args); err != nil {
		return nil, err
	}
	re, err := regexp.Compile("^(?:" + s.causes + ")$")
	if err != nil {
		return nil, fmt.Errorf("--causes: %w", err)
	}
	s.o.Cases = slices.DeleteFunc(profilecheck.Cases(), func(c profilecheck.Case) bool {
		return s.causes != "" && !re.MatchString(c.Name)
	})
	for _, text := range strings.Split(s.seeds, ",") {
		seed, err := strconv.ParseUint(strings.TrimSpace(text), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("--seeds: %w", err)
		}
		s.o.Seeds = append(s.o.Seeds, seed)
	}
	for _, program := range strings.Split(s.schedulers, ",") {
		s.o.Schedulers = append(s.o.Schedulers, profilecheck.Scheduler{Name: filepath.Base(program), Program: program})
	}
	return s, nil
}

func run(ctx context.Context, args []string) (int, error) {
	s, err := parse(args)
	if err != nil {
		return 2, err
	}
	o := &s.o
	o.Progress = os.Stderr
	if s.reanalyse != "" {
		return s.again()
	}
	if o.Dir == "" {
		if o.Dir, err = os.MkdirTemp("", "kumiki-profile-check-"); err != nil {
			return 1, err
		}
		defer os.RemoveAll(o.Dir)
	}
	if o.Dir, err = filepath.Abs(o.Dir); err != nil {
		return 1, err
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return 1, err
	}
	fmt.Fprintln(os.Stderr, "building kumiki with causes in it")
	if o.Injected, err = profilecheck.BuildInjected(ctx, s.root, o.Dir, s.ldflags); err != nil {
		return 1, err
	}
	programs := []string{o.Kumiki}
	for _, scheduler := range o.Schedulers {
		programs = append(programs, scheduler.Program)
	}
	id, err := profilecheck.Programs(programs...)
	if err != nil {
		return 1, err
	}
	if err := os.MkdirAll(filepath.Dir(s.results), 0o755); err != nil {
		return 1, err
	}
	if o.Journal, err = profilecheck.OpenJournal(s.results, id); err != nil {
		return 1, err
	}
	err = profilecheck.Run(ctx, *o)
	code, werr := verdict(o.Journal.Results)
	if err != nil {
		return 1, err
	}
	return code, werr
}

// again applies the rules of this program to kept profiles.
func (s *settings) again() (int, error) {
	self, err := os.Executable()
	if err != nil {
		return 1, err
	}
	rules, err := profilecheck.Programs(self)
	if err != nil {
		return 1, err
	}
	results, err := profilecheck.ReadResults(s.results)
	if err != nil {
		return 1, err
	}
	a := profilecheck.Reanalysis{Dir: s.reanalyse, Results: results, Cases: s.o.Cases, Seeds: s.o.Seeds, Rules: rules,
		Progress: os.Stderr}
	list := a.Run()
	if err := os.MkdirAll(filepath.Dir(s.reanalysed), 0o755); err != nil {
		return 1, err
	}
	if err := profilecheck.WriteResults(s.reanalysed, list); err != nil {
		return 1, err
	}
	return verdict(list)
}

// verdict prints the matrix, and returns 1 if another cause than the injected one was named, or if an injection failed.
func verdict(list []profilecheck.Result) (int, error) {
	if err := profilecheck.WriteMatrix(os.Stdout, list); err != nil {
		return 1, err
	}
	if sum := profilecheck.Summarize(list); sum.Wrong > 0 || sum.Failed > 0 {
		return 1, nil
	}
	return 0, nil
}
