// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"cmp"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// victimCheck is when the victims of a unit are checked, whether they terminate.
type victimCheck struct {
	at   record.Time
	unit Unit
	// decision requested the victims; a later one has a check of its own.
	decision uint64
	// refused tries the pod whatever its victims do: evictions for it were refused.
	refused bool
}

// checkAt notes a check. The checks are in the order of their times.
func (m *Manager) checkAt(c victimCheck) {
	at, _ := slices.BinarySearchFunc(m.checks, c, func(a, b victimCheck) int { return cmp.Or(cmp.Compare(a.at, b.at), -1) })
	m.checks = slices.Insert(m.checks, at, c)
}

// watchVictims has the victims of a unit checked when they could first be overdue. Those that were evicted now have no
// end of their grace period yet; it is not before now.
func (m *Manager) watchVictims(prof *Profile, gaveUp int, c victimCheck) {
	if prof.Preemption.VictimTimeout == 0 {
		return
	}
	if c.at = m.firstOverdue(prof, c.unit); c.at == 0 {
		c.at = m.host.Now() + patience(prof, gaveUp)
	}
	m.checkAt(c)
}

// checkVictims tries the units again whose victims do not terminate.
func (m *Manager) checkVictims() {
	for len(m.checks) > 0 && m.checks[0].at <= m.host.Now() {
		c := m.checks[0]
		m.checks = slices.Delete(m.checks, 0, 1)
		u, prof := m.waitsFor(c)
		switch {
		case u == nil:
			continue
		case c.refused:
			m.queue.Activate([]record.PodRef{u.Pod().Ref()})
			continue
		}
		at := m.firstOverdue(prof, c.unit)
		switch {
		case at == 0: // nothing of it is seen to terminate, or all that does was reported
			at = m.host.Now() + prof.Preemption.VictimTimeout
		case at <= m.host.Now():
			m.queue.Activate([]record.PodRef{u.Pod().Ref()})
			at = m.host.Now() + prof.Preemption.VictimTimeout
		}
		c.at = at
		m.checkAt(c)
	}
}

// waitsFor returns the unit of the queue that waits for the victims of a check, nil for none that does.
func (m *Manager) waitsFor(c victimCheck) (u *queue.Unit, prof *Profile) {
	if ev := m.of[c.unit]; c.unit.isGang() {
		if ev == nil || ev.decision != c.decision {
			return nil, nil
		}
		u = m.queue.Gang(c.unit.Gang)
	} else {
		if ev != nil && ev.state != Failed && ev.decision != c.decision {
			return nil, nil
		}
		u, _, _ = m.queue.Lookup(c.unit.Pod)
	}
	if u == nil {
		return nil, nil
	}
	prof = m.host.Profile(u.Pod().Spec.SchedulerName)
	if prof == nil || prof.Preemption == nil {
		return nil, nil
	}
	return u, prof
}

// firstOverdue returns when the first of the victims of a unit is overdue; 0 if none is seen to terminate.
func (m *Manager) firstOverdue(prof *Profile, u Unit) (first record.Time) {
	s := m.store.Snapshot()
	earlier := func(p *cluster.Pod, gaveUp int) {
		if at := overdueAt(prof, p, gaveUp); at != 0 && (first == 0 || at < first) {
			first = at
		}
	}
	if u.isGang() {
		ev := m.of[u]
		for uid := range ev.left { // order: the least of all
			if p, _, _, there := s.PodOn(uid); there && !ev.told[uid] {
				earlier(p, ev.gaveUp)
			}
		}
	} else if n, ok := s.Find(m.queue.NominationOf(u.Pod)); ok {
		s.EachPod(n, func(p *cluster.Pod, _ bool) {
			if p.Preempted {
				earlier(p, m.gaveUp(u.Pod))
			}
		})
	}
	return first
}

// endStalled gives up the capacity of gangs that could not be tried for as long as a hold lasts: too few of their pods
// are there.
func (m *Manager) endStalled() {
	for _, ev := range m.ofGangs() {
		u := m.queue.Gang(ev.unit.Gang)
		switch {
		case u == nil || u.Gate == "" || u.Gate == plugin.DefaultPreemptionName:
			ev.stalled = 0
		case ev.stalled == 0:
			ev.stalled = m.host.Now()
		case m.host.Now() >= ev.stalled+m.stallTime:
			lost := m.denominateGang(ev.unit.Gang)
			m.EndGang(ev.unit.Gang, "too few of its pods are there")
			m.host.Denominated(lost, u.GateReason)
		}
	}
}

// nextStall returns when the first of them gives its capacity up; 0 for no time.
func (m *Manager) nextStall() (at record.Time) {
	if m.gangs == 0 {
		return 0
	}
	for _, ev := range m.of { // order: the least of all
		if end := ev.stalled + m.stallTime; ev.stalled != 0 && (at == 0 || end < at) {
			at = end
		}
	}
	return at
}

// Tick follows the time. Each deadline that has come is handled, in this order.
func (m *Manager) Tick() {
	m.pauses.tick(m.host.Now()) // 1. pauses end
	m.finishWhole()             // 2. the rest of gangs that go whole is requested
	m.endStalled()              // 3. gangs that cannot be tried give up their capacity
	m.wakeDeferred()            // 4. deferred wake-ups
	m.checkVictims()            // 5. victims that do not terminate
}

// Next returns when Tick is wanted at the latest; 0 for no time.
func (m *Manager) Next() (at record.Time) {
	least := func(t record.Time) {
		if t != 0 && (at == 0 || t < at) {
			at = t
		}
	}
	least(m.nextStall())
	if len(m.deferred) > 0 {
		least(m.deferred[0].at)
	}
	least(m.nextFinish())
	least(m.pauses.next())
	if len(m.checks) > 0 {
		least(m.checks[0].at)
	}
	return at
}
