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
func (g *Gangs) holdFor(a gang.Attempt) {
	h, ans, now := g.historyOf(a.Gang), a.Answer, g.cfg.Host.Now()
	if h.since == 0 {
		h.since, h.firstPlaced = now, ans.Most
	}
	mine := g.hold != nil && g.hold.gang == a.Gang
	if ans.Verdict != gang.Unschedulable && ans.Verdict != gang.GaveUp {
		if mine {
			g.dropHold("it cannot be placed by waiting")
		}
		return
	}
	if !mine {
		if g.cfg.Hold.For == 0 || now < h.since+g.cfg.Hold.After || now < h.noHoldUntil {
			return
		}
		if other := g.holder(); other != nil && !g.cfg.Queue.Before(g.cfg.Queue.Gang(a.Gang), other) {
			return
		}
		g.dropHold("a gang goes before it")
		g.beginHold(a)
	}
	g.hold.pods = g.hold.pods[:0]
	for i, p := range a.Need.Members {
		if i < len(ans.Partial) && ans.Partial[i] != cluster.NoNode {
			g.cfg.Queue.Nominate(p, g.cfg.Cluster.NodeName(ans.Partial[i]))
			g.hold.pods = append(g.hold.pods, p)
		}
	}
}

// beginHold gives the hold to a gang. No other gang may have it.
func (g *Gangs) beginHold(a gang.Attempt) {
	now, long := g.cfg.Host.Now(), g.holdTime(a)
	g.hold = &hold{gang: a.Gang, since: now, until: deadline.Entry{Phase: g.cfg.FirstPhase + phaseHold}}
	g.cfg.Deadlines.Set(&g.hold.until, now+long)
	g.cfg.Queue.SkipBackoff(a.Gang)
	g.writeEvent(a.Waiting[0], "HoldingRoom",
		fmt.Sprintf("room for %d of %d pods of gang %s is held for it, for %d s at most",
			a.Answer.Most, a.Need.Quorum, a.Gang, long/record.Second))
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

// holder returns the unit that holds capacity; nil when none does.
func (g *Gangs) holder() *queue.Unit {
	if g.hold == nil {
		return nil
	}
	return g.cfg.Queue.Gang(g.hold.gang)
}

// dropHold gives held capacity up, and wakes the pods that may have it.
func (g *Gangs) dropHold(why string) {
	h, now := g.hold, g.cfg.Host.Now()
	if h == nil {
		return
	}
	g.hold = nil
	g.cfg.Deadlines.Stop(&h.until)
	g.cfg.Queue.RestoreBackoff(h.gang)
	g.cfg.Host.Emit(message.GangHeld{Gang: h.gang, Took: now - h.since})
	if of := g.of[h.gang]; of != nil {
		of.noHoldUntil = now + now - h.since
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
		g.cfg.Host.Emit(message.GangHeld{Gang: key, Took: g.cfg.Host.Now() - g.hold.since, Placed: true})
		g.cfg.Deadlines.Stop(&g.hold.until)
		g.hold = nil
		g.cfg.Queue.RestoreBackoff(key)
	}
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
