// SPDX-License-Identifier: Apache-2.0

package basic

import (
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/internal/nodematch"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Advise names the taint.
func (TaintToleration) Advise(v *cluster.NodeView, p *cluster.Pod, r *record.Remedy) {
	for i := range v.Node.Taints {
		t := &v.Node.Taints[i]
		if t.Effect != v1.TaintEffectPreferNoSchedule && !nodematch.Tolerated(p.Spec.Tolerations, t) {
			r.Do = fmt.Sprintf("tolerate the taint %s, or remove it from %s", t.ToString(), r.Node)
			return
		}
	}
}

// TaintToleration keeps pods off nodes with NoSchedule and NoExecute taints that they do not tolerate, and prefers
// nodes with few PreferNoSchedule taints that they do not tolerate (upstream: plugins/tainttoleration). Tolerations
// that compare numbers (operators Gt and Lt, KEP-5471) are alpha in 1.37 and match nothing.
type TaintToleration struct{}

// TaintTolerationName is its name in configurations.
const TaintTolerationName = "TaintToleration"

// Name is TaintTolerationName.
func (TaintToleration) Name() string { return TaintTolerationName }

// Reads declares the taints.
func (TaintToleration) Reads() plugin.Reads { return plugin.ReadsNode }

// countSoftTaints counts the PreferNoSchedule taints that these tolerations do not tolerate.
func countSoftTaints(tolerations []v1.Toleration, taints []v1.Taint) int64 {
	var n int64
	for i := range taints {
		t := &taints[i]
		counts := t.Effect == v1.TaintEffectPreferNoSchedule
		if counts && !nodematch.Tolerated(tolerations, t) {
			n++
		}
	}
	return n
}

// PrepareFilter looks at every pod.
func (TaintToleration) PrepareFilter(_ cluster.Snapshot, p *cluster.Pod) plugin.FilterPlan {
	return plugin.FilterPlan{Filter: &taintFilter{tolerations: p.Spec.Tolerations}}
}

type taintFilter struct {
	tolerations []v1.Toleration
	known       []taintAnswer // taint set id -> what the pod makes of it
}

type taintAnswer uint8

const (
	unasked taintAnswer = iota
	welcome
	unwelcome
)

const untoleratedTaint plugin.Code = 1

func (f *taintFilter) Plain(_ cluster.Snapshot, v *cluster.NodeView) plugin.Code {
	if nodematch.Repelled(f.tolerations, v.Node.Taints) {
		return untoleratedTaint | plugin.Unresolvable
	}
	return plugin.Fit
}

func (f *taintFilter) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, tag plugin.Tag, out []plugin.Verdict) {
	column, sets := s.TaintSets()
	if len(sets) == 0 {
		return // there has never been a node
	}
	if len(f.known) < len(sets) {
		f.known = append(f.known, make([]taintAnswer, len(sets)-len(f.known))...)
	}
	known := f.known
	column = column[lo:hi]
	out = out[lo:hi][:len(column)]
	for i, id := range column {
		answer := known[id]
		if answer == welcome {
			continue
		}
		if answer == unasked {
			if answer = welcome; nodematch.Repelled(f.tolerations, sets[id]) {
				answer = unwelcome
			}
			known[id] = answer
		}
		if answer == unwelcome && out[i] == plugin.Fits {
			out[i] = tag.With(untoleratedTaint | plugin.Unresolvable)
		}
	}
}

func (*taintFilter) Reasons(plugin.Code) []string {
	return []string{"node(s) had untolerated taint(s)"}
}

// PrepareScore scores every pod, also those without tolerations.
func (TaintToleration) PrepareScore(_ cluster.Snapshot, p *cluster.Pod) plugin.PodScore {
	return &taintScore{tolerations: p.Spec.Tolerations}
}

// Normal makes few taints the best.
func (TaintToleration) Normal() plugin.Normal { return plugin.ReversedMax }

type taintScore struct {
	tolerations []v1.Toleration
	known       []int64 // taint set id -> number of PreferNoSchedule taints not tolerated
}

func (f *taintScore) Plain(_ cluster.Snapshot, v *cluster.NodeView) int64 {
	return countSoftTaints(f.tolerations, v.Node.Taints)
}

func (f *taintScore) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, out []int64) {
	column, sets := s.TaintSets()
	if len(sets) == 0 {
		return
	}
	for id := len(f.known); id < len(sets); id++ {
		f.known = append(f.known, countSoftTaints(f.tolerations, sets[id]))
	}
	known := f.known
	column = column[lo:hi]
	out = out[lo:hi][:len(column)]
	for i, id := range column {
		out[i] = known[id]
	}
}

// Wakes on nodes that become tolerated, and on any new toleration of the pod.
func (TaintToleration) Wakes() []plugin.Wake {
	return []plugin.Wake{
		{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add | plugin.UpdateNodeTaint}, Alike: true,
			Hint: func(p *cluster.Pod, ch plugin.Change) plugin.Hint {
				was := ch.OldNode == nil || nodematch.Repelled(p.Spec.Tolerations, ch.OldNode.Taints)
				if was && !nodematch.Repelled(p.Spec.Tolerations, ch.NewNode.Taints) {
					return plugin.QueueHint
				}
				return plugin.SkipHint
			}},
		{Event: plugin.Event{Resource: plugin.TargetPod, Action: plugin.UpdatePodToleration}},
	}
}
