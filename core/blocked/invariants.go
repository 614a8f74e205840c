// SPDX-License-Identifier: Apache-2.0

package blocked

import (
	"fmt"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// CheckInvariants returns the first invariant of the fields that does not hold, nil if all hold. The histories of
// core/engine call it after each step, since this package has no histories of its own.
func (g *Gangs) CheckInvariants() error {
	now := g.cfg.Host.Now()
	for key, h := range g.of { // order: any violation suffices
		switch {
		case key == (cluster.GangKey{}):
			return fmt.Errorf("something is known of no gang")
		case len(h.spared) > mostSpared:
			return fmt.Errorf("gang %s keeps %d places from surplus members", key, len(h.spared))
		case h.since > now:
			return fmt.Errorf("gang %s is blocked since %d, at %d", key, h.since, now)
		case h.scaleUp.At() != 0 && h.scaleUp.At() <= now:
			return fmt.Errorf("gang %s requests nodes until %d, and it is %d", key, h.scaleUp.At(), now)
		case g.cfg.Cluster.GangHolds(key) == 0 && !g.cfg.Queue.HasGang(key):
			return fmt.Errorf("gang %s has no pods, and its attempts are known", key)
		}
	}
	if err := g.checkDue(); err != nil {
		return err
	}
	return g.checkHold()
}

// checkDue checks which gangs are due, and that the first of them is about to be tried.
func (g *Gangs) checkDue() error {
	now := g.cfg.Host.Now()
	var first *queue.Unit
	for key, h := range g.of { // order: any violation suffices
		due := h.dueAt != 0 && h.dueAt <= now
		switch {
		case due != g.due[key]:
			return fmt.Errorf("gang %s is due at %d, and at %d due: %v", key, h.dueAt, now, g.due[key])
		case !due && h.due.At() != h.dueAt || due && h.due.At() != 0:
			return fmt.Errorf("gang %s is due at %d, with a deadline at %d", key, h.dueAt, h.due.At())
		case h.dueAt != 0 && (h.since == 0 || g.hold != nil && g.hold.gang == key):
			return fmt.Errorf("gang %s is due at %d, and blocked since %d", key, h.dueAt, h.since)
		}
		if u := g.unit(key); due && u != nil && !u.Extra() && (first == nil || g.cfg.Queue.Before(u, first)) {
			first = u
		}
	}
	if first == nil || !g.winsHold(first) {
		return nil
	}
	if _, where, _ := g.cfg.Queue.Lookup(first.UID()); where == record.Unschedulable {
		return fmt.Errorf("gang %s is due, no gang before it holds capacity, and it waits for an event", first.Gang)
	}
	return nil
}

func (g *Gangs) checkHold() error {
	h, now, limit := g.hold, g.cfg.Host.Now(), g.cfg.Hold.For
	switch {
	case g.budget.pausedUntil > g.budget.full:
		return fmt.Errorf("nothing is held until %d, and the budget is full at %d", g.budget.pausedUntil, g.budget.full)
	case h == nil && g.budget.full > now+limit:
		return fmt.Errorf("the budget of holds is full at %d, and it is %d", g.budget.full, now)
	case h == nil:
		return nil
	case now < g.budget.pausedUntil:
		return fmt.Errorf("capacity is held for gang %s in a pause until %d, and it is %d", h.gang,
			g.budget.pausedUntil, now)
	case h.until.At() > h.since+limit-max(g.budget.full-h.since, 0):
		return fmt.Errorf("capacity is held for gang %s from %d until %d, and the budget was full at %d", h.gang,
			h.since, h.until.At(), g.budget.full)
	}
	switch u := g.cfg.Queue.Gang(h.gang); {
	case u == nil || u.Gate != "" || u.Extra():
		return fmt.Errorf("capacity is held for gang %s, which does not wait for it", h.gang)
	case h.until.At() <= now:
		return fmt.Errorf("capacity is held for gang %s until %d, and it is %d", h.gang, h.until.At(), now)
	case h.backfill.estimated > now || h.backfill.estimated == 0 && h.backfill.start != 0:
		return fmt.Errorf("the start of gang %s at %d was estimated at %d, and it is %d", h.gang, h.backfill.start,
			h.backfill.estimated, now)
	case h.backfill.next.At() != 0 && h.backfill.next.At() <= now:
		return fmt.Errorf("pods on capacity of gang %s are to be gone by %d, and it is %d", h.gang,
			h.backfill.next.At(), now)
	case g.of[h.gang] == nil:
		return fmt.Errorf("capacity is held for gang %s, of which nothing is known", h.gang)
	}
	return nil
}

// CheckWaiting returns the first gang that keeps places from surplus members and does not wait for them, as an error:
// the slow form of what Changed follows.
func (g *Gangs) CheckWaiting() error {
	for key, h := range g.of { // order: any violation suffices
		if u := g.unit(key); len(h.spared) > 0 && (u == nil || u.Extra()) {
			return fmt.Errorf("places are kept from surplus members for gang %s, which does not wait for them", key)
		}
	}
	return nil
}
