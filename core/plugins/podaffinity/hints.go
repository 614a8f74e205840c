// SPDX-License-Identifier: Apache-2.0

package podaffinity

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Wakes on pods that come, go or change their labels where that can matter to the terms, on other labels of the pod
// itself, and on nodes that come or move to other domains. Terms are read as they stand: a namespace selector wakes
// only where a namespace without labels satisfies it, as upstream's hints have it (interpodaffinity/plugin.go).
func (pl *InterPodAffinity) Wakes() []plugin.Wake {
	return []plugin.Wake{
		{Event: plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Add | plugin.UpdatePodLabel | plugin.Delete},
			Hint: pl.podHint, Alike: true},
		{Event: plugin.Event{Resource: plugin.TargetPod, Action: plugin.UpdatePodLabel}},
		{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add | plugin.UpdateNodeLabel},
			Hint: pl.nodeHint, Alike: true},
	}
}

// placed reports whether a pod is, or is about to be, on a node.
func placed(p *cluster.Pod) bool { return p.NodeName != "" || p.Nominated != "" }

func (pl *InterPodAffinity) podHint(p *cluster.Pod, ch plugin.Change) plugin.Hint {
	was, is := ch.OldPod, ch.NewPod
	if was != nil && !placed(was) || is != nil && !placed(is) {
		return plugin.SkipHint
	}
	// Only the required terms count. One that cannot be read wakes the pod.
	terms := pl.own(p)
	if terms.unreadable() {
		return plugin.QueueHint
	}
	useful := false
	switch {
	case was == nil:
		useful = coversAll(terms.attract, is)
	case is == nil:
		theirs := pl.own(was)
		useful = coversAny(terms.repel, was) || theirs.errs[cluster.RequiredAntiAffinity] != nil ||
			coversAny(theirs.repel, p)
	default:
		useful = !coversAll(terms.attract, was) && coversAll(terms.attract, is) ||
			coversAny(terms.repel, was) && !coversAny(terms.repel, is)
	}
	if useful {
		return plugin.QueueHint
	}
	return plugin.SkipHint
}

func (pl *InterPodAffinity) nodeHint(p *cluster.Pod, ch plugin.Change) plugin.Hint {
	terms := pl.own(p)
	if terms.unreadable() {
		return plugin.QueueHint
	}
	moved := func(t cluster.PodTerm) (gained, lost, other bool) {
		var before string
		var had bool
		if ch.OldNode != nil {
			before, had = ch.OldNode.Labels[t.TopologyKey]
		}
		after, has := ch.NewNode.Labels[t.TopologyKey]
		return !had && has, had && !has, had && has && before != after
	}
	if slices.ContainsFunc(terms.attract, func(t cluster.PodTerm) bool {
		gained, _, other := moved(t)
		return gained || other
	}) {
		return plugin.QueueHint
	}
	if slices.ContainsFunc(terms.repel, func(t cluster.PodTerm) bool {
		_, lost, other := moved(t)
		return ch.OldNode == nil || lost || other
	}) {
		return plugin.QueueHint
	}
	return plugin.SkipHint
}
