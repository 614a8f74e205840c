// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// Wakes on pods that come, go or change their labels where that can matter to the terms, and on nodes that come or move
// to other domains. Terms are read as they stand: a namespace selector wakes only where a namespace without labels
// satisfies it, as upstream's hints have it (interpodaffinity/plugin.go).
func (pl *InterPodAffinity) Wakes() []Wake {
	return []Wake{
		{Event: Event{Resource: Pod, Action: Add | UpdatePodLabel | Delete}, Hint: pl.podHint, Alike: true},
		{Event: Event{Resource: NodeObject, Action: Add | UpdateNodeLabel}, Hint: pl.nodeHint, Alike: true},
	}
}

// placed tells whether a pod is, or is about to be, on a node.
func placed(p *cluster.Pod) bool { return p.NodeName != "" || p.Nominated != "" }

func (pl *InterPodAffinity) podHint(p *cluster.Pod, ch Change) Hint {
	was, is := ch.OldPod, ch.NewPod
	if was != nil && is != nil && is.UID == p.UID {
		return QueueHint
	}
	if was != nil && !placed(was) || is != nil && !placed(is) {
		return SkipHint
	}
	// Only the required terms count. One that cannot be read wakes the pod.
	terms := pl.own(p)
	if terms.unreadable() {
		return QueueHint
	}
	useful := false
	switch {
	case was == nil:
		useful = coversAll(terms.attract, is)
	case is == nil:
		theirs := pl.own(was)
		useful = coversAll(terms.repel, was) || theirs.errs[cluster.RequiredAntiAffinity] != nil || coversAll(theirs.repel, p)
	default:
		useful = !coversAll(terms.attract, was) && coversAll(terms.attract, is) ||
			coversAll(terms.repel, was) && !coversAll(terms.repel, is)
	}
	if useful {
		return QueueHint
	}
	return SkipHint
}

func (pl *InterPodAffinity) nodeHint(p *cluster.Pod, ch Change) Hint {
	terms := pl.own(p)
	if terms.unreadable() {
		return QueueHint
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
		return QueueHint
	}
	if slices.ContainsFunc(terms.repel, func(t cluster.PodTerm) bool {
		_, lost, other := moved(t)
		return ch.OldNode == nil || lost || other
	}) {
		return QueueHint
	}
	return SkipHint
}
