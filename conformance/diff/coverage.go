// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/conformance/outcome"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// The verdicts of a plugin on one pod, as coverage counts them. Several can hold for
// one pod.
const (
	gates       = "gates"         // PreEnqueue keeps the pod
	rejectsAll  = "rejects pod"   // PreFilter rejects the pod
	rejects     = "unschedulable" // Filter rejects some node
	rejectsHard = "unresolvable"  // the same, for good
	fails       = "fails"         // an error in PreFilter or Filter
	passes      = "passes"        // some node is feasible
	differ      = "scores differ"
	equal       = "scores equal"
	skips       = "skips score"
	scoreFails  = "score fails"
)

// Enough is how many hits of each cell a run of ManyCases wants.
const (
	Enough    = 200
	ManyCases = 200_000
)

// cell is one plugin, one input that it reads, one verdict.
type cell struct{ plugin, field, verdict string }

func (c cell) String() string { return c.plugin + " / " + c.field + " / " + c.verdict }

// Coverage counts what the asked cases exercised.
type Coverage struct {
	hits map[cell]int // cell -> pods
	// uses: plugin and field -> pods that have it, whatever came of it.
	uses map[cell]int
	// excluded: cell under another name, such as the framework's own verdicts -> pods.
	general map[string]int
}

// NewCoverage returns empty tables.
func NewCoverage() *Coverage {
	return &Coverage{hits: map[cell]int{}, uses: map[cell]int{}, general: map[string]int{}}
}

// view is what the predicates of fields look at: the case, and the objects as they are
// when it is asked.
type view struct {
	s       *scenario.Scenario
	pod     *v1.Pod
	objects map[scenario.ObjectRef]scenario.APIObject // object -> its version
}

// Add counts one case by upstream's answer.
func (c *Coverage) Add(v view, o *outcome.Outcome) {
	verdicts := map[string]map[string]bool{} // plugin -> verdict -> it holds
	hit := func(plugin, verdict string) {
		if verdicts[plugin] == nil {
			verdicts[plugin] = map[string]bool{}
		}
		verdicts[plugin][verdict] = true
	}
	c.filtered(v, o, hit)
	c.scored(v, o, hit)
	for i := range inputs {
		in := &inputs[i]
		if !v.s.Profile.Has(in.plugin) || !in.uses(v) {
			continue
		}
		c.uses[cell{in.plugin, in.name, ""}]++
		for verdict := range verdicts[in.plugin] { // order: counts only
			c.hits[cell{in.plugin, in.name, verdict}]++
		}
	}
}

func (c *Coverage) filtered(v view, o *outcome.Outcome, hit func(plugin, verdict string)) {
	if o.Gate != nil {
		hit(o.Gate.Plugin, gates)
		return
	}
	if o.PreFilter != nil {
		if o.PreFilter.Code == outcome.Failed {
			hit(named(v, o.Message), fails)
		} else if o.PreFilter.Plugin == "" {
			c.general["PreFilter results exclude each other"]++
		}
		hit(o.PreFilter.Plugin, rejectsAll)
	}
	for i := range o.Nodes {
		switch n := &o.Nodes[i]; {
		case n.Code == outcome.Feasible:
		case n.Plugin == "":
			hit("(framework)", rejectsHard)
		case n.Code == outcome.Unschedulable:
			hit(n.Plugin, rejects)
		default:
			hit(n.Plugin, rejectsHard)
		}
	}
	if len(o.Feasible) > 0 {
		for _, p := range v.s.Profile.Plugins {
			hit(p.Name, passes)
		}
	}
	switch {
	case len(o.Feasible) == 1:
		c.general["one node feasible"]++
	case len(o.Best) > 1:
		c.general["best nodes tie"]++
	}
}

