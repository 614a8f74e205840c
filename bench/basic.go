// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/bench/ops"
	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/usage"
	"github.com/kumiki-scheduler/kumiki/bench/workload"
	"github.com/kumiki-scheduler/kumiki/bench/workloads"
)

func basicCommand() *cobra.Command {
	var nodes, pods int
	m := &matrix{}
	var format string
	cmd := &cobra.Command{
		Use:   "basic",
		Short: "Measure plain pods on equal nodes, created at full speed",
		Long: `Measure plain pods on equal nodes, created at full speed: the workload "basic" at the size of the flags.

Each scheduler is a process of its own against a fresh local cluster (API server and etcd, without other load), and the
schedulers take turns. null is a no-op binder: it replays the writes of a recorded run of kube-scheduler, or of kumiki
if kube-scheduler is not built, and shows the upper bound on this machine. The latency of a pod is the time from its create
call until a watch shows its node. A run fails if a pod stays unbound or a node is oversold.`,
		Example: `  kumiki bench basic
  kumiki bench basic --nodes 100 --pods 1000 --runs 1 --scheduler kumiki,null -o json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := knownFormat(format); err != nil {
				return err
			}
			p, err := basicPlan(nodes, pods)
			if err != nil {
				return err
			}
			m.plans = []workload.Plan{p}
			m.Progress = cmd.ErrOrStderr()
			m.tell = newTeller(m.Progress)
			return m.report(cmd, format)
		},
	}
	fs := cmd.Flags()
	fs.IntVar(&nodes, "nodes", 5000, "number of nodes")
	fs.IntVar(&pods, "pods", 10000, "number of pods")
	addFlags(fs, &m.Options, 3, []string{report.Kumiki, report.Upstream, report.Null}, 10*time.Minute)
	addFormat(fs, &format)
	return cmd
}

// basicPlan returns the workload basic with the given numbers of nodes and pods.
func basicPlan(nodes, pods int) (workload.Plan, error) {
	if nodes < 1 || pods < 1 {
		return workload.Plan{}, usage.Errorf("nodes and pods must be at least 1, not %d and %d", nodes, pods)
	}
	c, err := workloads.Case("basic")
	if err != nil {
		return workload.Plan{}, err
	}
	w := c.Workloads[0].With("nodes", nodes).With("before", 0).With("pods", pods)
	w.Name = fmt.Sprintf("%dNodes_%dPods", nodes, pods)
	return c.Plan(w)
}

// profile is the hook of operations that collect a profile; nil if none is requested.
func (m *matrix) profile(g *gauge) func(context.Context, string) (func(context.Context) error, error) {
	if m.ProfileDir == "" || g.s == nil {
		return nil
	}
	return func(ctx context.Context, path string) (func(context.Context) error, error) {
		return g.s.StartProfile(ctx, m.ProfileDir, path)
	}
}

// collectsProfile reports whether a plan has operations that collect a profile.
func collectsProfile(p *workload.Plan) bool {
	return slices.ContainsFunc(p.Ops, func(op workload.Op) bool {
		_, is := op.(*workload.StartCollectingProfile)
		return is
	})
}

// collect is the hook for the start of a measurement. If profiles are requested, a profile starts with it, unless the
// plan says when: a process has one CPU profile at a time. The end of the hook waits for the profile; the measurement
// ends before that.
func (m *matrix) collect(
	g *gauge, p *workload.Plan,
) func(context.Context, ops.Collection) (func(context.Context) error, error) {
	if m.ProfileDir == "" || g.s == nil || collectsProfile(p) {
		return g.begin
	}
	return func(ctx context.Context, c ops.Collection) (func(context.Context) error, error) {
		end, err := g.begin(ctx, c)
		if err != nil {
			return nil, err
		}
		profiled := make(chan error, 1)
		go func() { profiled <- g.s.Profile(ctx, m.ProfileDir, m.ProfileSeconds) }()
		return func(ctx context.Context) error { return errors.Join(end(ctx), <-profiled) }, nil
	}
}
