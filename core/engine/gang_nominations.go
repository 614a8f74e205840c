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
		view.Nominations = e.blocked.Nominations()
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
