// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/deadline"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// A large gang starves where small pods take each piece of room that comes free before there is enough of it. So one gang at
// a time, the first in the queue's order of those that have waited long enough, holds the places that its best try found:
// its pods are nominated there, in memory. Pods of its priority or less see that room taken and go elsewhere, which is how
// they fill in without delaying it; pods of higher priority do not. Whenever room comes free the gang is tried at once, and
// holds what it finds then.
//
// Only one gang holds: two that each hold a part of what both need would wait for each other for ever. A hold ends with its
// time, and the gang does not get another one until as much time has gone by, so that a gang that never fits does not keep
// the room empty.
//
// Rejected: to hold whole nodes (a gang of small pods would empty the cluster), to hold for each blocked gang (see above), and
// to let later pods in if they would end before the gang could start, for pods do not say when they end.

// The times of a hold, where the configuration has none: how long a gang must have been blocked, and how long it holds.
const (
	DefaultHoldAfter = 10 * record.Second
	DefaultHoldFor   = 300 * record.Second
)

// Hold says when room is held.
type Hold struct {
	// After is how long a gang must have been blocked.
	After record.Time
	// For is how long it is held at most; 0 where none ever is.
	For record.Time
}

// hold is room that is held for a gang.
type hold struct {
	gang  cluster.GangKey
	since record.Time
	until deadline.Entry
	pods  []*cluster.Pod // that are nominated for it
}

// holdFor considers a gang that has just been rejected: it gets the hold, keeps it, or loses it.
func (e *Engine) holdFor(unit *queue.Unit, need gang.Need, ans gang.Answer) {
	st := e.stateOf(unit.Gang)
	if st.blocked == 0 {
		st.blocked, st.firstMost = e.now, ans.Most
	}
	mine := e.hold != nil && e.hold.gang == unit.Gang
	if ans.Verdict != gang.NoRoom && ans.Verdict != gang.GaveUp {
		if mine {
			e.dropHold("it cannot be placed by waiting")
		}
		return
	}
	if !mine {
		if e.cfg.Hold.For == 0 || e.now < st.blocked+e.cfg.Hold.After || e.now < st.noHoldUntil {
			return
		}
		if other := e.holder(); other != nil && !e.queue.Before(unit, other) {
			return
		}
		e.dropHold("a gang goes before it")
		long := e.holdTime(unit)
		e.hold = &hold{gang: unit.Gang, since: e.now, until: deadline.Entry{Phase: phaseHold}}
		e.deadlines.Set(&e.hold.until, e.now+long)
		e.queue.Hurry(unit.Gang, true)
		e.emit(WriteEvent{unit.Pod().Ref(), "Normal", "HoldingRoom", "Scheduling",
			fmt.Sprintf("room for %d of %d pods of gang %s is held for it, for %d s at most", ans.Most, need.Quorum, unit.Gang, long/record.Second)})
	}
	e.hold.pods = e.hold.pods[:0]
	s := e.store.Snapshot()
	for i, p := range need.Members {
		if i < len(ans.Partial) && ans.Partial[i] != cluster.NoNode {
			e.queue.Nominate(p, s.NodeName(ans.Partial[i]))
			e.hold.pods = append(e.hold.pods, p)
		}
	}
}

// holdTime is for how long room is held for a gang: not longer than its members may wait for each other. Other schedulers let them
// wait in places that they have taken; here that is what a hold is.
func (e *Engine) holdTime(unit *queue.Unit) record.Time {
	long := e.cfg.Hold.For
	shorten := func(timeout record.Time) {
		if timeout > 0 {
			long = min(long, timeout)
		}
	}
	if obj := e.gangObject(unit.Gang); obj != nil {
		shorten(obj.Timeout)
	}
	for _, p := range unit.Members {
		shorten(p.Gang.Timeout)
	}
	return long
}

// holder is the unit that holds room; nil when none does.
func (e *Engine) holder() *queue.Unit {
	if e.hold == nil {
		return nil
	}
	return e.queue.Gang(e.hold.gang)
}

// dropHold gives held room up, and wakes the pods that may have it.
func (e *Engine) dropHold(why string) {
	h := e.hold
	if h == nil {
		return
	}
	e.hold = nil
	e.deadlines.Stop(&h.until)
	e.queue.Hurry(h.gang, false)
	e.emit(GangHeld{Gang: h.gang, Took: e.now - h.since})
	if st := e.gangs[h.gang]; st != nil {
		st.noHoldUntil = e.now + e.now - h.since
	}
	for _, p := range h.pods {
		e.queue.Unnominate(p.UID)
	}
	if len(h.pods) > 0 {
		e.emit(WriteEvent{h.pods[0].Ref(), "Normal", "RoomReleased", "Scheduling", fmt.Sprintf("room is not held any more for gang %s: %s", h.gang, why)})
	}
}

// useHold ends the hold of a gang that has its places: its pods are where they were nominated, or what was held is free.
func (e *Engine) useHold(key cluster.GangKey) {
	if e.hold != nil && e.hold.gang == key {
		e.emit(GangHeld{Gang: key, Took: e.now - e.hold.since, Placed: true})
		e.deadlines.Stop(&e.hold.until)
		e.hold = nil
		e.queue.Hurry(key, false)
	}
}

// endHold ends a hold whose time has come or whose gang does not wait any more.
func (e *Engine) endHold() {
	switch {
	case e.hold == nil:
	case e.holder() == nil || e.holder().Gate != "" || e.holder().Extra():
		e.dropHold("it does not wait for room")
	case e.now >= e.hold.until.At():
		e.dropHold("its time is over")
	}
}
