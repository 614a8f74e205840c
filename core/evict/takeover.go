// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// TakeOver takes over, once all pods are known, what a scheduler before this one began: gangs that are evicted in
// part, capacity that was freed for gangs, and victims that may not terminate.
func (m *Manager) TakeOver() {
	m.synced = true
	m.findWhole()
	for _, sub := range []record.SubQueue{record.Active, record.Backoff, record.Gated, record.Unschedulable} {
		m.queue.Each(sub, func(u *queue.Unit) {
			if u.Gang == (cluster.GangKey{}) {
				m.findChecks(u)
			} else {
				m.findGang(u)
			}
		})
	}
}

// findGang takes over the capacity that was freed for a gang: its pods are nominated, and victims may still terminate.
func (m *Manager) findGang(u *queue.Unit) {
	s := m.store.Snapshot()
	ev := &Eviction{
		unit: Unit{Gang: u.Gang}, state: Draining, asked: u.Pod().Ref(), owner: OwnerOfGang(u.Gang),
		left: map[cluster.UID]leaving{}, from: map[string]bool{}}
	found := false
	priority := m.priority(u.Gang, u.Members)
	if sets := m.Preemptors(u.Gang, m.host.Need(u)); len(sets) > 0 {
		priority = sets[0].Priority // as which it may have requested evictions
	}
	for _, p := range u.Members {
		node := m.queue.NominationOf(p.UID)
		found = found || node != ""
		if n, ok := s.Find(node); ok && node != "" {
			s.EachPod(n, func(v *cluster.Pod, _ bool) {
				if v.Preempted && v.Spec.Priority < priority {
					ev.left[v.UID] = deleted
				}
			})
		}
	}
	if found {
		m.add(ev)
		if prof := m.host.Profile(u.Pod().Spec.SchedulerName); prof != nil && prof.Preemption != nil {
			m.watchVictims(prof, 0, victimCheck{unit: ev.unit})
		}
	}
}

// findChecks has the victims checked that a scheduler before this one had evicted for a pod by itself.
func (m *Manager) findChecks(u *queue.Unit) {
	p := u.Pod()
	prof := m.host.Profile(p.Spec.SchedulerName)
	if prof == nil || prof.Preemption == nil || m.queue.NominationOf(p.UID) == "" {
		return
	}
	c := victimCheck{unit: Unit{Pod: p.UID}}
	if c.at = m.firstOverdue(prof, c.unit); c.at != 0 {
		m.checkAt(c)
	}
}
