// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/bench/core"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// Client-side limits that do not bind, as scheduler_perf sets them.
const (
	defaultQPS   = 5000
	defaultBurst = 5000
)

// Options say what to measure.
type Options struct {
	Nodes, Pods, Rounds int
	// Schedulers are measured in this order in each round.
	Schedulers []string
	// QPS and Burst limit each client of each scheduler.
	QPS   float32
	Burst int
	// Timeout ends a run that does not end.
	Timeout time.Duration
	// KumikiBinary and UpstreamBinary are the programs; empty means this one, and the one beside it.
	KumikiBinary, UpstreamBinary string
	// ProfileDir, when set, gets a CPU profile of each scheduler, of ProfileSeconds from the first create on.
	ProfileDir     string
	ProfileSeconds int
	// Progress gets lines for people.
	Progress io.Writer

	// What a workload wants of its scheduler: the text of a configuration, empty for the default, feature gate -> on, and the
	// file that the null binder plays.
	config string
	gates  map[string]bool
	play   string

	// launch starts a cluster; nil is testcluster.Launch.
	launch func(context.Context, testcluster.Options) (*testcluster.Cluster, error)
}

// NewCommand is `kumiki bench`.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure schedulers against each other on this machine",
	}
	runsWorkloads(cmd)
	cmd.AddCommand(basicCommand(), tableCommand(), restartCommand(), compareCommand(), nullCommand(), core.NewCommand())
	return cmd
}

func basicCommand() *cobra.Command {
	o := Options{ProfileSeconds: 15}
	var format string
	cmd := &cobra.Command{
		Use:   "basic",
		Short: "Plain pods on equal nodes, created at full speed: kumiki, upstream's kube-scheduler and a null binder",
		Long: `Plain pods on equal nodes, created at full speed.

Each scheduler is a process of its own, against a fresh local cluster (API server and etcd, nothing else at work), and
they take turns. null binds pods to nodes in turn and looks at nothing: what the API server can do on this machine. The
time of a pod runs from its create call until a watch shows its node. A run in which a pod stays unbound or a node is
promised more than it has is a failure.`,
		Example: `  kumiki bench basic
  kumiki bench basic --nodes 100 --pods 1000 --runs 1 --schedulers kumiki,null -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(formats, format) {
				return fmt.Errorf("output %q is unknown; there are %s", format, strings.Join(formats, ", "))
			}
			o.Progress = cmd.ErrOrStderr()
			report, err := Basic(cmd.Context(), o)
			if err != nil {
				return err
			}
			return report.write(cmd.OutOrStdout(), format)
		},
	}
	fs := cmd.Flags()
	fs.IntVar(&o.Nodes, "nodes", 5000, "number of nodes")
	fs.IntVar(&o.Pods, "pods", 10000, "number of pods")
	fs.IntVar(&o.Rounds, "runs", 3, "runs of each scheduler")
	fs.StringSliceVar(&o.Schedulers, "schedulers", []string{Kumiki, Upstream, Null}, "what to measure, in this order")
	fs.Float32Var(&o.QPS, "qps", defaultQPS, "calls per second of each client of each scheduler")
	fs.IntVar(&o.Burst, "burst", defaultBurst, "calls at once of each client of each scheduler")
	fs.DurationVar(&o.Timeout, "timeout", 10*time.Minute, "give up a run after this time")
	fs.StringVarP(&format, "output", "o", "table", "table, json or csv (the single runs)")
	fs.StringVar(&o.KumikiBinary, "kumiki", "", "kumiki's `program`; empty: this one")
	fs.StringVar(&o.UpstreamBinary, "kube-scheduler", "", "upstream's `program`; empty: kube-scheduler beside this one")
	fs.StringVar(&o.ProfileDir, "profile-dir", "", "`directory` for CPU and allocation profiles of each scheduler, of its last run; profiling costs some of what it measures")
	fs.IntVar(&o.ProfileSeconds, "profile-seconds", o.ProfileSeconds, "length of the CPU profile")
	return cmd
}

// complete fills in the programs and refuses what cannot be measured.
func (o *Options) complete() error {
	if o.Nodes < 1 || o.Pods < 1 || o.Rounds < 1 {
		return fmt.Errorf("nodes, pods and runs must be at least 1, not %d, %d and %d", o.Nodes, o.Pods, o.Rounds)
	}
	if len(o.Schedulers) == 0 {
		return fmt.Errorf("no scheduler to measure")
	}
	for i, name := range o.Schedulers {
		if _, err := commandLine(*o, name, "", "", 0); err != nil {
			return err
		}
		if slices.Contains(o.Schedulers[:i], name) {
			return fmt.Errorf("scheduler %s is named twice", name)
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
		o.UpstreamBinary = filepath.Join(filepath.Dir(self), Upstream)
	}
	if slices.ContainsFunc(o.Schedulers, func(name string) bool { base, _, _ := strings.Cut(name, "@"); return base == Upstream }) {
		if _, err := os.Stat(o.UpstreamBinary); err != nil {
			return fmt.Errorf("upstream's scheduler is not built: %w; run 'make conformance-upstream', or leave it out with --schedulers", err)
		}
	}
	if o.ProfileDir != "" {
		return os.MkdirAll(o.ProfileDir, 0o755)
	}
	return nil
}

// Basic measures plain pods on equal nodes. The runs take turns, so that a machine that gets slower does so for all.
func Basic(ctx context.Context, o Options) (Report, error) {
	if o.Progress == nil {
		o.Progress = io.Discard
	}
	if o.launch == nil {
		o.launch = testcluster.Launch
	}
	if err := o.complete(); err != nil {
		return Report{}, err
	}
	var runs []Run
	for round := 1; round <= o.Rounds; round++ {
		for _, name := range o.Schedulers {
			run, err := measure(ctx, o, name, round)
			if err != nil {
				return Report{}, err
			}
			if len(run.Oversold) > 0 {
				return Report{}, fmt.Errorf("%s, round %d: %d times more was promised than there is: %s",
					name, round, len(run.Oversold), strings.Join(run.Oversold[:min(len(run.Oversold), 5)], "; "))
			}
			runs = append(runs, run)
		}
	}
	return summarize(o, runs), nil
}
