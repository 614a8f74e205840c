// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
	"github.com/kumiki-scheduler/kumiki/bench/usage"
)

// inOne is the default limit of requests of each client: far above what one core sends.
const inOne = 100_000

// NewCommands returns `kumiki bench wire`, and the hidden command of its stand-in.
func NewCommands() []*cobra.Command { return []*cobra.Command{newCommand(), newServerCommand()} }

func newCommand() *cobra.Command {
	var o Options
	var format string
	cmd := &cobra.Command{
		Use:   "wire",
		Short: "Measure a scheduler's process on one core, with an API server that is not the limit",
		Long: `Measure a scheduler's process on one core, with an API server that is not the limit.

A process on one core plays the API server from memory: TLS, HTTP/2, lists and watches in protobuf, binds and events.
The scheduler has another core. Pods are created in the memory of the stand-in, and each has to be bound exactly once,
to a node on which it fits; the exit code is 1 if one is not.

The result is a bound on the scheduler's process: pods per second, and CPU time per pod, of the scheduler and of the
stand-in. It is not the throughput of a cluster, which has etcd, admission and other clients: see 'kumiki bench basic'.
If the limit is the stand-in, the scheduler could do more. The machine must be idle otherwise; Linux only.`,
		Example: `  kumiki bench wire
  kumiki bench wire --pods 50000 --nodes 5000 --scheduler kumiki --runs 1 -o json
  kumiki bench wire --rate 1000 --scheduler kumiki,kube-scheduler`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if format != "table" && format != "json" {
				return usage.Errorf("output %q is unknown; there are table, json", format)
			}
			o.Progress = cmd.ErrOrStderr()
			r, err := Run(cmd.Context(), o)
			if err != nil {
				return err
			}
			return errors.Join(r.write(cmd.OutOrStdout(), format), r.verdict())
		},
	}
	fs := cmd.Flags()
	fs.IntVar(&o.Nodes, "nodes", 1000, "number of nodes")
	fs.IntVar(&o.Pods, "pods", 20000, "number of pods")
	fs.Float64Var(&o.Rate, "rate", 0, "pods created per second; 0 creates all at once")
	fs.IntVar(&o.Rounds, "runs", 3, "number of rounds; each runs each scheduler once")
	usage.Schedulers(fs, &o.Schedulers, []string{report.Kumiki, report.Upstream, report.Null},
		"measure these schedulers, in this order")
	fs.Float32Var(&o.QPS, "qps", inOne, "maximum requests per second of each client of each scheduler")
	fs.IntVar(&o.Burst, "burst", inOne, "maximum burst of requests of each client of each scheduler")
	fs.DurationVar(&o.Timeout, "timeout", 10*time.Minute, "abort a run after this time")
	fs.DurationVar(&o.Patience, "patience", testbed.DefaultPatience, "give up a run when no pod is bound for this time")
	fs.StringVarP(&format, "output", "o", "table", "output format: table or json")
	fs.StringVar(&o.KumikiBinary, "kumiki", "", "path of the kumiki `program` (default: this program)")
	fs.StringVar(&o.UpstreamBinary, "kube-scheduler", "",
		"path of the kube-scheduler `program` (default: kube-scheduler in the directory of this program)")
	fs.StringVar(&o.ProfileDir, "profile-dir", "",
		"write CPU profiles of scheduler and stand-in to this `directory`; they cost CPU themselves")
	fs.IntVar(&o.ProfileSeconds, "profile-seconds", 4, "length of the scheduler's profile")
	return cmd
}
