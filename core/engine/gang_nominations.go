// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/queue"
)

// nominationsFor returns the nominations that a search for placements of a unit respects.
func (e *Engine) nominationsFor(unit *queue.Unit) place.Nominations {
	view := gangView{Nominations: e.queue, gang: unit.Gang}
	if unit.Extra() {
		view.Nominations = e.gangs.sparing()
	}
	if obj := e.gangObject(unit.Gang); obj != nil {
		view.declared = obj.Priority
	}
	return view
}

// gangView are the nominations as they count for a gang. Those of its own pods do not count, also if a gate holds the
// pod. If the gang declares a priority, that one counts and not its pods': nominations of a lower priority are left
// out, and all others count against each of its pods.
type gangView struct {
	place.Nominations
	gang     cluster.GangKey
	declared *int32 // nil for no priority
}

// NominatedOn returns the pods that count for the gang.
func (v gangView) NominatedOn(node string) []*cluster.Pod {
	all := v.Nominations.NominatedOn(node)
	own := func(p *cluster.Pod) bool { return p.Gang != nil && p.Gang.Key == v.gang }
	if v.declared == nil && !slices.ContainsFunc(all, own) {
		return all
	}
	var pods []*cluster.Pod
	for _, p := range all {
		switch {
		case own(p):
		case v.declared == nil:
			pods = append(pods, p)
		case p.Spec.Priority >= *v.declared:
			ahead, spec := *p, *p.Spec
			spec.Priority = math.MaxInt32
			ahead.Spec = &spec
			pods = append(pods, &ahead)
		}
	}
	return pods
}

// spared are the nominations, with the placements that blocked gangs could use added. Immutable.
type spared struct {
	*queue.Queue
	nodes []string                  // sorted
	on    map[string][]*cluster.Pod // node -> pods that could use it, in the queue's order
}

// sparing returns the nominations that a search for placements of surplus members respects.
func (g *gangs) sparing() spared {
	s := spared{g.e.queue, slices.Clone(g.e.queue.NominatedNodes()), map[string][]*cluster.Pod{}}
	count := 0
	for _, u := range g.e.blocked() {
		for _, place := range g.of[u.Gang].spared {
			if g.e.pending[place.pod.UID] == nil || g.e.queue.NominationOf(place.pod.UID) != "" || count == mostSpared {
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
