// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/bench/instances"
	"github.com/kumiki-scheduler/kumiki/bench/usage"
)

// instancesOptions are the flags of bench instances.
type instancesOptions struct {
	virtual          bool
	instances        []int
	modes, prefers   []string
	strategies       []string
	decisions        []time.Duration
	config           instances.Config
	output           string
	nativeBelow      time.Duration
	nodes, pods, api int
}

func instancesCommand() *cobra.Command {
	var o instancesOptions
	cmd := &cobra.Command{
		Use:   "instances",
		Short: "Model several schedulers on one cluster",
		Long: `Model several schedulers on one cluster in virtual time: with an arbiter that checks proposals (shared),
with pods and nodes hashed to instances (hash), and with nothing that checks them (uncoordinated).

The model has pods of one size, nodes with slots, and decisions of a constant length. It shows which cases gain from
more instances, and what happens without coordination. It is not a measurement of kumiki: docs/instances.md has
what it leaves out.`,
		Example: `  kumiki bench instances --virtual
  kumiki bench instances --virtual --mode uncoordinated,shared --instances 2 --strategy pack --lag 80ms
  kumiki bench instances --virtual --nodes 100000 --pods 1000000 --instances 1,2,4,8,16,32,64 --decision 5ms`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !o.virtual {
				return usage.Errorf("--virtual is required: there are no several instances on a live cluster yet")
			}
			todo, err := o.configs()
			if err != nil {
				return usage.Wrap(err)
			}
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), todo)
		},
	}
	fs := cmd.Flags()
	fs.BoolVar(&o.virtual, "virtual", false, "run the model in virtual time")
	fs.IntSliceVar(&o.instances, "instances", []int{1, 2, 4, 8}, "`numbers` of instances")
	fs.StringSliceVar(&o.modes, "mode", []string{"shared"}, "shared, hash or uncoordinated")
	fs.StringSliceVar(&o.prefers, "prefer", []string{"own"},
		"nodes that an instance prefers: none, ties (own ones among equal) or own")
	fs.StringSliceVar(&o.strategies, "strategy", []string{"spread"}, "spread or pack")
	fs.DurationSliceVar(&o.decisions, "decision",
		[]time.Duration{10 * time.Microsecond, time.Millisecond, 5 * time.Millisecond},
		"`times` of one decision; from --foreign-from on, it runs foreign code")
	fs.DurationVar(&o.nativeBelow, "foreign-from", time.Millisecond,
		"decisions from this `time` on cannot be made by the arbiter")
	fs.IntVar(&o.nodes, "nodes", 5000, "nodes")
	fs.IntVar(&o.pods, "pods", 50000, "pods, all of which wait at the beginning")
	fs.IntVar(&o.config.Slots, "slots", 0,
		"pods that fit a node (default: as many as give a cluster that is filled to at most 98 %)")
	fs.DurationVar(&o.config.Check, "check", 5*time.Microsecond, "the arbiter's `time` for one proposal")
	fs.DurationVar(&o.config.Hop, "hop", 500*time.Microsecond, "`time` of a message between instances")
	fs.DurationVar(&o.config.Lag, "lag", 2*time.Millisecond, "`time` until other instances see a decision")
	fs.IntVar(&o.api, "api", 0, "binds per second that the API server takes; 0 for no limit")
	fs.Uint64Var(&o.config.Seed, "seed", 1, "seed of the choices between equal nodes")
	fs.StringVarP(&o.output, "output", "o", "table", "table or json")
	return cmd
}

// native is the time of a decision of kumiki's engine (docs/bench), which the arbiter spends on a refused native pod.
const native = 10 * time.Microsecond

// configs returns the runs that the flags ask for. A single instance runs once for each mode's other flags.
func (o *instancesOptions) configs() ([]instances.Config, error) {
	if o.output != "table" && o.output != "json" {
		return nil, fmt.Errorf("-o %s: must be table or json", o.output)
	}
	if o.nodes < 1 || o.pods < 1 {
		return nil, fmt.Errorf("--nodes %d --pods %d: both must be 1 or more", o.nodes, o.pods)
	}
	if o.nativeBelow < 0 {
		return nil, fmt.Errorf("--foreign-from %s: must not be negative", o.nativeBelow)
	}
	for _, list := range []struct {
		flag string
		n    int
	}{{"mode", len(o.modes)}, {"prefer", len(o.prefers)}, {"strategy", len(o.strategies)},
		{"instances", len(o.instances)}, {"decision", len(o.decisions)}} {
		if list.n == 0 {
			return nil, fmt.Errorf("--%s: at least one value is needed", list.flag)
		}
	}
	slots := o.config.Slots
	if slots == 0 {
		slots = (100*o.pods + 98*o.nodes - 1) / (98 * o.nodes)
		if slots > instances.MaxSlots {
			return nil, fmt.Errorf("--pods %d --nodes %d: that is %d pods on a node, at most %d can be modelled: "+
				"set --slots, or other numbers", o.pods, o.nodes, slots, instances.MaxSlots)
		}
	}
	base := o.config
	base.Nodes, base.Pods, base.Slots, base.API, base.Native = o.nodes, o.pods, slots, o.api, native
	todo := []instances.Config{base}
	each := func(n int, set func(c *instances.Config, i int)) {
		var more []instances.Config
		for _, c := range todo {
			for i := range n {
				set(&c, i)
				more = append(more, c)
			}
		}
		todo = more
	}
	each(len(o.modes), func(c *instances.Config, i int) { c.Mode = instances.Mode(o.modes[i]) })
	each(len(o.decisions), func(c *instances.Config, i int) {
		c.Decision, c.Foreign = o.decisions[i], o.decisions[i] >= o.nativeBelow
	})
	each(len(o.strategies), func(c *instances.Config, i int) { c.Strategy = instances.Strategy(o.strategies[i]) })
	each(len(o.prefers), func(c *instances.Config, i int) {
		c.Prefer = instances.Prefer(o.prefers[i])
	})
	each(len(o.instances), func(c *instances.Config, i int) { c.Instances = o.instances[i] })
	var runs []instances.Config
	for _, c := range todo {
		if err := c.Validate(); err != nil {
			return nil, err
		}
		if c = c.Normal(); !slices.Contains(runs, c) {
			runs = append(runs, c)
		}
	}
	return runs, nil
}

func (o *instancesOptions) run(ctx context.Context, to, progress io.Writer, todo []instances.Config) error {
	var results []instances.Result
	for i, c := range todo {
		if err := ctx.Err(); err != nil {
			return err
		}
		fmt.Fprintf(progress, "run %d of %d: %s, %d instances, decisions of %s\n",
			i+1, len(todo), c.Mode, c.Instances, c.Decision)
		results = append(results, instances.Run(c))
	}
	if o.output == "json" {
		encoder := json.NewEncoder(to)
		encoder.SetIndent("", "  ")
		return encoder.Encode(results)
	}
	instances.Table(to, results)
	return nil
}
