// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/kumiki-scheduler/kumiki/core/blocked"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// GangView is the part of a View that concerns gangs: their declarations and their history.
type GangView struct{ e *Engine }

// Gangs returns the view of gangs.
func (v View) Gangs() GangView { return GangView(v) }

// Quorum returns how many pods of a gang must have a place for any to get one, given those that wait. It is not
// stated where it is only what was bound before, or the number of those that wait.
func (v GangView) Quorum(key cluster.GangKey, waiting []*cluster.Pod) (pods int, stated bool) {
	q := v.e.quorumOf(key, waiting)
	return q.pods, !q.open
}

// Staying returns how many pods of a gang hold capacity, are not terminating, and whose eviction was not requested.
func (v GangView) Staying(key cluster.GangKey) int { return v.e.evictions.Staying(key) }

// HasQuorum reports whether the gang of a unit has what it needs without the unit's pods.
func (v GangView) HasQuorum(u *queue.Unit) bool { return v.e.hasQuorum(u) }

// OpenMembers returns the members that no gate of their profile holds and that are not terminating. reason is why
// the first of the others is held.
func (v GangView) OpenMembers(members []*cluster.Pod) (open []*cluster.Pod, reason string) {
	o := v.e.openMembers(members)
	return o.open, o.reason
}

// Need returns what a cycle would ask of the search for the gang of a unit.
func (v GangView) Need(u *queue.Unit) gang.Need { return v.e.gangAttempt(u).Need }

// Nominations returns the nominations as a search for a gang's unit sees them.
func (v GangView) Nominations(u *queue.Unit) place.Nominations { return v.e.nominationsFor(u) }

// GangHistory is what the engine remembers of a gang's attempts.
type GangHistory struct {
	// PartialSince is since when fewer of its pods than the quorum are bound, 0 for not so.
	PartialSince record.Time
	// BlockedSince is when it was first rejected since it last had a place, 0 for never; FirstPlaced is how many
	// pods its best attempt placed then.
	BlockedSince record.Time
	FirstPlaced  int
	// Verdict is how its last search ended; gang.Placed before the first.
	Verdict gang.Verdict
}

// History returns what is remembered of a gang; the zero value for nothing.
func (v GangView) History(key cluster.GangKey) GangHistory {
	past := v.e.blocked.History(key)
	h := GangHistory{BlockedSince: past.Since, FirstPlaced: past.FirstPlaced, Verdict: past.Verdict}
	if st := v.e.gangs.of[key]; st != nil {
		h.PartialSince = st.partialSince
	}
	return h
}

// EachPartial visits, in no order, the gangs of which fewer pods than the quorum are bound and that never had their
// quorum, with the time since when that is so.
func (v GangView) EachPartial(visit func(since record.Time)) {
	for key, st := range v.e.gangs.of { // order: the caller expects none
		if st.partialSince != 0 && !v.e.wasWhole(key, v.e.store.Snapshot().GangMembers(key)) {
			visit(st.partialSince)
		}
	}
}

// KeptFrom returns the first blocked gang whose possible places are kept from the surplus members of others.
func (v GangView) KeptFrom() (key cluster.GangKey, ok bool) {
	if units := v.e.blocked.Units(); len(units) > 0 {
		return units[0].Gang, true
	}
	return cluster.GangKey{}, false
}

// Held returns the capacity that is held now.
func (v GangView) Held() (held blocked.Held, ok bool) { return v.e.blocked.Held() }
