// SPDX-License-Identifier: Apache-2.0

package question

import (
	"cmp"
	"slices"
	"strings"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// feasibleShown is how many nodes that fit a report names.
const feasibleShown = 3

// fitOf returns what the filters say of a pod, and the outcome of the search behind it.
func fitOf(s cluster.Snapshot, pl *place.Placer, noms place.Nominations, p *cluster.Pod) (*record.Fit, place.Outcome) {
	out := pl.Explain(s, p, noms)
	if out.Err != nil {
		return &record.Fit{Nodes: out.Nodes, PreFilterReason: out.Err.Error()}, out
	}
	why := pl.Why(s, out)
	f := &record.Fit{Nodes: out.Nodes, Feasible: out.Feasible}
	if why.PreFilter != "" {
		f.PreFilterReason = why.PreFilter
		f.PreFilter = strings.Join(why.Plugins, ", ")
		return f, out
	}
	f.Reasons = why.Reasons
	slices.SortStableFunc(f.Reasons, func(a, b record.Reason) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Plugin, b.Plugin), cmp.Compare(a.Reason, b.Reason))
	})
	if out.Feasible > 0 {
		for n := cluster.NodeIdx(0); int(n) < s.Rows() && len(f.FeasibleExamples) < feasibleShown; n++ {
			if s.Node(n) != nil && out.Verdict(n) == plugin.Fits {
				f.FeasibleExamples = append(f.FeasibleExamples, s.NodeName(n))
			}
		}
		return f, out
	}
	f.Remedies = remedies(s, pl, p, out)
	return f, out
}

// remedies finds, for each plugin that rejects, the node on which the least would have to change: the fewest other
// plugins that reject it, then the smallest lack.
func remedies(s cluster.Snapshot, pl *place.Placer, p *cluster.Pod, out place.Outcome) []record.Remedy {
	best := map[string]record.Remedy{} // plugin -> its cheapest remedy
	alone := map[string]int{}          // plugin -> nodes that it alone rejects
	for row := range s.Rows() {
		n := cluster.NodeIdx(row)
		node := s.Node(n)
		if node == nil || out.Verdict(n) == plugin.Excluded {
			continue
		}
		against := pl.Against(s, out, n)
		for k, f := range against {
			name := f.Name()
			rem := record.Remedy{Plugin: name, Node: node.Name, Do: "satisfy " + name + " on " + node.Name}
			if adviser, ok := f.(plugin.Adviser); ok {
				adviser.Advise(s.View(n), p, &rem)
			}
			rem.Also = namesBut(against, k)
			if len(rem.Also) == 0 {
				alone[name]++
			}
			if old, known := best[name]; !known || cheaper(rem, old) {
				best[name] = rem
			}
		}
	}
	var list []record.Remedy
	for name, rem := range best { // order: sorted below by a key that no two share
		rem.Nodes = alone[name]
		list = append(list, rem)
	}
	slices.SortFunc(list, func(a, b record.Remedy) int {
		fewest := cmp.Compare(len(a.Also), len(b.Also))
		return cmp.Or(fewest, cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Plugin, b.Plugin))
	})
	return list
}

// namesBut returns the names of all filters but one.
func namesBut(filters []plugin.Filter, but int) []string {
	var names []string
	for k, f := range filters {
		if k != but {
			names = append(names, f.Name())
		}
	}
	return names
}

func cheaper(a, b record.Remedy) bool {
	if len(a.Also) != len(b.Also) {
		return len(a.Also) < len(b.Also)
	}
	return shortShare(a) < shortShare(b)
}

// shortShare is which part of the requested amount a node lacks; 0 for a remedy that is not about an amount.
func shortShare(r record.Remedy) float64 {
	if r.Need == 0 {
		return 0
	}
	return float64(r.Short) / float64(r.Need)
}
