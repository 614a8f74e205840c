// SPDX-License-Identifier: Apache-2.0

package blocked

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/queue"
)

// Surplus members of gangs do not take the places that the best attempt of a blocked gang found, unless their priority
// is higher. That is capacity held for several gangs, which cannot end in a deadlock: it is held against those only
// that nothing depends on.

// mostSpared bounds the places of blocked gangs that are kept from surplus members, those of the first gangs in the
// queue's order.
const mostSpared = 1024

// Units returns the units of the gangs that wait for capacity and have places kept from surplus members, in the
// queue's order. The gang for which capacity is held is not among them.
func (g *Gangs) Units() (units []*queue.Unit) {
	for key, h := range g.of { // order: sorted below
		if len(h.spared) == 0 || g.hold != nil && g.hold.gang == key {
			continue
		}
		if u := g.unit(key); u != nil {
			units = append(units, u)
		}
	}
	slices.SortFunc(units, func(a, b *queue.Unit) int {
		if g.cfg.Queue.Before(a, b) {
			return -1
		}
		return 1
	})
	return units
}

// spare keeps in mind where the best attempt of a rejected gang put its pods. Surplus members of others may use what it
// kept before.
func (g *Gangs) spare(a gang.Attempt) {
	var places []sparedPlace
	if a.Answer.Verdict == gang.Unschedulable || a.Answer.Verdict == gang.GaveUp {
		for i, p := range a.Need.Members {
			if i < len(a.Answer.Partial) && a.Answer.Partial[i] != cluster.NoNode && len(places) < mostSpared {
				places = append(places, sparedPlace{p, g.cfg.Cluster.NodeName(a.Answer.Partial[i])})
			}
		}
	}
	h := g.historyOf(a.Gang)
	if slices.Equal(h.spared, places) {
		return
	}
	had := len(h.spared) > 0
	h.spared = places
	if had {
		g.cfg.Queue.ReconsiderExtras("gang " + a.Gang.String() + " leaves other room free")
	}
}

// endSparing lets surplus members use what a gang's best attempt found: the gang is placed, or no longer waits.
func (g *Gangs) endSparing(key cluster.GangKey) {
	if h := g.of[key]; h != nil && len(h.spared) > 0 {
		h.spared = nil
		g.cfg.Queue.ReconsiderExtras("gang " + key.String() + " is not blocked any more")
	}
}

// spared are the nominations, with the placements that blocked gangs could use added. Immutable.
type spared struct {
	*queue.Queue
	nodes []string                  // sorted
	on    map[string][]*cluster.Pod // node -> pods that could use it, in the queue's order
}

// Nominations returns the nominations that a search for placements of surplus members respects.
func (g *Gangs) Nominations() place.Nominations {
	s := spared{g.cfg.Queue, slices.Clone(g.cfg.Queue.NominatedNodes()), map[string][]*cluster.Pod{}}
	count := 0
	for _, u := range g.Units() {
		for _, place := range g.of[u.Gang].spared {
			uid := place.pod.UID
			if !g.cfg.Host.Pending(uid) || g.cfg.Queue.NominationOf(uid) != "" || count == mostSpared {
				continue
			}
			count++
			s.on[place.node] = append(s.on[place.node], place.pod)
			s.nodes = append(s.nodes, place.node)
		}
	}
	slices.Sort(s.nodes)
	s.nodes = slices.Compact(s.nodes)
	return s
}

// NominatedNodes returns the nodes with nominations, sorted.
func (s spared) NominatedNodes() []string { return s.nodes }

// NominatedOn returns the pods that count on a node, those that are nominated first.
func (s spared) NominatedOn(node string) []*cluster.Pod {
	pods, more := s.Queue.NominatedOn(node), s.on[node]
	if len(more) == 0 {
		return pods
	}
	return append(slices.Clone(pods), more...)
}
