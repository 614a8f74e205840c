// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// A pod that fits nowhere may have others evicted. The evictions run beside the loop: a request asks for them, and an
// answer comes back. Meanwhile the pod is nominated to the node, so that no other of its priority or less takes the
// capacity, and a gate keeps it from being tried. The gate opens with an answer that failed, or once every victim is
// seen to terminate: the last end of a victim, which wakes the pod, must not find it closed. An answer that all were
// deleted does not open it: the watch is behind the answer, and until it shows the victims terminating there is
// nothing to be tried.
//
// No event asks the gate. Of a hundred pods that wait for their victims each end of a victim helps one, and would wake
// all. What opens a gate tries the pod behind it, if anything wanted to wake it meanwhile: at once when all victims
// are gone, and a little later while some of them terminate. Mostly what wanted to wake it was the end of others'
// victims, and the end of its own is near.
//
// Until all victims are seen to terminate the pod evicts no other pods, whatever wakes it.

// Preempting reports whether evictions for a pod by itself are under way, or not seen yet.
func (m *Manager) Preempting(uid cluster.UID) bool {
	ev := m.current(uid)
	s := m.store.Snapshot()
	return ev != nil && ev.any(func(victim cluster.UID, how leaving) bool { return how == deleted && stays(s, victim) })
}

// Awaited reports whether pods that leave for another one still have their place, and nothing on them says that they
// go.
func (m *Manager) Awaited(uid cluster.UID) bool {
	ev := m.current(uid)
	s := m.store.Snapshot()
	return ev != nil && ev.any(func(victim cluster.UID, how leaving) bool {
		return how == deleted && stays(s, victim) || how == withdrawn && m.host.Withdrawn(victim)
	})
}

// CountsOn returns the node on which a pod counts: where it is nominated, or where its victims have their place still
// although a pod of higher priority took the nomination. Its gate keeps it from being tried then, but for profiles
// that have none.
func (m *Manager) CountsOn(p *cluster.Pod) string {
	if node := m.queue.NominationOf(p.UID); node != "" {
		return node
	}
	if p.Nominated == "" && m.Awaited(p.UID) {
		return m.current(p.UID).node
	}
	return p.Nominated
}

// HasEvictions reports whether evictions for a pod by itself are known, or are delayed: what is found for it says
// nothing of pods that are alike.
func (m *Manager) HasEvictions(uid cluster.UID) bool {
	d := m.delays.of[Unit{Pod: uid}]
	return m.current(uid) != nil || d != nil && d.end != 0
}

// GangGate returns why the gate of a gang is shut while evictions for it are under way, and until when: it is shut
// until the answer, or until every victim is seen to terminate. It is shut, too, between a failure and the time to
// request the rest.
func (m *Manager) GangGate(key cluster.GangKey) (reason string, until record.Time, shut bool) {
	ev := m.gang(key)
	s := m.store.Snapshot()
	switch {
	case ev == nil || !m.evictsAside(key):
	case ev.state == Failed && ev.retry > m.host.Now():
		return "pods could not be evicted for this gang; it is tried again soon", ev.retry, true
	case ev.state == Requested && ev.any(func(uid cluster.UID, how leaving) bool {
		return how == deleted && stays(s, uid)
	}):
		return "waiting for the preemption for this gang to be finished", 0, true
	}
	return "", 0, false
}

// evictsAside reports whether the gang's profile carries evictions out beside the loop.
func (m *Manager) evictsAside(key cluster.GangKey) bool {
	u := m.queue.Gang(key)
	if u == nil {
		return false
	}
	prof := m.host.Profile(u.Pod().Spec.SchedulerName)
	return prof.Preemption != nil && !prof.Preemption.Sync
}

// wakeOpened tries a pod whose gate has opened, if something wanted to wake it while it was closed.
func (m *Manager) wakeOpened(pod record.PodRef) {
	uid := cluster.UID(pod.UID)
	m.memberGateOpens(uid)
	if !m.waitsAtOpenGate(uid) {
		return
	}
	s := m.store.Snapshot()
	goes := func(victim cluster.UID, how leaving) bool { return how == deleted && there(s, victim) }
	if ev := m.current(uid); ev != nil && ev.any(goes) {
		if ev.wakeAt == 0 {
			ev.wakeAt = m.host.Now() + wakePatience
			m.deferred = append(m.deferred, deferredWakeup{ev.wakeAt, pod})
			m.deadlines.Set(&m.wakeDue, m.deferred[0].at)
		}
		return
	}
	m.queue.Activate([]record.PodRef{pod})
}

