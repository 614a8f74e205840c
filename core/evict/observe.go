// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"cmp"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Answer is the outcome of a Request.
type Answer struct {
	For      record.PodRef
	Decision uint64
	Message  string // of the first error, empty when all victims were deleted
}

// Done follows the answer to a request. It reports whether the request was for a unit that is known here; a request
// that undoes a gang is not.
func (m *Manager) Done(a Answer) (known bool) {
	by := charge{cluster.UID(a.For.UID), a.Decision}
	if a.Message == "" {
		m.budgets.settle(by)
	} else {
		m.budgets.refund(m.store.Snapshot(), by)
		m.reconsider(m.pending.revoke(a.For.UID, a.Decision), "pods of it were not evicted")
	}
	m.wholeAnswered(a)
	return m.podAnswered(a) || m.gangAnswered(a)
}

// reconsider asks the gates of gangs again.
func (m *Manager) reconsider(gangs []cluster.GangKey, cause string) {
	slices.SortFunc(gangs, func(a, b cluster.GangKey) int {
		return cmp.Or(cmp.Compare(a.Source, b.Source), cmp.Compare(a.Namespace, b.Namespace),
			cmp.Compare(a.Name, b.Name))
	})
	for _, key := range slices.Compact(gangs) {
		m.host.Reconsider(key, cause)
	}
}

// refusedBackoff is the wait before a pod is tried again for which pods could not be evicted, after the first time.
// What refuses deletes, as a policy of the API server, would be asked a hundred times a second.
var refusedBackoff = Backoff{First: record.Second, Most: 32 * record.Second}

// podAnswered follows the answer to a request for a pod by itself. If it failed, the pod is tried again: the capacity
// may never come, and nothing else may wake it. The first time that is at once (upstream).
func (m *Manager) podAnswered(a Answer) (known bool) {
	uid := cluster.UID(a.For.UID)
	ev := m.current(uid)
	if ev == nil || ev.decision != a.Decision {
		return false
	}
	if ev.state == Requested {
		ev.state = Draining
	}
	if a.Message == "" {
		ev.failures = 0
		m.wakeOpened(a.For)
		return true
	}
	m.fail(ev)
	m.memberGateOpens(uid)
	if !m.host.Pending(uid) {
		return true
	}
	if ev.failures++; ev.failures == 1 {
		m.queue.Activate([]record.PodRef{a.For})
		return true
	}
	m.checkAt(victimCheck{unit: ev.unit, refused: true, at: m.host.Now() + refusedBackoff.After(ev.failures-1)})
	return true
}

// gangAnswered follows the answer to a request for a gang. If it failed the gang is tried again after its backoff, and
// requests the rest.
func (m *Manager) gangAnswered(a Answer) (known bool) {
	for _, ev := range m.ofGangs() {
		if ev.decision != a.Decision || ev.asked.UID != a.For.UID {
			continue
		}
		if a.Message != "" {
			ev.state = Failed
			ev.failures++
			ev.retry = m.host.Now() + gangBackoff.After(ev.failures)
		} else {
			ev.state, ev.failures = Draining, 0
		}
		u := m.queue.Gang(ev.unit.Gang)
		switch {
		case u == nil:
			m.EndGang(ev.unit.Gang, "the gang is gone")
		case ev.state == Failed:
			m.host.Reconsider(ev.unit.Gang, "pods could not be evicted for it")
		case u.Gate == plugin.DefaultPreemptionName:
			m.queue.Activate([]record.PodRef{u.Pod().Ref()}) // something woke it while its gate was shut
		}
		return true
	}
	return false
}

// Terminates follows a pod that is seen to terminate, is gone, or has lost its place.
func (m *Manager) Terminates(uid cluster.UID) {
	m.pending.remove(uid)
	for _, ev := range m.byVictim[uid] {
		if !ev.unit.isGang() && ev.left[uid] == deleted {
			m.wakeOpened(ev.asked)
		}
	}
}

