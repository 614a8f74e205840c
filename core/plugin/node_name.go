// SPDX-License-Identifier: Apache-2.0

package plugin

import "github.com/kumiki-scheduler/kumiki/core/cluster"

// NodeName keeps a pod that insists on a node off all others (upstream: plugins/nodename). Through the API no pending
// pod insists: a pod with spec.nodeName is bound. See cluster.Intake.PendingPod.
type NodeName struct{}

// NodeNameName is its name in configurations.
const NodeNameName = "NodeName"

// Name is NodeNameName.
func (NodeName) Name() string { return NodeNameName }

// PrepareFilter has nothing to say about pods that do not insist.
func (NodeName) PrepareFilter(_ cluster.Snapshot, p *cluster.Pod) FilterPlan {
	if p.Spec.NodeName == "" {
		return FilterPlan{}
	}
	return FilterPlan{Filter: nameFilter{p.Spec.NodeName}}
}

type nameFilter struct{ node string }

const otherNode Code = 1

func (f nameFilter) Plain(_ cluster.Snapshot, v *cluster.NodeView) Code {
	if v.Node.Name != f.node {
		return otherNode | Unresolvable
	}
	return Fit
}

func (f nameFilter) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, tag Tag, out []Verdict) {
	row, ok := s.Find(f.node)
	if !ok {
		row = cluster.NoNode
	}
	for i, v := range out[lo:hi] {
		if n := lo + cluster.NodeIdx(i); v == Fits && n != row {
			out[n] = tag.With(otherNode | Unresolvable)
		}
	}
}

func (nameFilter) Reasons(Code) []string {
	return []string{"node(s) didn't match the requested node name"}
}

// Wakes on every new node.
func (NodeName) Wakes() []Wake {
	return []Wake{{Event: Event{Resource: NodeObject, Action: Add}}}
}
