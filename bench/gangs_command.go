// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kumiki-scheduler/kumiki/bench/gangs"
	"github.com/kumiki-scheduler/kumiki/bench/ops"
	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
	"github.com/kumiki-scheduler/kumiki/bench/usage"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// gangOptions select what to compare.
type gangOptions struct {
	testbed.Options
	live      bool
	scenarios []string // names; empty for all
	until     time.Duration
}

func gangsCommand() *cobra.Command {
	var o gangOptions
	cmd := &cobra.Command{
		Use:   "gangs",
		Short: "Compare ways to schedule gangs on small workloads",
		Long: `Compare ways to schedule gangs, on small workloads that each put some of them at a disadvantage.
docs/gangs-compared.md explains the result.

Without flags, simulate each workload with each way in virtual time, which takes a second. With --live, run the same
workloads in real time on a fresh local cluster, with native pod groups, for each of the schedulers. That takes some
minutes for each, and the machine should be idle otherwise.`,
		Example: `  kumiki bench gangs
  kumiki bench gangs --live --scheduler kube-scheduler,kumiki`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Progress = cmd.ErrOrStderr()
			todo, err := o.chosen()
			if err != nil {
				return err
			}
			if o.live {
				return o.playAll(cmd.Context(), cmd.OutOrStdout(), todo)
			}
			var results []gangs.Result
			for _, s := range todo {
				for _, style := range gangs.Styles() {
					results = append(results, gangs.Simulate(s, style))
				}
			}
			gangs.Table(cmd.OutOrStdout(), results)
			return nil
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&o.live, "live", false, "run on a local cluster, in real time")
	fs.StringSliceVar(&o.scenarios, "scenario", nil, "run only the scenarios of these `names`")
	usage.Schedulers(fs, &o.Schedulers, []string{report.Upstream, report.Kumiki},
		"with --live: measure these schedulers, in this order")
	fs.DurationVar(&o.until, "until", 0, "with --live: end a workload after at most this time")
	fs.StringVar(&o.KumikiBinary, "kumiki", "", "path of the kumiki `program` (default: this program)")
	fs.StringVar(&o.UpstreamBinary, "kube-scheduler", "",
		"path of the kube-scheduler `program` (default: kube-scheduler in the directory of this program)")
	o.QPS, o.Burst, o.Rounds, o.Nodes, o.Pods, o.Timeout = testbed.DefaultQPS, testbed.DefaultBurst, 1, 1, 1, time.Hour
	return cmd
}

// chosen returns the selected scenarios.
func (o *gangOptions) chosen() ([]gangs.Scenario, error) {
	var todo []gangs.Scenario
	var names []string
	for _, s := range gangs.Scenarios() {
		names = append(names, s.Name)
		if len(o.scenarios) == 0 || slices.Contains(o.scenarios, s.Name) {
			if o.until > 0 {
				s.Until = min(s.Until, o.until)
			}
			todo = append(todo, s)
		}
	}
	for _, name := range o.scenarios {
		if !slices.Contains(names, name) {
			return nil, usage.Errorf("scenario %q is unknown; there are %q", name, names)
		}
	}
	return todo, nil
}

// nativeGangs are the feature gates of upstream's gang scheduling.
var nativeGangs = map[string]bool{"GenericWorkload": true}

// playAll plays the scenarios for each scheduler, each on a separate cluster.
func (o *gangOptions) playAll(ctx context.Context, to io.Writer, todo []gangs.Scenario) error {
	o.Gates = nativeGangs
	if err := o.Complete(); err != nil {
		return err
	}
	var results []gangs.Result
	for _, name := range o.Schedulers {
		got, err := o.playOn(ctx, name, todo)
		results = append(results, got...)
		if err != nil {
			gangs.Table(to, results)
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	slices.SortStableFunc(results, func(a, b gangs.Result) int {
		return indexOf(todo, a.Scenario) - indexOf(todo, b.Scenario)
	})
	gangs.Table(to, results)
	return nil
}

func indexOf(todo []gangs.Scenario, name string) int {
	return slices.IndexFunc(todo, func(s gangs.Scenario) bool { return s.Name == name })
}

func (o *gangOptions) playOn(ctx context.Context, name string,
	todo []gangs.Scenario) (results []gangs.Result, err error) {
	c, err := testcluster.Launch(ctx, testcluster.Options{Nodes: -1, PodStages: "none", NoKubeletAdmission: true,
		NoHeartbeats: true, Args: ops.ClusterArgs(),
		FeatureGates: testbed.GateList(o.Gates), RuntimeConfig: "api/all=true"})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := errors.Join(c.Kill(testcluster.Controllers), c.Kill(testcluster.Nodes)); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "kumiki-bench-gangs")
	if err != nil {
		return nil, fmt.Errorf("directory for the scheduler: %w", err)
	}
	defer os.RemoveAll(dir)
	s, err := testbed.Start(ctx, o.Options, name, c.SchedulerKubeconfig, dir)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	if err := errors.Join(s.Connect(c.Kubeconfig), s.WaitReady(ctx)); err != nil {
		return nil, err
	}
	config, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", c.Kubeconfig, err)
	}
	config.QPS, config.Burst = o.QPS, o.Burst
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("client of %s: %w", c.Kubeconfig, err)
	}
	for i, scenario := range todo {
		fmt.Fprintf(o.Progress, "%s: %s, %s at most\n", name, scenario.Name, scenario.Until)
		r, err := gangs.Play(ctx, client, scenario, name, fmt.Sprintf("gangs-%d", i))
		if err != nil {
			return results, fmt.Errorf("%s: %w", scenario.Name, err)
		}
		results = append(results, r)
	}
	return results, nil
}
