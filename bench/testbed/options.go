// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/usage"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// Client-side limits that do not bind, as scheduler_perf sets them.
const (
	DefaultQPS   = 5000
	DefaultBurst = 5000
)

// Options say what to measure.
type Options struct {
	Nodes, Pods, Rounds int
	// Schedulers are measured in this order in each round.
	Schedulers []string
	// QPS and Burst limit each client of each scheduler.
	QPS   float32
	Burst int
	// Timeout ends a run that does not end, Patience one in which none of the pods that are waited for comes further.
	Timeout, Patience time.Duration
	// KumikiBinary and UpstreamBinary are the programs; empty means this one, and the one beside it.
	KumikiBinary, UpstreamBinary string
	// UpstreamRelease is the release of UpstreamBinary, such as 1.37.1. Complete sets it if kube-scheduler is measured.
	UpstreamRelease string
	// ProfileDir, when set, gets a CPU profile of each scheduler, of ProfileSeconds from the first create on.
	ProfileDir     string
	ProfileSeconds int
	// Bundles is the directory that gets a profile of each trial, for kumiki profile; empty for none.
	Bundles string
	// Progress gets lines for people.
	Progress io.Writer

	// Set overrides one setting of every scheduler; the zero value overrides none.
	Set Setting

	// settings: what comes after @ in the name of a scheduler -> text of a configuration.
	settings map[string]string
	// What a workload wants of its scheduler: the text of a configuration, empty for the default, feature gate -> on,
	// and the file that the null binder plays.
	Config string
	Gates  map[string]bool
	Play   string
	// Args are further flags of kumiki.
	Args []string

	// launch starts a cluster; nil is testcluster.Launch.
	Launch func(context.Context, testcluster.Options) (*testcluster.Cluster, error)
}

// Complete fills in the programs and refuses what cannot be measured.
func (o *Options) Complete() error {
	if err := o.check(); err != nil {
		return err
	}
	if o.Patience == 0 {
		o.Patience = DefaultPatience
	}
	if err := o.readSettings(); err != nil {
		return usage.Wrap(err)
	}
	for i, name := range o.Schedulers {
		line, err := commandLine(*o, name, "", "", 0)
		if err == nil {
			err = startable(name, line)
		}
		if err != nil {
			return usage.Wrap(err)
		}
		if slices.Contains(o.Schedulers[:i], name) {
			return usage.Errorf("scheduler %s is named twice", name)
		}
	}
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if o.KumikiBinary == "" {
		o.KumikiBinary = self
	}
	if o.UpstreamBinary == "" {
		o.UpstreamBinary = filepath.Join(filepath.Dir(self), report.Upstream)
	}
	if slices.ContainsFunc(o.Schedulers, func(name string) bool { base, _, _ := strings.Cut(name, "@"); return base == report.Upstream }) {
		if _, err := os.Stat(o.UpstreamBinary); err != nil {
			return fmt.Errorf("upstream's scheduler is not built: %w; run 'make conformance-upstream', or leave it out with --scheduler", err)
		}
		if o.UpstreamRelease, err = releaseOf(o.UpstreamBinary); err != nil {
			return err
		}
	}
	for _, dir := range []string{o.ProfileDir, o.Bundles} {
		if dir == "" {
			continue
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	return nil
}

// check refuses figures that nothing can be measured with.
func (o *Options) check() error {
	switch {
	case o.Nodes < 1 || o.Pods < 1:
		return usage.Errorf("nodes and pods must be at least 1, not %d and %d", o.Nodes, o.Pods)
	case o.Rounds < 1:
		return usage.Errorf("runs must be at least 1, not %d", o.Rounds)
	case len(o.Schedulers) == 0:
		return usage.Errorf("no scheduler to measure")
	case o.ProfileDir != "" && o.Bundles != "":
		return usage.Errorf("--profile and --profile-dir: a process has one CPU profile at a time, so give one of them")
	case o.Timeout <= 0:
		return usage.Errorf("timeout %s: it must be above 0", o.Timeout)
	case o.Patience < 0:
		return usage.Errorf("patience %s: it must not be below 0", o.Patience)
	case o.QPS <= 0 || o.Burst < 1:
		return usage.Errorf("qps and burst must be above 0, not %g and %d: a scheduler takes other values for its own default", o.QPS, o.Burst)
	}
	return nil
}

// startable refuses the path of a program that is not there, before a cluster is started for it.
func startable(name string, line []string) error {
	c, err := contestantOf(name)
	if err != nil || !strings.ContainsRune(c.base, filepath.Separator) {
		return err
	}
	if _, err := exec.LookPath(line[0]); err != nil {
		return fmt.Errorf("scheduler %q: %w", name, err)
	}
	return nil
}

// DefaultPatience is how long none of the pods that are waited for may come further before a run is given up: longer
// than schedulers leave a pod alone that has failed (podMaxBackoffSeconds, 10 s by default). The pods that are left
// count as infinite.
const DefaultPatience = 30 * time.Second

// releaseOf asks a kube-scheduler for its release, such as 1.37.1.
func releaseOf(binary string) (string, error) {
	out, err := exec.Command(binary, "--version").Output()
	if err != nil {
		return "", fmt.Errorf("ask %s for its version: %w", binary, err)
	}
	release, found := strings.CutPrefix(strings.TrimSpace(string(out)), "Kubernetes v")
	if !found {
		return "", fmt.Errorf("the version of %s is %q, not that of a kube-scheduler", binary, out)
	}
	return release, nil
}
