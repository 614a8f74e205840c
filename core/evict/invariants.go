// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"fmt"
	"slices"
)

// CheckInvariants returns the first invariant of the manager's fields that does not hold, nil if all hold. The
// histories of core/engine call it after each step, since this package has no tests of its own.
func (m *Manager) CheckInvariants() error {
	gangs, victims := 0, 0
	for u, ev := range m.of { // order: any violation suffices
		if ev.unit != u {
			return fmt.Errorf("the eviction of %v is known as that of %v", ev.unit, u)
		}
		if u.isGang() {
			gangs++
		}
		victims += len(ev.left)
		for uid := range ev.left { // order: any violation suffices
			if !slices.Contains(m.byVictim[uid], ev) {
				return fmt.Errorf("the eviction of %v is not known by its victim %s", u, uid)
			}
		}
		if (ev.stalled != 0) != (ev.stallEnd.At() != 0) {
			return fmt.Errorf("%v is stalled since %d, which ends at %d", u, ev.stalled, ev.stallEnd.At())
		}
	}
	listed := 0
	for uid, list := range m.byVictim { // order: any violation suffices
		if len(list) == 0 {
			return fmt.Errorf("victim %s has an empty list of evictions", uid)
		}
		listed += len(list)
	}
	if gangs != m.gangs || listed != victims {
		return fmt.Errorf("%d evictions of gangs, %d counted; %d victims, %d known", gangs, m.gangs, victims, listed)
	}
	for key, w := range m.whole { // order: any violation suffices
		if w.gang != key || (w.state == Failed) != (w.retry.At() != 0) {
			return fmt.Errorf("gang %v goes whole as %v, in state %d, checked at %d", key, w.gang, w.state,
				w.retry.At())
		}
	}
	if err := m.checkDeadlines(); err != nil {
		return err
	}
	if err := m.pending.checkInvariants(); err != nil {
		return err
	}
	for by, pods := range m.budgets.charges { // order: any violation suffices
		if len(pods) == 0 {
			return fmt.Errorf("charge %v has no victims", by)
		}
	}
	if err := m.checkDelays(); err != nil {
		return err
	}
	return m.pauses.checkInvariants()
}

func (m *Manager) checkDelays() error {
	ds, waiting := &m.delays, 0
	for u, d := range ds.of { // order: any violation suffices
		switch {
		case u.isGang() && !m.queue.HasGang(u.Gang) && m.store.Snapshot().GangHolds(u.Gang) == 0,
			!u.isGang() && !m.host.Pending(u.Pod):
			return fmt.Errorf("%v does not wait, and is unschedulable since %d", u, d.since)
		case d.end == 0:
			continue
		}
		waiting++
		if i, known := ds.find(d.end); !known || !ds.ends[i].units[u] {
			return fmt.Errorf("%v does not wait for the end of its delay at %d", u, d.end)
		}
	}
	for i, e := range ds.ends {
		if waiting -= len(e.units); len(e.units) == 0 || i > 0 && ds.ends[i-1].at >= e.at {
			return fmt.Errorf("%d units wait for %d, the end after %d", len(e.units), e.at, ds.ends[max(i, 1)-1].at)
		}
	}
	if waiting != 0 {
		return fmt.Errorf("%d units more wait for ends of delays than are known", -waiting)
	}
	if due := ds.due.At(); len(ds.ends) > 0 && due != ds.ends[0].at || len(ds.ends) == 0 && due != 0 {
		return fmt.Errorf("the first of %d ends of delays is due at %d", len(ds.ends), due)
	}
	return nil
}

func (m *Manager) checkDeadlines() error {
	for i, d := range m.deferred {
		if i > 0 && m.deferred[i-1].at > d.at {
			return fmt.Errorf("deferred wake-up %d is at %d, the one before it at %d", i, d.at, m.deferred[i-1].at)
		}
	}
	if due := m.wakeDue.At(); len(m.deferred) > 0 && due != m.deferred[0].at || len(m.deferred) == 0 && due != 0 {
		return fmt.Errorf("the first of %d deferred wake-ups is due at %d", len(m.deferred), due)
	}
	for i, c := range m.checks {
		if i > 0 && m.checks[i-1].at > c.at {
			return fmt.Errorf("victim check %d is at %d, the one before it at %d", i, c.at, m.checks[i-1].at)
		}
	}
	if due := m.checkDue.At(); len(m.checks) > 0 && due != m.checks[0].at || len(m.checks) == 0 && due != 0 {
		return fmt.Errorf("the first of %d victim checks is due at %d", len(m.checks), due)
	}
	return nil
}

func (pe *pendingEvictions) checkInvariants() error {
	sum := 0
	for key, n := range pe.count { // order: any violation suffices
		if n <= 0 {
			return fmt.Errorf("gang %v has %d pending evictions", key, n)
		}
		sum += n
	}
	if sum != len(pe.of) {
		return fmt.Errorf("%d evictions of pods are pending, %d counted", len(pe.of), sum)
	}
	return nil
}

func (ps *pauses) checkInvariants() error {
	for o, l := range ps.of { // order: any violation suffices
		waits := len(l.waits) > 0
		if waits != slices.Contains(ps.waited, o) || waits != (l.end.At() != 0) {
			return fmt.Errorf("%d pods wait for the end of the pause of %v, at %d", len(l.waits), o, l.end.At())
		}
	}
	for i, o := range ps.waited {
		if ps.of[o] == nil || slices.Contains(ps.waited[:i], o) {
			return fmt.Errorf("owner %v is waited for twice, or unknown", o)
		}
	}
	return nil
}
