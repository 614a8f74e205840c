// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/bench/usage"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/record"
)

// withoutPrefix begins the name of a kumiki that lacks a plugin.
const withoutPrefix = "without "

// Ablatable are the plugins that a profile can do without: those of the default one, but for the one that orders the queue.
func Ablatable() []string {
	var names []string
	for _, e := range plugins.DefaultProfile() {
		if e.Name != basic.PrioritySortName {
			names = append(names, e.Name)
		}
	}
	return names
}

// CheckAblatable refuses names of plugins that no profile has, or none can do without.
func CheckAblatable(names []string) error {
	for _, name := range names {
		if !slices.Contains(Ablatable(), name) {
			return usage.Errorf("plugin %q is unknown; there are %s", name, strings.Join(Ablatable(), ", "))
		}
	}
	return nil
}

// Without is kumiki whose profile lacks a plugin at every point. Its decisions are others, and so are the clusters that it
// makes: the difference to kumiki is what the plugin costs where it has nothing to say, and else also what it changes.
func Without(name string, classBytes int) Contender {
	profile := engine.DefaultProfile(v1.DefaultSchedulerName)
	drop(&profile, name)
	return kumikiWith(withoutPrefix+name, profile, classBytes)
}

func drop(p *engine.Profile, name string) {
	p.Gates = without(p.Gates, name, func(g plugin.Gate) plugin.Plugin { return g })
	p.Filters = without(p.Filters, name, func(f plugin.Filter) plugin.Plugin { return f })
	p.Scorers = slices.Clone(p.Scorers)
	for i := len(p.Scorers) - 1; i >= 0; i-- {
		if p.Scorers[i].Scorer.Name() == name {
			p.Scorers = slices.Delete(p.Scorers, i, i+1)
		}
	}
	p.Wakers = without(p.Wakers, name, func(w plugin.Waker) plugin.Plugin { return w })
	p.Reservers = without(p.Reservers, name, func(r plugin.Reserver) plugin.Plugin { return r })
	p.Remediers = without(p.Remediers, name, func(r plugin.Remedier) plugin.Plugin { return r })
}

func without[T any](list []T, name string, as func(T) plugin.Plugin) []T {
	return slices.DeleteFunc(slices.Clone(list), func(x T) bool { return as(x).Name() == name })
}

// Ablation is what a plugin costs with one family at one size. Differences are those of runs that were made next to each
// other; a negative one is noise, or a plugin that saves the others work.
type Ablation struct {
	Plugin string `json:"plugin"`
	Family string `json:"family"`
	Nodes  int    `json:"nodes"`
	Runs   int    `json:"runs"`
	// Nanoseconds of all CPUs for one pod, with all plugins and without this one; Cost is the difference, PerNode that divided
	// by the nodes.
	With    Spread `json:"nanosecondsWith"`
	Without Spread `json:"nanosecondsWithout"`
	Cost    Spread `json:"costNanoseconds"`
	PerNode Spread `json:"costNanosecondsPerNode"`
	// ShareOfP99 is by how much the 99th percentile of the time of a pod is lower without the plugin, divided by it.
	P99With    Spread `json:"p99NanosecondsWith"`
	P99Without Spread `json:"p99NanosecondsWithout"`
	ShareOfP99 Spread `json:"shareOfP99"`
	// PathsWith and PathsWithout: how nodes were looked at -> share of the pods.
	PathsWith    map[record.Path]float64 `json:"pathsWith,omitempty"`
	PathsWithout map[record.Path]float64 `json:"pathsWithout,omitempty"`
}

func ablation(name string, with, without []Run) Ablation {
	a, b := summary(with), summary(without)
	var cost, perNode, share []float64
	for i := range min(len(with), len(without)) {
		c := with[i].CPUNanoseconds - without[i].CPUNanoseconds
		cost, perNode = append(cost, c), append(perNode, c/float64(a.Nodes))
		share = append(share, (with[i].P99Nanoseconds-without[i].P99Nanoseconds)/with[i].P99Nanoseconds)
	}
	return Ablation{Plugin: name, Family: a.Family, Nodes: a.Nodes, Runs: len(cost), With: a.CPUNanoseconds, Without: b.CPUNanoseconds,
		Cost: spread(cost), PerNode: spread(perNode), P99With: a.P99Nanoseconds, P99Without: b.P99Nanoseconds, ShareOfP99: spread(share),
		PathsWith: a.Paths, PathsWithout: b.Paths}
}

func (r *Report) ablationTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(t, "FAMILY\tNODES\tPLUGIN\tNS/POD\tWITHOUT\tCOST\tMIN..MAX\tPER NODE\tP99\tWITHOUT\tSHARE\tPATHS\tWITHOUT")
	for _, a := range r.Ablations {
		fmt.Fprintf(t, "%s\t%d\t%s\t%.0f\t%.0f\t%.0f\t%.0f..%.0f\t%.3f\t%.0f\t%.0f\t%.0f %%\t%s\t%s\n", a.Family, a.Nodes, a.Plugin,
			a.With.Median, a.Without.Median, a.Cost.Median, a.Cost.Min, a.Cost.Max, a.PerNode.Median,
			a.P99With.Median, a.P99Without.Median, 100*a.ShareOfP99.Median, shares(a.PathsWith), shares(a.PathsWithout))
	}
	return t.Flush()
}