// memberGateOpens asks the gates of a gang again if the evictions for one of its pods kept it back: the pod requested
// them before it was in the gang.
func (m *Manager) memberGateOpens(uid cluster.UID) {
	if u, _, _ := m.queue.Lookup(uid); u != nil && u.Gang != (cluster.GangKey{}) && !m.Preempting(uid) {
		m.host.Reconsider(u.Gang, "the evictions for one of its pods are carried out")
	}
}

// waitsAtOpenGate reports whether a pod waits behind a gate that is open, and something wanted to wake it.
func (m *Manager) waitsAtOpenGate(uid cluster.UID) bool {
	u, _, _ := m.queue.Lookup(uid)
	return u != nil && u.Gate == plugin.DefaultPreemptionName && !m.Preempting(uid)
}

// wakePatience is how long the end of victims that terminate is waited for before a pod is tried that something else
// wanted to wake.
const wakePatience = record.Second

// deferredWakeup is a pod to be tried if it still waits then.
type deferredWakeup struct {
	at  record.Time   // kept
	pod record.PodRef // kept
}

// wakeDeferred tries the pods whose victims were waited for long enough.
func (m *Manager) wakeDeferred() {
	for len(m.deferred) > 0 && m.deferred[0].at <= m.host.Now() {
		pod := m.deferred[0].pod
		if m.deferred = m.deferred[1:]; m.waitsAtOpenGate(cluster.UID(pod.UID)) {
			m.queue.Activate([]record.PodRef{pod})
		}
	}
	m.deadlines.Stop(&m.wakeDue)
	if len(m.deferred) > 0 {
		m.deadlines.Set(&m.wakeDue, m.deferred[0].at)
	}
}

// remaining reports whether victims of a gang have their place still, and go: no other pod is evicted for it until
// then. Those on a node that is gone are not waited for, nor those that are overdue.
func (m *Manager) remaining(prof *Profile, ev *Eviction) bool {
	if ev == nil {
		return false
	}
	s := m.store.Snapshot()
	return ev.any(func(uid cluster.UID, how leaving) bool {
		p, n, _, there := s.PodOn(uid)
		switch {
		case how == withdrawn:
			return m.host.Withdrawn(uid)
		case !there || s.Node(n) == nil || how == awaited:
			return false
		}
		return p.Terminating && !m.overdue(prof, p, ev.gaveUp) || !p.Terminating && ev.state != Failed
	})
}

// Remaining reports whether victims of a gang have their place still, and go.
func (m *Manager) Remaining(prof *Profile, key cluster.GangKey) bool {
	return m.remaining(prof, m.gang(key))
}

// Known reports whether evictions for a unit are known.
func (m *Manager) Known(u Unit) bool { return m.of[u] != nil }

// GoingFor reports whether pods below the priority of a unit terminate on a node because they were evicted, but for
// those that are overdue for a pod that gave up on others so many times.
func (m *Manager) GoingFor(prof *Profile, node string, priority int32, gaveUp int) bool {
	s := m.store.Snapshot()
	n, ok := s.Find(node)
	if node == "" || !ok {
		return false
	}
	going := false
	s.EachPod(n, func(other *cluster.Pod, _ bool) {
		going = going || other.Preempted && other.Spec.Priority < priority && !m.overdue(prof, other, gaveUp)
	})
	return going
}

// GaveUp returns how often victims for a pod by itself were given up on.
func (m *Manager) GaveUp(uid cluster.UID) int { return m.gaveUp(uid) }

// GangDraw returns the number that keys the draws of a gang's search: that of its decision, or for a gang for which
// capacity was freed that of the decision that freed it, so that the search finds what the dry run found.
func (m *Manager) GangDraw(key cluster.GangKey, decision uint64) uint64 {
	if ev := m.gang(key); ev != nil && !ev.denominated {
		return ev.draw
	}
	return decision
}

// Staying returns how many pods of a gang have a place, do not terminate, and are not to be evicted.
func (m *Manager) Staying(key cluster.GangKey) int { return m.pending.staying(m.store.Snapshot(), key) }