func (c *Coverage) scored(v view, o *outcome.Outcome, hit func(plugin, verdict string)) {
	switch {
	case len(o.Feasible) < 2:
		return
	case len(o.Total) == 0:
		hit(named(v, o.Message), scoreFails)
		return
	}
	for i := range o.Scores {
		ps := &o.Scores[i]
		if slices.Min(ps.Weighted) != slices.Max(ps.Weighted) {
			hit(ps.Plugin, differ)
		} else {
			hit(ps.Plugin, equal)
		}
	}
	for _, name := range []string{"TaintToleration", "NodeAffinity", "NodeResourcesFit", "PodTopologySpread", "InterPodAffinity", "NodeResourcesBalancedAllocation", "ImageLocality"} {
		if v.s.Profile.Scores(name) && !slices.Contains(plugins(o), name) {
			hit(name, skips)
		}
	}
}

// named finds the plugin in an error's text.
func named(v view, message string) string {
	for _, p := range v.s.Profile.Plugins {
		if strings.Contains(message, `"`+p.Name+`"`) {
			return p.Name
		}
	}
	return "(unknown)"
}

// wanted lists every cell that the verdicts of a plugin and its inputs span, without
// those that Unreached names.
func wanted() []cell {
	var out []cell
	for i := range inputs {
		for _, verdict := range verdictsOf[inputs[i].plugin] {
			c := cell{inputs[i].plugin, inputs[i].name, verdict}
			if _, cannot := why(c); !cannot {
				out = append(out, c)
			}
		}
	}
	return out
}

// Short lists the wanted cells with fewer hits than least.
func (c *Coverage) Short(least int) []string {
	var out []string
	for _, w := range wanted() {
		if c.hits[w] < least {
			out = append(out, fmt.Sprintf("%s: %d hits", w, c.hits[w]))
		}
	}
	return out
}

// Missed returns the inputs that no pod had, and the verdicts that no plugin gave.
func (c *Coverage) Missed() []string {
	var out []string
	for i := range inputs {
		if in := &inputs[i]; c.uses[cell{in.plugin, in.name, ""}] == 0 {
			out = append(out, in.plugin+" / "+in.name)
		}
	}
	for plugin, verdicts := range verdictsOf { // order: sorted below
		for _, verdict := range verdicts {
			seen := 0
			for i := range inputs {
				seen += c.hits[cell{plugin, inputs[i].name, verdict}]
			}
			if seen == 0 {
				out = append(out, plugin+" / "+verdict)
			}
		}
	}
	slices.Sort(out)
	return out
}

// Print writes the matrix of each plugin; a dash stands for a cell that cannot be
// reached, and its reason follows.
func (c *Coverage) Print(w io.Writer) {
	reached, total := 0, len(wanted())
	for _, cl := range wanted() {
		if c.hits[cl] >= Enough {
			reached++
		}
	}
	fmt.Fprintf(w, "cells of plugin, field and verdict   %6d, %d of them with %d hits or more\n", total, reached, Enough)
	for _, plugin := range coveredPlugins {
		tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintf(tw, "\n%s\tpods\t%s\t\n", plugin, strings.Join(verdictsOf[plugin], "\t"))
		for i := range inputs {
			in := &inputs[i]
			if in.plugin != plugin {
				continue
			}
			fmt.Fprintf(tw, "%s\t%d\t", in.name, c.uses[cell{plugin, in.name, ""}])
			for _, verdict := range verdictsOf[plugin] {
				cl := cell{plugin, in.name, verdict}
				if _, cannot := why(cl); cannot {
					fmt.Fprintf(tw, "-\t")
				} else {
					fmt.Fprintf(tw, "%d\t", c.hits[cl])
				}
			}
			fmt.Fprintln(tw)
		}
		tw.Flush()
	}
	fmt.Fprintf(w, "\n%v\n\ncells with the fewest hits:\n", c.general)
	rare := wanted()
	slices.SortStableFunc(rare, func(a, b cell) int { return c.hits[a] - c.hits[b] })
	for _, cl := range rare[:min(len(rare), 120)] {
		fmt.Fprintf(w, "%8d %s\n", c.hits[cl], cl)
	}
	fmt.Fprintf(w, "\ncells that are not counted, and why:\n")
	for _, u := range Unreached {
		fmt.Fprintf(w, "  %s / %s / %s: %s\n", u.Plugin, u.Field, u.Verdict, u.Why)
	}
}
