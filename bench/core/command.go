// SPDX-License-Identifier: Apache-2.0

package core

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/bench/usage"
)

// NewCommand is `kumiki bench core`, with others to measure beside kumiki.
func NewCommand(others ...Contender) *cobra.Command {
	o := Options{}
	var format, families, from string
	var classMiB int
	var schedulers, ablate []string
	all := []string{KumikiName}
	for _, c := range others {
		all = append(all, c.Name)
	}
	cmd := &cobra.Command{
		Use:   "core",
		Short: "Measure scheduling alone, without an API server, on 1,000 to 100,000 nodes",
		Long: `Measure scheduling alone, without an API server.

Each pod goes through the queue, the search for a node, the assumption, the result of the bind and the confirmation by
the watch; for each new pod the oldest is deleted. At the start, there are half as many bound pods as nodes. A run fails
if a pod fits no node. The table has medians over the runs.

With --ablate, kumiki is measured beside kumiki without one plugin, for each named plugin. The table then shows what the
plugin costs per decision and per node, and its share of the 99th percentile of the decision time.`,
		Example: `  kumiki bench core
  kumiki bench core --nodes 1000,5000 --families 'basic|spread' --runs 5
  kumiki bench core --nodes 1000,10000,100000 -o json > core.json
  kumiki bench core --from core.json -o svg > core.svg
  kumiki bench core --nodes 5000 --families spread --ablate PodTopologySpread,InterPodAffinity`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if !slices.Contains(formats, format) {
				return usage.Errorf("output %q is unknown; there are %s", format, strings.Join(formats, ", "))
			}
			var err error
			if o.Families, err = regexp.Compile(families); err != nil {
				return usage.Errorf("families: %w", err)
			}
			if from != "" {
				r, err := read(from, o.Families)
				if err != nil {
					return err
				}
				return r.write(cmd.OutOrStdout(), format)
			}
			if schedulers, o.Contenders, err = chosen(schedulers, ablate, others, classMiB<<20); err != nil {
				return err
			}
			if err := o.check(); err != nil {
				return err
			}
			o.Progress = cmd.ErrOrStderr()
			runs, err := Measure(cmd.Context(), o)
			if err != nil {
				return err
			}
			r := Summarize(schedulers, runs)
			return r.write(cmd.OutOrStdout(), format)
		},
	}
	fs := cmd.Flags()
	fs.IntSliceVar(&o.Nodes, "nodes", []int{1000, 5000, 15_000, 50_000, 100_000}, "numbers of nodes")
	fs.StringVar(&families, "families", "", "measure only the families that match this `regexp`")
	fs.IntVar(&o.Pods, "pods", 5000, "number of measured pods in each run")
	fs.IntVar(&o.Warmup, "warmup", 100, "number of pods before the measured ones; at least one of each template")
	fs.DurationVar(&o.Limit, "limit", 5*time.Second,
		"end a run after this time, with the pods placed until then; 0 means never")
	fs.IntVar(&o.Runs, "runs", 3, "number of runs of each scheduler")
	usage.Schedulers(fs, &schedulers, all,
		"measure these schedulers, in this order; ratios are to the first")
	fs.StringSliceVar(&ablate, "ablate", nil, "measure the cost of these `plugins` instead of --scheduler")
	fs.IntVar(&classMiB, "class-memory", 0,
		"memory limit of kumiki's caches of pod classes, in `MiB`; 0 means the limit of the scheduler")
	fs.StringVarP(&format, "output", "o", "table",
		"output format: table, json, or svg (the cost of a pod by the number of nodes)")
	fs.StringVar(&from, "from", "", "show the report in this JSON `file`, without measuring")
	return cmd
}

// chosen are the names and contenders of the schedulers that are named; with plugins to ablate, kumiki with and
// without each of them.
func chosen(names, ablate []string, others []Contender, classBytes int) ([]string, []Contender, error) {
	kumiki := Kumiki(classBytes)
	if len(ablate) > 0 {
		if err := CheckAblatable(ablate); err != nil {
			return nil, nil, err
		}
		names, contenders := []string{KumikiName}, []Contender{kumiki}
		for _, name := range ablate {
			names = append(names, withoutPrefix+name)
			contenders = append(contenders, Without(name, classBytes))
		}
		return names, contenders, nil
	}
	all := append([]Contender{kumiki}, others...)
	var contenders []Contender
	for _, name := range names {
		i := slices.IndexFunc(all, func(c Contender) bool { return c.Name == name })
		if i < 0 {
			var known []string
			for _, c := range all {
				known = append(known, c.Name)
			}
			return nil, nil, usage.Errorf("scheduler %q is unknown; there are %s", name, strings.Join(known, ", "))
		}
		contenders = append(contenders, all[i])
	}
	return names, contenders, nil
}

// check refuses what cannot be measured.
func (o *Options) check() error {
	if o.Pods < 1 || o.Runs < 1 || o.Warmup < 0 || len(o.Contenders) == 0 {
		return usage.Errorf("pods, runs and schedulers must be at least 1 and warmup at least 0, not %d, %d, %d and %d", o.Pods, o.Runs, len(o.Contenders), o.Warmup)
	}
	for i, c := range o.Contenders {
		if slices.ContainsFunc(o.Contenders[:i], func(d Contender) bool { return d.Name == c.Name }) {
			return usage.Errorf("scheduler %s is named twice", c.Name)
		}
	}
	for _, n := range o.Nodes {
		if n < leastNodes {
			return usage.Errorf("%d nodes are too few, the families need %d", n, leastNodes)
		}
	}
	return nil
}

// leastNodes is the number of nodes from which each family fits.
const leastNodes = 100

// read is a report that was written as JSON, with the families that match.
func read(path string, families *regexp.Regexp) (Report, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Report{}, fmt.Errorf("read a report: %w", err)
	}
	var r Report
	if err := json.Unmarshal(text, &r); err != nil {
		return Report{}, fmt.Errorf("read a report from %s: %w", path, err)
	}
	if len(r.Contenders) == 0 || len(r.Rows) == 0 {
		return Report{}, fmt.Errorf("%s holds no report of bench core", path)
	}
	r.Rows = slices.DeleteFunc(r.Rows, func(row Row) bool { return !families.MatchString(row.Family) })
	r.Runs = slices.DeleteFunc(r.Runs, func(run Run) bool { return !families.MatchString(run.Family) })
	return r, nil
}
