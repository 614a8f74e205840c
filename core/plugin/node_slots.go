// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/resource"
	"github.com/kumiki-scheduler/kumiki/record"
)

// NodeSlots gives each node one slot: a node is free while no pod holds room on it, whoever scheduled that pod and whatever it
// asks for, and resources are not looked at. It is the model of capacity of the founding gang scheduler (answer A4), and
// stands where NodeResourcesFit filters. Upstream has nothing like it.
type NodeSlots struct{}

// NodeSlotsName is its name in records.
const NodeSlotsName = "NodeSlots"

// Name is NodeSlotsName.
func (NodeSlots) Name() string { return NodeSlotsName }

// PrepareFilter looks at every pod.
func (NodeSlots) PrepareFilter(cluster.Snapshot, *cluster.Pod) FilterPlan {
	return FilterPlan{Filter: slotFilter{}}
}

type slotFilter struct{}

const slotTaken Code = 1

// taken judges by how many pods hold room on a node.
func taken(pods int64) Code {
	if pods > 0 {
		return slotTaken
	}
	return Fit
}

func (slotFilter) Plain(_ cluster.Snapshot, v *cluster.NodeView) Code {
	return taken(v.Requested(v1.ResourcePods))
}

func (slotFilter) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, tag Tag, out []Verdict) {
	var space []int64
	held := s.Requested(resource.Pods).Cut(0, hi, &space)
	for n := lo; n < hi; n++ {
		if out[n] != Fits {
			continue
		}
		if code := taken(held[n]); code != Fit {
			out[n] = tag.With(code)
		}
	}
}

func (slotFilter) Reasons(Code) []string { return []string{slotReason} }

const slotReason = "node(s) were taken by another pod"

// Amounts is a slot.
func (slotFilter) Amounts() (needs []Amount, ok bool) {
	return []Amount{{Name: v1.ResourcePods, Amount: 1, Reason: slotReason, Offered: 1}}, true
}

// Demands is a slot.
func (NodeSlots) Demands(cluster.Snapshot, *cluster.Pod) []Demand {
	return []Demand{{Resource: resource.Pods, Amount: 1, Offered: 1}}
}

// Wakes on new nodes and on pods that leave a node.
func (NodeSlots) Wakes() []Wake {
	return []Wake{
		{Event: Event{Resource: Pod, Action: Delete}, Alike: true, Hint: func(_ *cluster.Pod, ch Change) Hint {
			if onNoNode(ch.OldPod) {
				return SkipHint
			}
			return QueueHint
		}},
		{Event: Event{Resource: NodeObject, Action: Add}},
	}
}

// Advise says to free the node.
func (NodeSlots) Advise(_ *cluster.NodeView, _ *cluster.Pod, r *record.Remedy) {
	r.Do = "let the pod on " + r.Node + " end, or add a node: each takes one pod"
}
