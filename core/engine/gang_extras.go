// SPDX-License-Identifier: Apache-2.0

package engine

import (
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
//   - Extras do not take the places that the best try of a blocked gang found, unless their priority is higher:
//     core/blocked keeps these places.
//   - Capacity is never held for extras.
//
// No blocked gang, all are placed at once, so that a rack is chosen that has capacity for all.
//
// Rejected: to shut extras out for as long as any gang is blocked. A gang that waits for a kind of node that is
// never free would keep the extras of all others out of nodes that do not help it.

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
	if unit.Extra() || g.e.isBasic(unit.Gang) || len(need.Members) <= need.Quorum || !g.e.queue.Needed(unit) && !g.e.blocked.Any() {
		return 0
	}
	return need.Quorum
}

// reconsider asks the gates of a gang again: something that they read of it has changed.
func (e *Engine) reconsider(key cluster.GangKey, cause string) {
	e.queue.Reconsider(key, cause)
	e.blocked.Changed(key)
}

// forgetGang follows the end of a pod that waited in a gang, or of its object. What is remembered goes with the
// last of them.
func (e *Engine) forgetGang(key cluster.GangKey) {
	e.blocked.Changed(key)
	if e.store.Snapshot().GangHolds(key) == 0 && !e.queue.HasGang(key) {
		e.forgetState(key)
	}
}

// forgetState drops what is remembered of a gang.
func (e *Engine) forgetState(key cluster.GangKey) {
	e.blocked.Forget(key)
	delete(e.gangs.of, key)
}
