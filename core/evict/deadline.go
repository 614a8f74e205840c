// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"cmp"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/deadline"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// The phases of a tick that handle deadlines, in the order in which they are run.
const (
	phasePauses deadline.Phase = iota // pauses end
	phaseWhole                        // the rest of gangs that go whole is requested
	phaseStalls                       // gangs that cannot be tried give up their capacity
	phaseWakes                        // deferred wake-ups
	phaseChecks                       // victims that do not terminate
	phaseDelays                       // delays end
	// Phases is how many there are.
	Phases
)

// Tick follows the time. due are the phases that have a deadline, as bits; what only a deadline can change is not
// looked at otherwise.
func (m *Manager) Tick(due uint64) {
	is := func(p deadline.Phase) bool { return due&(1<<p) != 0 }
	if is(phasePauses) {
		m.pauses.wake(m.host.Now())
	}
	m.pauses.sweep(m.host.Now())
	if is(phaseWhole) {
		m.finishWhole()
	}
	m.endStalled() // at each tick, since it observes gates
	if is(phaseWakes) {
		m.wakeDeferred()
	}
	if is(phaseChecks) {
		m.checkVictims()
	}
	if is(phaseDelays) {
		m.endDelays()
	}
}

// victimCheck is when the victims of a unit are checked, whether they terminate.
type victimCheck struct {
	at   record.Time // kept
	unit Unit        // kept
	// decision requested the victims; a later one has a check of its own.
	decision uint64 // kept
	// refused tries the pod whatever its victims do: evictions for it were refused.
	refused bool // kept
}

// checkAt notes a check. The checks are in the order of their times.
func (m *Manager) checkAt(c victimCheck) {
	at, _ := slices.BinarySearchFunc(m.checks, c, func(a, b victimCheck) int {
		return cmp.Or(cmp.Compare(a.at, b.at), -1)
	})
	m.checks = slices.Insert(m.checks, at, c)
	m.deadlines.Set(&m.checkDue, m.checks[0].at)
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
	m.deadlines.Stop(&m.checkDue)
	if len(m.checks) > 0 {
		m.deadlines.Set(&m.checkDue, m.checks[0].at)
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
		if at := m.overdueAt(prof, p, gaveUp); at != 0 && (first == 0 || at < first) {
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
			m.deadlines.Stop(&ev.stallEnd)
		case ev.stalled == 0:
			ev.stalled = m.host.Now()
			ev.stallEnd.Phase = phaseStalls
			m.deadlines.Set(&ev.stallEnd, ev.stalled+m.stallTime)
		case m.host.Now() >= ev.stalled+m.stallTime:
			lost := m.denominateGang(ev.unit.Gang)
			m.EndGang(ev.unit.Gang, "too few of its pods are there")
			m.host.Denominated(lost, u.GateReason)
		}
	}
}
