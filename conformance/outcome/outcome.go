// SPDX-License-Identifier: Apache-2.0

package outcome

import "sort"

// Code is the verdict kind of a filter.
type Code uint8

const (
	// Feasible means that no plugin rejects.
	Feasible Code = iota
	// Unschedulable means that removing pods from the node could help.
	Unschedulable
	// Unresolvable means that removing pods cannot help (upstream's
	// UnschedulableAndUnresolvable).
	Unresolvable
	// Pending means that the pod waits for something outside of the scheduler.
	Pending
	// Failed means an internal error: the cycle ends, the pod goes to backoff.
	Failed
)

func (c Code) String() string {
	switch c {
	case Feasible:
		return "Feasible"
	case Unschedulable:
		return "Unschedulable"
	case Unresolvable:
		return "UnschedulableAndUnresolvable"
	case Pending:
		return "Pending"
	case Failed:
		return "Error"
	}
	return "invalid"
}

// Verdict is what filtering says about one node, or about all of them.
type Verdict struct {
	Code Code
	// Plugin that rejects; empty when feasible, and when the framework itself
	// leaves the node out because of a PreFilter result.
	Plugin string
	// Reasons, sorted.
	Reasons []string
}

// Scores of one plugin over the feasible nodes, in the order of Outcome.Feasible.
type Scores struct {
	Plugin string
	// Raw is what Score returned, before normalising.
	Raw []int64
	// Weighted is the normalised score times the weight.
	Weighted []int64
}

// Outcome is the answer for one pod.
type Outcome struct {
	// Gate is set when a PreEnqueue plugin keeps the pod out of the queue;
	// nothing else is evaluated then.
	Gate *Verdict
	// PreFilter is set when a PreFilter plugin rejects the pod on every node, and,
	// with the code Failed alone, when PreFilter or Filter meets an error.
	PreFilter *Verdict
	// Names of the nodes, sorted. Empty when Gate or PreFilter is set.
	Names []string
	// Nodes holds one verdict per name. Empty when the pod is taken by the node it
	// was nominated to: then no other is looked at.
	Nodes []Verdict
	// Rejectors are the plugins recorded for waking the pod when it fits
	// nowhere, sorted. Empty when a node is feasible.
	Rejectors []string
	// Failures are all texts that a failed cycle can have: which of several nodes with
	// an error comes first is a matter of order. Empty when the cycle did not fail
	// while filtering.
	Failures []string
	// Message is the text of the failure for the pod's condition when it fits
	// nowhere or when the cycle fails.
	Message string
	// Feasible are indexes into Names, ascending.
	Feasible []int
	// Scores per plugin in profile order, without plugins that skip. Empty when
	// fewer than two nodes are feasible: scoring does not run then.
	Scores []Scores
	// Total per feasible node, aligned with Feasible.
	Total []int64
	// Best are indexes into Names with the highest total.
	Best []int
}

// Infeasible reports whether the pod was tried and fits nowhere.
func (o *Outcome) Infeasible() bool { return o.Gate == nil && len(o.Feasible) == 0 }

// RejectingPlugins returns the distinct plugins that reject the pod or one of
// its nodes, sorted.
func (o *Outcome) RejectingPlugins() []string {
	seen := map[string]bool{} // plugin name -> it rejects
	add := func(v *Verdict) {
		if v != nil && v.Plugin != "" {
			seen[v.Plugin] = true
		}
	}
	add(o.Gate)
	add(o.PreFilter)
	for i := range o.Nodes {
		add(&o.Nodes[i])
	}
	out := make([]string, 0, len(seen))
	for name := range seen {
		out = append(out, name)
	}
	sort.Strings(out)
	return out
}

// PickBest fills Best from Feasible and Total. One feasible node is best without
// a score.
func (o *Outcome) PickBest() {
	if len(o.Feasible) == 1 {
		o.Best = []int{o.Feasible[0]}
		return
	}
	var high int64
	for i, t := range o.Total {
		if len(o.Best) > 0 && t < high {
			continue
		}
		if len(o.Best) > 0 && t > high {
			o.Best = o.Best[:0]
		}
		high = t
		o.Best = append(o.Best, o.Feasible[i])
	}
}
