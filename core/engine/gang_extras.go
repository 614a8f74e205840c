// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/queue"
)

// A gang may have more pods than it needs: those between its minimum and what is desired, its extras. They get
// places as there is capacity, and what others need goes first:
//
//   - While any unit waits to be tried that goes before its extras, or a gang is blocked, a gang gets as many places as it needs
//     and no more. What is left of it goes back to the queue behind all of its priority that somebody needs; pods by
//     themselves are gangs of one, which need their place.
//   - Extras do not take the places that the best try of a blocked gang found, unless their priority is higher. That is capacity held
//     for several gangs, which cannot end in a deadlock: it is held against those only who need nothing.
//   - Capacity is never held for extras.
//
// No blocked gang, all are placed at once, so that a rack is chosen that has capacity for all.
//
// Rejected: to shut extras out for as long as any gang is blocked. A gang that waits for a kind of node that is
// never free would keep the extras of all others out of nodes that do not help it.

// mostSpared bounds the places of blocked gangs that are kept from extras, those of the first gangs in the queue's
// order.
const mostSpared = 1024

// Extra tells that a unit's gang has what it needs without it.
func (r gangRules) Extra(u *queue.Unit) bool { return r.e.hasQuorum(u) && !r.e.isBasic(u.Gang) }

// hasQuorum reports whether the gang of a unit has what it needs without the unit's pods.
func (e *Engine) hasQuorum(u *queue.Unit) bool {
	live := e.evictions.Staying(u.Gang)
	return live > 0 && live >= e.quorumOf(u.Gang, u.Members).pods
}

// isBasic reports whether the pods of a gang are scheduled one by one: none of them is an extra.
func (e *Engine) isBasic(key cluster.GangKey) bool {
	obj := e.gangObject(key)
	return obj != nil && obj.Basic
}

// keepOf is how many members of a unit may keep a place: 0 for all, else as many as the gang needs.
func (g *gangs) keepOf(unit *queue.Unit, need gang.Need) int {
	if unit.Extra() || g.e.isBasic(unit.Gang) || len(need.Members) <= need.Quorum || !g.e.queue.Needed(unit) && len(g.e.blocked()) == 0 {
		return 0
	}
	return need.Quorum
}

// blocked are the gangs that were rejected for want of capacity and wait, in the queue's order, but for the one
// that holds capacity.
func (e *Engine) blocked() (units []*queue.Unit) {
	for key, st := range e.gangs.of { // order: sorted below
		if len(st.spared) == 0 || e.held.hold != nil && e.held.hold.gang == key {
			continue
		}
		if u := e.queue.Gang(key); u != nil && u.Gate == "" && u.Aside == "" {
			units = append(units, u)
		}
	}
	slices.SortFunc(units, func(a, b *queue.Unit) int {
		if e.queue.Before(a, b) {
			return -1
		}
		return 1
	})
	return units
}

// spare keeps in mind where the best try of a rejected gang put its pods. What it kept before may be had by the
// extras of others.
func (g *gangs) spare(st *gangState, a gang.Attempt) {
	var places []sparedPlace
	if a.Answer.Verdict == gang.Unschedulable || a.Answer.Verdict == gang.GaveUp {
		s := g.e.store.Snapshot()
		for i, p := range a.Need.Members {
			if i < len(a.Answer.Partial) && a.Answer.Partial[i] != cluster.NoNode && len(places) < mostSpared {
				places = append(places, sparedPlace{p, s.NodeName(a.Answer.Partial[i])})
			}
		}
	}
	if slices.Equal(st.spared, places) {
		return
	}
	had := len(st.spared) > 0
	st.spared = places
	if had {
		g.e.queue.ReconsiderExtras("gang " + a.Gang.String() + " leaves other room free")
	}
}

// endSparing lets surplus members use what a gang's best attempt found: the gang is placed, or no longer waits.
func (g *gangs) endSparing(key cluster.GangKey) {
	if st := g.of[key]; st != nil && len(st.spared) > 0 {
		st.spared = nil
		g.e.queue.ReconsiderExtras("gang " + key.String() + " is not blocked any more")
	}
}

// reconsider asks the gates of a gang again: something that they read of it has changed.
func (e *Engine) reconsider(key cluster.GangKey, cause string) {
	e.queue.Reconsider(key, cause)
	e.otherWaits(key)
}

// otherWaits follows a gang of which less or more waits than before, or behind another gate: what does not wait for
// capacity must not keep any.
func (e *Engine) otherWaits(key cluster.GangKey) {
	if u := e.queue.Gang(key); u == nil || u.Gate != "" || u.Aside != "" || u.Extra() {
		e.gangs.endSparing(key)
	}
}

// forgetGang follows the end of a pod that waited in a gang, or of its object. What is remembered goes with the
// last of them.
func (e *Engine) forgetGang(key cluster.GangKey) {
	e.otherWaits(key)
	if e.store.Snapshot().GangHolds(key) == 0 && !e.queue.HasGang(key) {
		e.forgetState(key)
	}
}
