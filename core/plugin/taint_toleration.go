// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// TaintToleration keeps pods off nodes with NoSchedule and NoExecute taints that they do not tolerate, and prefers
// nodes with few PreferNoSchedule taints that they do not tolerate (upstream: plugins/tainttoleration). Tolerations
// that compare numbers (operators Gt and Lt, KEP-5471) are alpha in 1.36 and match nothing.
type TaintToleration struct{}

// TaintTolerationName is its name in configurations.
const TaintTolerationName = "TaintToleration"

// Name is TaintTolerationName.
func (TaintToleration) Name() string { return TaintTolerationName }

// tolerates tells whether t covers taint. An empty effect covers all effects and an empty key all keys; with operator
// Equal the value must then still be the same (upstream: k8s.io/api/core/v1, Toleration.ToleratesTaint).
func tolerates(t *v1.Toleration, taint *v1.Taint) bool {
	if t.Effect != "" && t.Effect != taint.Effect {
		return false
	}
	if t.Key != taint.Key && t.Key != "" {
		return false
	}
	switch t.Operator {
	case "", v1.TolerationOpEqual:
		return t.Value == taint.Value
	case v1.TolerationOpExists:
		return true
	}
	return false
}

func tolerated(tolerations []v1.Toleration, taint *v1.Taint) bool {
	for i := range tolerations {
		if tolerates(&tolerations[i], taint) {
			return true
		}
	}
	return false
}

// repelled tells whether one of the taints keeps a pod with these tolerations off the node.
func repelled(tolerations []v1.Toleration, taints []v1.Taint) bool {
	for i := range taints {
		t := &taints[i]
		repels := t.Effect == v1.TaintEffectNoSchedule || t.Effect == v1.TaintEffectNoExecute
		if repels && !tolerated(tolerations, t) {
			return true
		}
	}
	return false
}

// disliked counts the taints that make a node less welcome to a pod with these tolerations.
func disliked(tolerations []v1.Toleration, taints []v1.Taint) int64 {
	var n int64
	for i := range taints {
		t := &taints[i]
		counts := t.Effect == v1.TaintEffectPreferNoSchedule
		if counts && !tolerated(tolerations, t) {
			n++
		}
	}
	return n
}

// PrepareFilter looks at every pod.
func (TaintToleration) PrepareFilter(_ cluster.Snapshot, p *cluster.Pod) FilterPlan {
	return FilterPlan{Filter: &taintFilter{tolerations: p.Spec.Tolerations}}
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

const untoleratedTaint Code = 1

func (f *taintFilter) Plain(_ cluster.Snapshot, v *cluster.NodeView) Code {
	if repelled(f.tolerations, v.Node.Taints) {
		return untoleratedTaint | Unresolvable
	}
	return Fit
}

func (f *taintFilter) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, tag Tag, out []Verdict) {
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
			if answer = welcome; repelled(f.tolerations, sets[id]) {
				answer = unwelcome
			}
			known[id] = answer
		}
		if answer == unwelcome && out[i] == Fits {
			out[i] = tag.With(untoleratedTaint | Unresolvable)
		}
	}
}

func (*taintFilter) Reasons(Code) []string { return []string{"node(s) had untolerated taint(s)"} }

// PrepareScore scores every pod, also those without tolerations.
func (TaintToleration) PrepareScore(_ cluster.Snapshot, p *cluster.Pod) PodScore {
	return &taintScore{tolerations: p.Spec.Tolerations}
}

// Normal makes few taints the best.
func (TaintToleration) Normal() Normal { return ReversedMax }

type taintScore struct {
	tolerations []v1.Toleration
	known       []int64 // taint set id -> number of taints disliked
}

func (f *taintScore) Plain(_ cluster.Snapshot, v *cluster.NodeView) int64 {
	return disliked(f.tolerations, v.Node.Taints)
}

func (f *taintScore) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, out []int64) {
	column, sets := s.TaintSets()
	if len(sets) == 0 {
		return
	}
	for id := len(f.known); id < len(sets); id++ {
		f.known = append(f.known, disliked(f.tolerations, sets[id]))
	}
	known := f.known
	column = column[lo:hi]
	out = out[lo:hi][:len(column)]
	for i, id := range column {
		out[i] = known[id]
	}
}

func (*taintScore) Epoch(cluster.Snapshot) uint64 { return 0 }

// Wakes on nodes that become tolerated, and on any new toleration of the pod.
func (TaintToleration) Wakes() []Wake {
	return []Wake{
		{Event: Event{Resource: NodeObject, Action: Add | UpdateNodeTaint}, Alike: true, Hint: func(p *cluster.Pod, ch Change) Hint {
			was := ch.OldNode == nil || repelled(p.Spec.Tolerations, ch.OldNode.Taints)
			if was && !repelled(p.Spec.Tolerations, ch.NewNode.Taints) {
				return QueueHint
			}
			return SkipHint
		}},
		{Event: Event{Resource: Pod, Action: UpdatePodToleration}, Hint: ownUpdate},
	}
}
