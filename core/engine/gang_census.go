// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// GangWait is what the pods of a gang wait for that have no place.
type GangWait uint8

// What they wait for.
const (
	// GangWaitsForPods: its gate is shut, mostly because pods are missing.
	GangWaitsForPods GangWait = iota
	// GangWaitsForTurn: it was not tried since it came or changed.
	GangWaitsForTurn
	// GangWaitsForRoom: it did not fit, GangNeverFits: it is proved that it cannot, GangGaveUp: the budget was spent.
	GangWaitsForRoom
	GangNeverFits
	GangGaveUp
	// GangFailed: its last attempt ended with an error, or with a panic.
	GangFailed
	// GangWaitsForExtras: it has what it needs, and further pods of it wait.
	GangWaitsForExtras
	GangWaits
)

// String is the label of metrics.
func (w GangWait) String() string {
	return [...]string{"pods", "turn", "room", "never", "gave_up", "error", "extras"}[w]
}

// waits: how a search ended -> what the gang waits for.
var waits = [...]GangWait{gang.Placed: GangWaitsForTurn, gang.NoRoom: GangWaitsForRoom, gang.NeverFits: GangNeverFits, gang.GaveUp: GangGaveUp, gang.Failed: GangFailed}

// GangCensus counts gangs, for metrics.
type GangCensus struct {
	// Part is how many are bound in part, and have not been whole: some of their pods are, and fewer than they need. Since is
	// when that began for the first of them, 0 for none.
	Part  int
	Since record.Time
	// Waiting is how many have pods that wait, by what these wait for.
	Waiting [GangWaits]int
	// Held is how many pods have room held for them, of the one gang that has some.
	Held int
}

// GangCensus counts the gangs there are.
func (e *Engine) GangCensus() (c GangCensus) {
	for key, st := range e.gangs { // order: sums and a minimum
		if st.partialSince == 0 || e.wasWhole(key, e.store.Snapshot().GangMembers(key)) {
			continue
		}
		if c.Part++; c.Since == 0 || st.partialSince < c.Since {
			c.Since = st.partialSince
		}
	}
	e.queue.EachGang(func(u *queue.Unit) { c.Waiting[e.waitOf(u)]++ })
	if e.hold != nil {
		c.Held = len(e.hold.pods)
	}
	return c
}

func (e *Engine) waitOf(u *queue.Unit) GangWait {
	st := e.gangs[u.Gang]
	switch {
	case u.Aside != "":
		return GangFailed
	case u.Gate != "":
		return GangWaitsForPods
	case e.hasQuorum(u):
		return GangWaitsForExtras
	case st != nil && u.Attempts > 0:
		return waits[st.verdict]
	}
	return GangWaitsForTurn
}

// hasQuorum tells whether the gang of a unit has what it needs without the unit's pods.
func (e *Engine) hasQuorum(u *queue.Unit) bool {
	live := e.evictions.Staying(u.Gang)
	return live > 0 && live >= e.quorumOf(u.Gang, u.Members).pods
}
