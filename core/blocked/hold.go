// SPDX-License-Identifier: Apache-2.0

package blocked

import (
	"fmt"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/deadline"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/message"
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
// ends with its time or the budget of all holds (budget.go), and the gang does not get another one until as much time
// has gone by, or twice as much if other gangs are blocked, one of which may hold after the pause.
//
// A gang whose best try found no place holds nothing, so that it does not keep others from the hold. That counts if no
// other gang held capacity then: what another one holds looks taken to a gang that goes before it.
//
// Rejected: to hold whole nodes (a gang of small pods would empty the cluster), and to hold for each blocked gang (see
// above).

// The times of a hold, where the configuration has none: how long a gang must have been blocked, and how long it holds.
const (
	DefaultHoldAfter = 10 * record.Second
	DefaultHoldFor   = 300 * record.Second
)

// holdFor considers a gang that has just been rejected: it gets the hold, keeps it, or loses it.
func (g *Gangs) holdFor(a gang.Attempt) {
	h, ans, now := g.historyOf(a.Gang), a.Answer, g.cfg.Host.Now()
	if h.since == 0 {
		h.since, h.firstPlaced = now, ans.Most
	}
	mine := g.hold != nil && g.hold.gang == a.Gang
	if mine {
		ans.Most, ans.Partial = g.placesWithoutBackfilled(a)
	}
	if g.hold == nil || mine || ans.Most > 0 {
		h.noPlace = ans.Most <= 0
	}
	switch {
	case ans.Verdict != gang.Unschedulable && ans.Verdict != gang.GaveUp:
		if mine {
			g.dropHold("it cannot be placed by waiting")
		}
		g.setDue(a.Gang, h, 0)
		return
	case mine && h.noPlace:
		g.dropHold("there is none")
		return
	case !mine:
		from := g.holdsFrom(h)
		switch {
		case from == 0 || now < from:
			g.setDue(a.Gang, h, wholeSecond(from))
			return
		case !g.winsHold(g.cfg.Queue.Gang(a.Gang)):
			g.setDue(a.Gang, h, now)
			return
		}
		g.setDue(a.Gang, h, 0)
		if g.hold != nil {
			g.releaseHold("a gang goes before it")
		}
		g.beginHold(a)
	}
	g.holdPlaces(a, ans.Partial)
}

// holdsFrom returns when a gang may hold capacity at the earliest, whatever other gangs hold; 0 if it has no place to
// hold. It must be blocked.
func (g *Gangs) holdsFrom(h *history) record.Time {
	if g.cfg.Hold.For == 0 || h.noPlace {
		return 0
	}
	return max(h.since+g.cfg.Hold.After, h.noHoldUntil, g.budget.pausedUntil)
}

// winsHold reports whether no gang holds capacity, or one that a unit goes before, and not for the rest of the budget.
func (g *Gangs) winsHold(u *queue.Unit) bool {
	other := g.holder()
	return other == nil || g.budgetLeft() > 0 && g.cfg.Queue.Before(u, other)
}

// budgetLeft returns for how long capacity may be held from now on.
func (g *Gangs) budgetLeft() record.Time {
	now := g.cfg.Host.Now()
	since := now
	if g.hold != nil {
		since = g.hold.since
	}
	return g.budget.left(since, now, g.cfg.Hold.For)
}

// beginHold gives the hold to a gang. No other gang may have it.
func (g *Gangs) beginHold(a gang.Attempt) {
	now, long := g.cfg.Host.Now(), min(g.holdTime(a), g.budgetLeft())
	g.hold = g.newHold(a.Gang, now)
	g.cfg.Deadlines.Set(&g.hold.until, now+long)
	g.cfg.Queue.SkipBackoff(a.Gang)
	g.writeEvent(a.Waiting[0], "HoldingRoom",
		fmt.Sprintf("room for %d of %d pods of gang %s is held for it, for %d s at most",
			a.Answer.Most, a.Need.Quorum, a.Gang, long/record.Second))
}

// newHold returns a hold without an end.
func (g *Gangs) newHold(key cluster.GangKey, since record.Time) *hold {
	return &hold{
		gang: key, since: since, until: deadline.Entry{Phase: g.cfg.FirstPhase + phaseHold},
		backfill: backfill{next: deadline.Entry{Phase: g.cfg.FirstPhase + phaseBackfill}},
	}
}

// holdTime returns how long capacity is held for a gang: not longer than its members may wait for each other. Other
// schedulers let members wait for each other in placements that they have taken; a hold corresponds to that.
func (g *Gangs) holdTime(a gang.Attempt) record.Time {
	long := g.cfg.Hold.For
	shorten := func(timeout record.Time) {
		if timeout > 0 {
			long = min(long, timeout)
		}
	}
	if obj := g.cfg.Cluster.GangObject(a.Gang); obj != nil {
		shorten(obj.Timeout)
	}
	for _, p := range a.Waiting {
		shorten(p.Gang.Timeout)
	}
	return long
}

// dropHold gives held capacity up, if there is any, and makes its gang pause.
func (g *Gangs) dropHold(why string) {
	h := g.hold
	if h == nil {
		return
	}
	if of := g.of[h.gang]; of != nil {
		of.noHoldUntil = g.pauseOf(h)
	}
	g.releaseHold(why)
}

// pauseOf returns until when the gang of a hold that ends now may not hold capacity again.
func (g *Gangs) pauseOf(h *hold) record.Time {
	now := g.cfg.Host.Now()
	held := now - h.since
	if g.othersWait(h.gang) {
		return now + 2*held
	}
	return now + held
}

// othersWait reports whether a gang other than the given one is blocked and may hold capacity.
func (g *Gangs) othersWait(key cluster.GangKey) bool {
	for other, h := range g.of { // order: one suffices
		blocked := h.verdict == gang.Unschedulable || h.verdict == gang.GaveUp
		if u := g.unit(other); other != key && blocked && !h.noPlace && u != nil && !u.Extra() {
			return true
		}
	}
	return false
}

// releaseHold ends the hold of a gang that has it, without its places, and wakes the pods that may have them.
func (g *Gangs) releaseHold(why string) {
	h := g.hold
	g.endedHold(false)
	if of := g.of[h.gang]; of != nil {
		g.setDue(h.gang, of, wholeSecond(g.holdsFrom(of)))
	}
	for _, p := range h.pods {
		g.cfg.Queue.Unnominate(p.UID)
	}
	if len(h.pods) > 0 {
		g.writeEvent(h.pods[0], "RoomReleased", fmt.Sprintf("room is not held any more for gang %s: %s", h.gang, why))
	}
}

// useHold ends the hold of a gang that has its places: its pods are where they were nominated, or what was held is
// free.
func (g *Gangs) useHold(key cluster.GangKey) {
	if g.hold != nil && g.hold.gang == key {
		g.endedHold(true)
	}
}

// endedHold ends the hold that there is, and the budget of all holds pays for it. In a pause no gang is due.
func (g *Gangs) endedHold(placed bool) {
	h, now := g.hold, g.cfg.Host.Now()
	g.hold = nil
	g.cfg.Deadlines.Stop(&h.until)
	g.cfg.Deadlines.Stop(&h.backfill.next)
	g.cfg.Queue.RestoreBackoff(h.gang)
	g.cfg.Host.Emit(message.GangHeld{Gang: h.gang, Took: now - h.since, Placed: placed,
		Backfilled: h.backfill.placed, Overran: h.backfill.overran})
	g.budget.use(h.since, now, g.cfg.Hold.For)
	for key := range g.due { // order: each by itself
		g.setDue(key, g.of[key], wholeSecond(g.holdsFrom(g.of[key])))
	}
	g.look = true
}

// endHold ends a hold whose time has come or whose gang does not wait any more.
func (g *Gangs) endHold() {
	switch {
	case g.hold == nil:
	case g.holder() == nil || g.holder().Gate != "" || g.holder().Extra():
		g.dropHold("it does not wait for room")
	case g.cfg.Host.Now() >= g.hold.until.At():
		g.dropHold("its time is over")
	}
}

func (g *Gangs) writeEvent(about *cluster.Pod, reason, note string) {
	g.cfg.Host.Emit(message.WriteEvent{
		Pod: about.Ref(), Type: "Normal", Reason: reason, Action: "Scheduling", Note: note})
}
