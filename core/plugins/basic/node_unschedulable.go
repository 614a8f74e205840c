// SPDX-License-Identifier: Apache-2.0

package basic

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/internal/nodematch"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Advise says to uncordon.
func (NodeUnschedulable) Advise(_ *cluster.NodeView, _ *cluster.Pod, r *record.Remedy) {
	r.Do = "uncordon " + r.Node
}

// NodeUnschedulable keeps pods off cordoned nodes, unless they tolerate the taint that a cordon brings (upstream:
// plugins/nodeunschedulable).
type NodeUnschedulable struct{}

// NodeUnschedulableName is its name in configurations.
const NodeUnschedulableName = "NodeUnschedulable"

// Name is NodeUnschedulableName.
func (NodeUnschedulable) Name() string { return NodeUnschedulableName }

// Reads declares spec.unschedulable.
func (NodeUnschedulable) Reads() plugin.Reads { return plugin.ReadsNode }

var cordonTaint = v1.Taint{Key: v1.TaintNodeUnschedulable, Effect: v1.TaintEffectNoSchedule}

func toleratesCordon(p *cluster.Pod) bool {
	return nodematch.Tolerated(p.Spec.Tolerations, &cordonTaint)
}

// PrepareFilter has nothing to say about pods that tolerate a cordon.
func (NodeUnschedulable) PrepareFilter(_ cluster.Snapshot, p *cluster.Pod) plugin.FilterPlan {
	if toleratesCordon(p) {
		return plugin.FilterPlan{}
	}
	return plugin.FilterPlan{Filter: cordonFilter{}}
}

type cordonFilter struct{}

const cordoned plugin.Code = 1

func (cordonFilter) Plain(_ cluster.Snapshot, v *cluster.NodeView) plugin.Code {
	if v.Node.Unschedulable {
		return cordoned | plugin.Unresolvable
	}
	return plugin.Fit
}

func (cordonFilter) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, tag plugin.Tag, out []plugin.Verdict) {
	column := s.Unschedulable()[lo:hi]
	out = out[lo:hi][:len(column)]
	for i, is := range column {
		if is && out[i] == plugin.Fits {
			out[i] = tag.With(cordoned | plugin.Unresolvable)
		}
	}
}

func (cordonFilter) Reasons(plugin.Code) []string { return []string{"node(s) were unschedulable"} }

// Wakes on nodes that are open when they come or open up, and on a toleration of the cordon.
func (NodeUnschedulable) Wakes() []plugin.Wake {
	return []plugin.Wake{
		{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add | plugin.UpdateNodeTaint}, Alike: true,
			Hint: func(_ *cluster.Pod, ch plugin.Change) plugin.Hint {
				wasOpen := ch.OldNode != nil && !ch.OldNode.Unschedulable
				if !wasOpen && !ch.NewNode.Unschedulable {
					return plugin.QueueHint
				}
				return plugin.SkipHint
			}},
		{Event: plugin.Event{Resource: plugin.TargetPod, Action: plugin.UpdatePodToleration},
			Hint: func(_ *cluster.Pod, ch plugin.Change) plugin.Hint {
				if toleratesCordon(ch.NewPod) {
					return plugin.QueueHint
				}
				return plugin.SkipHint
			}},
	}
}