// Returned follows a decided pod that came back to the queue. A pod by itself that had it withdrawn is tried at once,
// whatever its backoff, if none of its victims has a place any more: no delete follows that would wake it (upstream).
// The end of a victim that was deleted wakes it as any free capacity does.
func (m *Manager) Returned(uid cluster.UID) {
	s := m.store.Snapshot()
	remains := func(victim cluster.UID, _ leaving) bool { return there(s, victim) }
	for _, ev := range m.byVictim[uid] {
		if !ev.unit.isGang() && ev.left[uid] == withdrawn && !ev.any(remains) {
			m.queue.Activate([]record.PodRef{ev.asked})
		}
	}
	m.Gone(uid)
}

// Gone follows the end of a pod, or a decided pod that came back to the queue: a gang is tried at once when its last
// victim is gone, because capacity that was freed for it must not stay empty.
func (m *Manager) Gone(uid cluster.UID) {
	for _, ev := range m.gangsOfVictim(uid) {
		m.dropVictim(ev, uid)
		m.wakeIfDrained(ev)
	}
}

// Deleted forgets a pod.
func (m *Manager) Deleted(uid cluster.UID) {
	delete(m.placedByPreemption, uid)
	delete(m.evictionRequested, uid)
}

// gangsOfVictim returns the evictions for gangs that a pod leaves for, in the order of ofGangs.
func (m *Manager) gangsOfVictim(uid cluster.UID) (list []*Eviction) {
	for _, ev := range m.byVictim[uid] {
		if ev.unit.isGang() {
			list = append(list, ev)
		}
	}
	slices.SortFunc(list, func(a, b *Eviction) int {
		return cmp.Or(cmp.Compare(a.decision, b.decision), a.unit.Gang.Compare(b.unit.Gang))
	})
	return list
}

// WithdrawnBound follows a pod that was to be withdrawn and that another scheduler bound all the same: the units that
// counted on its capacity are tried again.
func (m *Manager) WithdrawnBound(uid cluster.UID) {
	for _, ev := range slices.Clone(m.byVictim[uid]) {
		if !ev.unit.isGang() && ev.left[uid] == withdrawn {
			m.queue.Activate([]record.PodRef{ev.asked})
		}
	}
	for _, ev := range m.gangsOfVictim(uid) {
		if ev.left[uid] == withdrawn {
			m.dropVictim(ev, uid)
			m.wakeIfDrained(ev)
		}
	}
}

// wakeIfDrained tries a gang if all of its victims are gone.
func (m *Manager) wakeIfDrained(ev *Eviction) {
	if len(ev.left) == 0 {
		if u := m.queue.Gang(ev.unit.Gang); u != nil {
			m.queue.Activate([]record.PodRef{u.Pod().Ref()})
		}
	}
}

// Bound follows a pod that another scheduler bound: capacity that is being freed on its node is not what it was.
func (m *Manager) Bound(p *cluster.Pod) {
	if !m.synced {
		return
	}
	for _, q := range m.queue.NominatedOn(p.NodeName) {
		if ev := m.current(q.UID); ev != nil && ev.node == p.NodeName {
			ev.taken = true
		}
		if q.Gang != nil {
			if ev := m.gang(q.Gang.Key); ev != nil {
				ev.taken = true
			}
		}
	}
}

// EvictedByOthers follows a pod of ours that is seen to be evicted: it counts if it was placed by preemption, and this
// scheduler did not request its eviction.
func (m *Manager) EvictedByOthers(p *cluster.Pod) {
	if !m.placedByPreemption[p.UID] || m.evictionRequested[p.UID] {
		return
	}
	delete(m.placedByPreemption, p.UID)
	m.pauses.lost(OwnerOf(m.store.Snapshot(), p), p.Ref(), m.host.Now())
}

// NeedsNone follows a pod that is bound or gone.
func (m *Manager) NeedsNone(uid cluster.UID) {
	m.delays.remove(Unit{Pod: uid})
	if m.of[Unit{Pod: uid}] == nil {
		return
	}
	m.miss(uid, "it is gone, or somebody else bound it")
	m.remove(Unit{Pod: uid})
}

