// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/evict"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/preempt/units"
)

// PreemptionView is the part of a View that concerns evictions: those in progress, and the limits of new ones.
type PreemptionView struct{ e *Engine }

// Preemption returns the view of evictions.
func (v View) Preemption() PreemptionView { return PreemptionView(v) }

// Finder returns the search for victims with the caches of the scheduling cycle. It must not be used inside a
// supposition.
func (v PreemptionView) Finder() *units.Finder { return v.e.evictions.Finder() }

// GoesByUnits reports whether a finder must look for victims of a pod in units. The pod's profile must evict.
func (v PreemptionView) GoesByUnits(finder *units.Finder, p *cluster.Pod) bool {
	return v.e.evictions.GoesByUnits(&v.e.profiles[p.Spec.SchedulerName].evicts, finder, p)
}

// Withdrawable reports whether a victim is decided and its bind was not sent yet, so that it comes back instead of
// being evicted.
func (v PreemptionView) Withdrawable(uid cluster.UID) bool { return v.e.withdrawable(uid) != nil }

// LimitsOfPod returns the limits of evictions for a pod by itself, whose profile must evict.
func (v PreemptionView) LimitsOfPod(p *cluster.Pod) evict.Limits {
	return v.e.evictions.LimitsOfPod(&v.e.profiles[p.Spec.SchedulerName].evicts, p)
}

// LimitsOfGang returns the limits of evictions for a gang of a profile, which needs places for some members; ok is
// false where it may not evict at all, by its profile or because it has its quorum.
func (v PreemptionView) LimitsOfGang(
	key cluster.GangKey, schedulerName string, need gang.Need,
) (l evict.Limits, ok bool) {
	prof := v.e.profiles[schedulerName]
	if !prof.evicts.EvictsForGangs() {
		return evict.Limits{}, false
	}
	return v.e.evictions.LimitsOfGang(&prof.evicts, key, need)
}
