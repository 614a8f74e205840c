// SPDX-License-Identifier: Apache-2.0

package basic

import (
	"fmt"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Advise says that the pod insists on one node.
func (NodeName) Advise(_ *cluster.NodeView, p *cluster.Pod, r *record.Remedy) {
	r.Do = fmt.Sprintf("the pod insists on node %q", p.Spec.NodeName)
}

// NodeName keeps a pod that insists on a node off all others (upstream: plugins/nodename). Through the API no pending
// pod insists: a pod with spec.nodeName is bound. See convert.Intake.PendingPod.
type NodeName struct{}

// NodeNameName is its name in configurations.
const NodeNameName = "NodeName"

// Name is NodeNameName.
func (NodeName) Name() string { return NodeNameName }

// Reads declares the name of the node.
func (NodeName) Reads() plugin.Reads { return plugin.ReadsNode }

// PrepareFilter restricts a pod that insists on a node to that node. Other pods are not filtered.
func (NodeName) PrepareFilter(_ cluster.Snapshot, p *cluster.Pod) plugin.FilterPlan {
	if p.Spec.NodeName == "" {
		return plugin.FilterPlan{}
	}
	return plugin.FilterPlan{
		Nodes:  map[string]struct{}{p.Spec.NodeName: {}},
		Filter: nameFilter{p.Spec.NodeName},
	}
}

type nameFilter struct{ node string }

const otherNode plugin.Code = 1

func (f nameFilter) Plain(_ cluster.Snapshot, v *cluster.NodeView) plugin.Code {
	if v.Node.Name != f.node {
		return otherNode | plugin.Unresolvable
	}
	return plugin.Fit
}

func (f nameFilter) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, tag plugin.Tag, out []plugin.Verdict) {
	row, ok := s.Find(f.node)
	if !ok {
		row = cluster.NoNode
	}
	for i, v := range out[lo:hi] {
		if n := lo + cluster.NodeIdx(i); v == plugin.Fits && n != row {
			out[n] = tag.With(otherNode | plugin.Unresolvable)
		}
	}
}

func (nameFilter) Reasons(plugin.Code) []string {
	return []string{"node(s) didn't match the requested node name"}
}

// Wakes on every new node.
func (NodeName) Wakes() []plugin.Wake {
	return []plugin.Wake{{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}}}
}
