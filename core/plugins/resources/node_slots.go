// SPDX-License-Identifier: Apache-2.0

package resources

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/resource"
	"github.com/kumiki-scheduler/kumiki/record"
)

// NodeSlots gives each node one slot: a node is free while no pod is assigned to it, whichever scheduler assigned
// that pod and whatever it asks for, and resources are not looked at. It is the model of capacity of the founding
// gang scheduler (answer A4), and replaces NodeResourcesFit. Upstream has nothing like it.
type NodeSlots struct{}

// NodeSlotsName is its name in records.
const NodeSlotsName = "NodeSlots"

// Name is NodeSlotsName.
func (NodeSlots) Name() string { return NodeSlotsName }

// Reads declares the number of pods of the node.
func (NodeSlots) Reads() plugin.Reads { return plugin.ReadsAmounts | plugin.ReadsPods }

// PrepareFilter looks at every pod.
func (NodeSlots) PrepareFilter(cluster.Snapshot, *cluster.Pod) plugin.FilterPlan {
	return plugin.FilterPlan{Filter: slotFilter{}}
}

type slotFilter struct{}

const slotTaken plugin.Code = 1

// taken judges by how many pods are assigned to a node.
func taken(pods int64) plugin.Code {
	if pods > 0 {
		return slotTaken
	}
	return plugin.Fit
}

func (slotFilter) Plain(_ cluster.Snapshot, v *cluster.NodeView) plugin.Code {
	return taken(v.Requested(v1.ResourcePods))
}

func (slotFilter) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, tag plugin.Tag, out []plugin.Verdict) {
	var space []int64
	held := s.Requested(resource.Pods).Cut(0, hi, &space)
	for n := lo; n < hi; n++ {
		if out[n] != plugin.Fits {
			continue
		}
		if code := taken(held[n]); code != plugin.Fit {
			out[n] = tag.With(code)
		}
	}
}

func (slotFilter) Reasons(plugin.Code) []string { return []string{slotReason} }

const slotReason = "node(s) were taken by another pod"

// Amounts is a slot.
func (slotFilter) Amounts() (needs []plugin.Amount, ok bool) {
	return []plugin.Amount{{Name: v1.ResourcePods, Amount: 1, Reason: slotReason, Offered: 1}}, true
}

// Demands is a slot.
func (NodeSlots) Demands(cluster.Snapshot, *cluster.Pod) []plugin.Demand {
	return []plugin.Demand{{Resource: resource.Pods, Amount: 1, Offered: 1}}
}

// Wakes on new nodes and on pods that leave a node.
func (NodeSlots) Wakes() []plugin.Wake {
	return []plugin.Wake{
		{Event: plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Delete}, Alike: true,
			Hint: func(_ *cluster.Pod, ch plugin.Change) plugin.Hint {
				if plugin.FreesNothing(ch.OldPod) {
					return plugin.SkipHint
				}
				return plugin.QueueHint
			}},
		{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}},
	}
}

// Advise says to free the node.
func (NodeSlots) Advise(_ *cluster.NodeView, _ *cluster.Pod, r *record.Remedy) {
	r.Do = "let the pod on " + r.Node + " end, or add a node: each takes one pod"
}