// Abandon forgets the eviction for a unit without accounting for it: what was requested was requested, and nothing
// must hold the unit back.
func (m *Manager) Abandon(u Unit) {
	ev := m.of[u]
	if u.isGang() || ev == nil {
		m.remove(u)
		return
	}
	if ev.state != Failed {
		failures := ev.failures
		m.remove(u)
		if failures > 0 {
			m.add(&Eviction{unit: u, state: Failed, asked: ev.asked, failures: failures})
		}
	}
}

// NodeGone tries gangs again that count on a node which is gone (answer A24).
func (m *Manager) NodeGone(name string) {
	for _, ev := range m.ofGangs() {
		u := m.queue.Gang(ev.unit.Gang)
		if u == nil || m.remaining(m.host.Profile(u.Pod().Spec.SchedulerName), ev) {
			continue
		}
		if slices.ContainsFunc(u.Members, func(p *cluster.Pod) bool { return m.queue.NominationOf(p.UID) == name }) {
			m.queue.Activate([]record.PodRef{u.Pod().Ref()})
		}
	}
}

// GangLeft follows a pod of a gang that does not wait any more.
func (m *Manager) GangLeft(p *cluster.Pod) {
	if p.Gang != nil && !m.queue.HasGang(p.Gang.Key) {
		m.GangGone(p.Gang.Key, "the gang is gone")
	}
}

// GangGone follows a gang of which no pod waits any more.
func (m *Manager) GangGone(key cluster.GangKey, why string) {
	m.delays.remove(Unit{Gang: key})
	m.EndGang(key, why)
}

// EndGang forgets the eviction for a gang, if there is one, and accounts for it; requests that are under way have no
// other answer to wait for.
func (m *Manager) EndGang(key cluster.GangKey, why string) {
	if ev := m.gang(key); ev != nil {
		m.wasted(ev, why)
		m.remove(ev.unit)
	}
}

// wasted accounts for evictions for a gang that did not get its placement by them.
func (m *Manager) wasted(ev *Eviction, why string) {
	gone := ev.evicted
	if ev.state == Failed {
		s := m.store.Snapshot()
		for uid, how := range ev.left { // order: each is counted alone, so the order cannot matter
			if how == deleted && stays(s, uid) {
				gone-- // it could not be evicted
			}
		}
	}
	ev.state, ev.evicted = Wasted, 0
	if gone > 0 {
		m.pauses.waste(ev.owner, ev.report(gone, why), m.host.Now())
	}
}

// Placed follows a pod by itself that got its place on a node.
func (m *Manager) Placed(p *cluster.Pod, node string) {
	ev := m.current(p.UID)
	if ev == nil || ev.state == Placed || ev.state == Wasted {
		return
	}
	if ev.node != node && !ev.from[node] {
		m.miss(p.UID, "it got its place elsewhere")
		return
	}
	ev.state = Placed
	if ev.evicted > 0 {
		m.placedByPreemption[p.UID] = true
	}
}

// GangPlaced ends the eviction for a gang that has its places. nodes are rows by member.
func (m *Manager) GangPlaced(key cluster.GangKey, members []*cluster.Pod, nodes []cluster.NodeIdx) {
	ev := m.gang(key)
	if ev == nil {
		return
	}
	s := m.store.Snapshot()
	used := false
	for _, n := range nodes {
		used = used || n != cluster.NoNode && ev.from[s.NodeName(n)]
	}
	if !used || ev.evicted == 0 {
		m.EndGang(key, "it got its places elsewhere")
		return
	}
	for i, p := range members {
		if nodes[i] != cluster.NoNode {
			m.placedByPreemption[p.UID] = true
		}
	}
	ev.state = Placed
	m.remove(ev.unit)
}

// miss accounts for the last evictions for a pod by itself as wasted, if it did not get its place by them.
func (m *Manager) miss(uid cluster.UID, why string) {
	ev := m.current(uid)
	if ev == nil || ev.state == Placed || ev.state == Wasted {
		return
	}
	ev.state = Wasted
	if ev.evicted > 0 {
		m.pauses.waste(ev.owner, ev.report(ev.evicted, why), m.host.Now())
	}
}
