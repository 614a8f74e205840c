// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// NodeUnschedulable keeps pods off cordoned nodes, unless they tolerate the taint that a cordon brings (upstream:
// plugins/nodeunschedulable).
type NodeUnschedulable struct{}

// NodeUnschedulableName is its name in configurations.
const NodeUnschedulableName = "NodeUnschedulable"

// Name is NodeUnschedulableName.
func (NodeUnschedulable) Name() string { return NodeUnschedulableName }

var cordonTaint = v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}

func toleratesCordon(p *cluster.Pod) bool {
	return tolerated(p.Spec.Tolerations, &cordonTaint)
}

// PrepareFilter has nothing to say about pods that tolerate a cordon.
func (NodeUnschedulable) PrepareFilter(_ cluster.Snapshot, p *cluster.Pod) FilterPlan {
	if toleratesCordon(p) {
		return FilterPlan{}
	}
	return FilterPlan{Filter: cordonFilter{}}
}

type cordonFilter struct{}

const cordoned Code = 1

func (cordonFilter) Plain(_ cluster.Snapshot, v *cluster.NodeView) Code {
	if v.Node.Unschedulable {
		return cordoned | Unresolvable
	}
	return Fit
}

func (cordonFilter) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, tag Tag, out []Verdict) {
	column := s.Unschedulable()[lo:hi]
	out = out[lo:hi][:len(column)]
	for i, is := range column {
		if is && out[i] == Fits {
			out[i] = tag.With(cordoned | Unresolvable)
		}
	}
}

func (cordonFilter) Reasons(Code) []string { return []string{"node(s) were unschedulable"} }

// Wakes on nodes that are open when they come or open up, and on a toleration of the cordon.
func (NodeUnschedulable) Wakes() []Wake {
	return []Wake{
		{Event: Event{Resource: NodeObject, Action: Add | UpdateNodeTaint}, Alike: true, Hint: func(_ *cluster.Pod, ch Change) Hint {
			wasOpen := ch.OldNode != nil && !ch.OldNode.Unschedulable
			if !wasOpen && !ch.NewNode.Unschedulable {
				return QueueHint
			}
			return SkipHint
		}},
		{Event: Event{Resource: Pod, Action: UpdatePodToleration}, Hint: func(p *cluster.Pod, ch Change) Hint {
			if ch.NewPod.UID == p.UID && toleratesCordon(ch.NewPod) {
				return QueueHint
			}
			return SkipHint
		}},
	}
}
