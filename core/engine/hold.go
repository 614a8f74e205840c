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

// A large gang starves where small pods take each piece of capacity that comes free before there is enough of it.
// So one gang at a time, the first in the queue's order of those that have waited long enough, holds the places
// that its best try found: its pods are nominated there, in memory. Pods of its priority or less see that capacity
// taken and go elsewhere, which is how they fill in without delaying it; pods of higher priority do not. Whenever
// capacity comes free the gang is tried at once, and holds what it finds then.
//
// Only one gang holds: two that each hold a part of what both need would wait for each other without end. A hold
// ends with its time, and the gang does not get another one until as much time has gone by, so that a gang that
// never fits does not keep the capacity unused.
//
// Rejected: to hold whole nodes (a gang of small pods would empty the cluster), to hold for each blocked gang (see
// above), and to let later pods in if they would end before the gang could start, for pods do not say when they
// end.

// The times of a hold, where the configuration has none: how long a gang must have been blocked, and how long it holds.
const (
	DefaultHoldAfter = 10 * record.Second
	DefaultHoldFor   = 300 * record.Second
)

// holdFor considers a gang that has just been rejected: it gets the hold, keeps it, or loses it.
func (c *heldCapacity) holdFor(a gang.Attempt) {
	st, ans := c.e.stateOf(a.Gang), a.Answer
	if st.blocked == 0 {
		st.blocked, st.firstMost = c.e.now, ans.Most
	}
	mine := c.hold != nil && c.hold.gang == a.Gang
	if ans.Verdict != gang.Unschedulable && ans.Verdict != gang.GaveUp {
		if mine {
			c.dropHold("it cannot be placed by waiting")
		}
		return
	}
	if !mine {
		if c.e.cfg.Hold.For == 0 || c.e.now < st.blocked+c.e.cfg.Hold.After || c.e.now < st.noHoldUntil {
			return
		}
		if other := c.holder(); other != nil && !c.e.queue.Before(c.e.queue.Gang(a.Gang), other) {
			return
		}
		c.dropHold("a gang goes before it")
		long := c.holdTime(a)
		c.hold = &hold{gang: a.Gang, since: c.e.now, until: deadline.Entry{Phase: phaseHold}}
		c.e.deadlines.Set(&c.hold.until, c.e.now+long)
		c.e.queue.SkipBackoff(a.Gang)
		c.e.writeEvent(a.Waiting[0].Ref(), "Normal", "HoldingRoom", "Scheduling",
			fmt.Sprintf("room for %d of %d pods of gang %s is held for it, for %d s at most",
				ans.Most, a.Need.Quorum, a.Gang, long/record.Second))
	}
	c.hold.pods = c.hold.pods[:0]
	s := c.e.store.Snapshot()
	for i, p := range a.Need.Members {
		if i < len(ans.Partial) && ans.Partial[i] != cluster.NoNode {
			c.e.queue.Nominate(p, s.NodeName(ans.Partial[i]))
			c.hold.pods = append(c.hold.pods, p)
		}
	}
}

// holdTime returns how long capacity is held for a gang: not longer than its members may wait for each other. Other
// schedulers let members wait for each other in placements that they have taken; a hold corresponds to that.
func (c *heldCapacity) holdTime(a gang.Attempt) record.Time {
	long := c.e.cfg.Hold.For
	shorten := func(timeout record.Time) {
		if timeout > 0 {
			long = min(long, timeout)
		}
	}
	if obj := c.e.gangObject(a.Gang); obj != nil {
		shorten(obj.Timeout)
	}
	for _, p := range a.Waiting {
		shorten(p.Gang.Timeout)
	}
	return long
}

// holder is the unit that holds capacity; nil when none does.
func (c *heldCapacity) holder() *queue.Unit {
	if c.hold == nil {
		return nil
	}
	return c.e.queue.Gang(c.hold.gang)
}

// dropHold gives held capacity up, and wakes the pods that may have it.
func (c *heldCapacity) dropHold(why string) {
	h := c.hold
	if h == nil {
		return
	}
	c.hold = nil
	c.e.deadlines.Stop(&h.until)
	c.e.queue.RestoreBackoff(h.gang)
	c.e.emit(GangHeld{Gang: h.gang, Took: c.e.now - h.since})
	if st := c.e.gangs.of[h.gang]; st != nil {
		st.noHoldUntil = c.e.now + c.e.now - h.since
	}
	for _, p := range h.pods {
		c.e.queue.Unnominate(p.UID)
	}
	if len(h.pods) > 0 {
		c.e.writeEvent(h.pods[0].Ref(), "Normal", "RoomReleased", "Scheduling", fmt.Sprintf("room is not held any more for gang %s: %s", h.gang, why))
	}
}

// useHold ends the hold of a gang that has its places: its pods are where they were nominated, or what was held is
// free.
func (c *heldCapacity) useHold(key cluster.GangKey) {
	if c.hold != nil && c.hold.gang == key {
		c.e.emit(GangHeld{Gang: key, Took: c.e.now - c.hold.since, Placed: true})
		c.e.deadlines.Stop(&c.hold.until)
		c.hold = nil
		c.e.queue.RestoreBackoff(key)
	}
}

// endHold ends a hold whose time has come or whose gang does not wait any more.
func (c *heldCapacity) endHold() {
	switch {
	case c.hold == nil:
	case c.holder() == nil || c.holder().Gate != "" || c.holder().Extra():
		c.dropHold("it does not wait for room")
	case c.e.now >= c.hold.until.At():
		c.dropHold("its time is over")
	}
}
