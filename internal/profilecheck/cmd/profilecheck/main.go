// SPDX-License-Identifier: Apache-2.0

// Command profilecheck injects bottlenecks on a local cluster and prints which ones kumiki profile why names.
//
//	profilecheck --cases 'api.*' --seeds 3 --scheduler bin/kube-scheduler
//
// It exits with 1 if another cause than the injected one was named.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
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

func run(ctx context.Context, args []string) (int, error) {
	flags := flag.NewFlagSet("profilecheck", flag.ContinueOnError)
	pattern := flags.String("cases", ".*", "which causes: a regular expression that the whole name must match")
	seeds := flags.Uint64("seeds", 3, "number of seeds, from 1 on")
	seconds := flags.Int("seconds", 5, "duration of a recording")
	kumiki := flags.String("kumiki", "bin/kumiki", "the program that records")
	scheduler := flags.String("scheduler", "bin/kumiki", "the program that is recorded, kumiki or kube-scheduler")
	cluster := flags.String("localcluster", "", "directory of kumiki-localcluster; empty builds it")
	dir := flags.String("dir", "", "directory for logs and profiles; empty: a temporary one, removed at the end")
	if err := flags.Parse(args); err != nil {
		return 2, nil
	}
	re, err := regexp.Compile("^(?:" + *pattern + ")$")
	if err != nil {
		return 2, err
	}
	ours := regexp.MustCompile(`(^|/)kumiki$`).MatchString(*scheduler)
	o := profilecheck.Options{Kumiki: *kumiki, Scheduler: *scheduler, Seconds: *seconds, LocalCluster: *cluster,
		Dir: *dir, Progress: os.Stderr}
	o.Cases = slices.DeleteFunc(profilecheck.Cases(), func(c profilecheck.Case) bool {
		return !re.MatchString(c.Cause.String()) || c.Kumiki && !ours
	})
	for seed := range *seeds {
		o.Seeds = append(o.Seeds, seed+1)
	}
	if o.Dir == "" {
		if o.Dir, err = os.MkdirTemp("", "kumiki-profile-check-"); err != nil {
			return 1, err
		}
		defer os.RemoveAll(o.Dir)
	}
	results, err := profilecheck.Run(ctx, o)
	if werr := profilecheck.WriteMatrix(os.Stdout, results); werr != nil {
		return 1, werr
	}
	right, wrong := profilecheck.Right(results)
	fmt.Printf("\n%d of %d injected causes are named first, %d times another one is named\n", right, len(results),
		wrong)
	if wrong > 0 || err != nil {
		return 1, err
	}
	return 0, nil
}
