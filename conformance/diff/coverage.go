// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"text/tabwriter"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/conformance/outcome"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// Coverage counts what the asked cases exercised.
type Coverage struct {
	// verdicts: "plugin\tkind" -> pods for which it happened at least once.
	verdicts map[string]int
	// fields: field name -> [infeasible pods, feasible pods] that use it.
	fields map[string]*[2]int
}

// NewCoverage returns empty tables with every cell that must be hit present, so
// that a missed one shows as 0.
func NewCoverage() *Coverage {
	c := &Coverage{verdicts: map[string]int{}, fields: map[string]*[2]int{}}
	for _, cell := range wantedVerdicts {
		c.verdicts[cell] = 0
	}
	for _, f := range podFields {
		c.fields[f.name] = &[2]int{}
	}
	return c
}

// wantedVerdicts are the verdict cells a long run must hit.
var wantedVerdicts = []string{
	"SchedulingGates\tgates",
	"NodeUnschedulable\tUnschedulableAndUnresolvable",
	"NodeName\tUnschedulableAndUnresolvable",
	"TaintToleration\tUnschedulableAndUnresolvable",
	"NodeAffinity\tUnschedulableAndUnresolvable",
	"NodeAffinity\tPreFilter rejects",
	"NodeAffinity\tscoring fails",
	"(framework)\tleft out by PreFilter",
	"NodePorts\tUnschedulable",
	"NodeResourcesFit\tUnschedulable",
	"NodeResourcesFit\tUnschedulableAndUnresolvable",
	"TaintToleration\tscores differ",
	"NodeAffinity\tscores differ",
	"NodeResourcesFit\tscores differ",
	"NodeResourcesBalancedAllocation\tscores differ",
	"ImageLocality\tscores differ",
	"NodeAffinity\tscore skipped",
	"NodeResourcesBalancedAllocation\tscore skipped",
	"(cycle)\tone node feasible",
	"(cycle)\tbest nodes tie",
}

// scorers are the plugins that can score, to notice a skipped one.
var scorers = []string{"TaintToleration", "NodeAffinity", "NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality"}

// Add counts one case by upstream's answer.
func (c *Coverage) Add(s *scenario.Scenario, pod *v1.Pod, o *outcome.Outcome) {
	seen := map[string]bool{} // cell -> counted for this pod
	hit := func(plugin, kind string) {
		cell := plugin + "\t" + kind
		if !seen[cell] {
			seen[cell] = true
			c.verdicts[cell]++
		}
	}
	if o.Gate != nil {
		hit(o.Gate.Plugin, "gates")
	}
	if o.PreFilter != nil {
		hit(o.PreFilter.Plugin, "PreFilter rejects")
	}
	for i := range o.Nodes {
		v := &o.Nodes[i]
		switch {
		case v.Code == outcome.Feasible:
		case v.Plugin == "":
			hit("(framework)", "left out by PreFilter")
		default:
			hit(v.Plugin, v.Code.String())
		}
	}
	c.addScores(s, o, hit)
	use := 0
	if len(o.Feasible) > 0 {
		use = 1
	}
	for _, f := range podFields {
		if f.uses(s, pod) {
			c.fields[f.name][use]++
		}
	}
}

func (c *Coverage) addScores(s *scenario.Scenario, o *outcome.Outcome, hit func(plugin, kind string)) {
	switch {
	case len(o.Feasible) == 1:
		hit("(cycle)", "one node feasible")
		return
	case len(o.Feasible) == 0:
		return
	case len(o.Total) == 0:
		hit(failedScorer(o.Message), "scoring fails")
		return
	case len(o.Best) > 1:
		hit("(cycle)", "best nodes tie")
	}
	for i := range o.Scores {
		ps := &o.Scores[i]
		if slices.Min(ps.Weighted) != slices.Max(ps.Weighted) {
			hit(ps.Plugin, "scores differ")
		} else {
			hit(ps.Plugin, "scores equal")
		}
	}
	for _, name := range scorers {
		if s.Profile.Scores(name) && !slices.Contains(plugins(o), name) {
			hit(name, "score skipped")
		}
	}
}

// failedScorer finds the plugin in a scoring error's text.
func failedScorer(message string) string {
	for _, name := range scorers {
		if strings.Contains(message, `"`+name+`"`) {
			return name
		}
	}
	return "(unknown)"
}

// Missed returns the wanted cells and fields without a hit.
func (c *Coverage) Missed() []string {
	var out []string
	for _, cell := range wantedVerdicts {
		if c.verdicts[cell] == 0 {
			out = append(out, strings.ReplaceAll(cell, "\t", ": "))
		}
	}
	for _, f := range podFields {
		if n := c.fields[f.name]; n[0]+n[1] == 0 {
			out = append(out, "field "+f.name)
		}
	}
	return out
}

// Print writes both tables.
func (c *Coverage) Print(w io.Writer) {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	cells := make([]string, 0, len(c.verdicts))
	for cell := range c.verdicts {
		cells = append(cells, cell)
	}
	sort.Strings(cells)
	fmt.Fprintln(tw, "plugin\tverdict\tpods\t")
	for _, cell := range cells {
		fmt.Fprintf(tw, "%s\t%d\t\n", cell, c.verdicts[cell])
	}
	fmt.Fprintln(tw, "\t\t\t")
	fmt.Fprintln(tw, "field\tinfeasible\tfeasible\t")
	for _, f := range podFields {
		n := c.fields[f.name]
		fmt.Fprintf(tw, "%s\t%d\t%d\t\n", f.name, n[0], n[1])
	}
	tw.Flush()
}
