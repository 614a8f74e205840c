// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"math"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
)

// NominationsFor returns nominations as they count for a gang. Those of its own pods do not count, also if a gate holds
// the pod. If the gang declares a priority, that one counts and not its pods': nominations of a lower priority are left
// out, and all others count against each of its pods. declared is nil for no priority.
func NominationsFor(all place.Nominations, key cluster.GangKey, declared *int32) place.Nominations {
	return gangView{all, key, declared}
}

// gangView are the nominations as they count for a gang.
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
