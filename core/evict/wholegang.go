// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"cmp"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/deadline"
	"github.com/kumiki-scheduler/kumiki/record"
)

// A gang that goes whole is evicted pod by pod, because the API has no other way. If that ends midway (a delete fails,
// the capacity is not needed any more, the scheduler is killed), what is left of the gang runs without use and holds
// capacity. So a gang whose eviction began and that has less than its quorum left is evicted to its end, whatever has
// become of the preemptor (rule R5). A preemptor that still waits requests the rest itself.
//
// What a scheduler before this one began shows on the pods: all victims of a gang get the condition DisruptionTarget
// before the first of them is deleted.

// wholeEviction is a gang that goes whole and whose eviction was requested.
type wholeEviction struct {
	gang     cluster.GangKey // kept
	asked    record.PodRef   // kept; in whose name
	node     string          // kept
	decision uint64          // kept
	// state is requested until the answer, or failed: then the gang is checked again at retry.
	state    State // kept
	failures int   // kept
	// retry is when it is checked again. Invariant: it is set while the state is failed, and not otherwise.
	retry deadline.Entry // kept
}

// finishTries is how often a gang is checked whose eviction failed and of which enough pods seem to be there.
const finishTries = 6

// gangBackoff is the wait before the rest of a gang's eviction, or of the victims of a gang, is requested again.
var gangBackoff = Backoff{First: record.Second, Most: 30 * record.Second}

// failWhole has the eviction of a gang checked again after a while.
func (m *Manager) failWhole(w *wholeEviction) {
	w.state = Failed
	w.failures++
	m.deadlines.Set(&w.retry, m.host.Now()+gangBackoff.After(w.failures))
}

// setWhole replaces the last eviction of a gang; nil forgets it.
func (m *Manager) setWhole(key cluster.GangKey, w *wholeEviction) {
	if old := m.whole[key]; old != nil {
		m.deadlines.Stop(&old.retry)
	}
	if m.whole[key] = w; w == nil {
		delete(m.whole, key)
	}
}

// beginWhole notes the gangs that go whole and whose pods are among the victims of a request. It reports whether there
// are any.
func (m *Manager) beginWhole(r Request) (any bool) {
	s := m.store.Snapshot()
	for _, v := range r.Victims {
		key, in := s.HeldGang(cluster.UID(v.UID))
		if !in || !GoesWhole(s, key) || s.GangHolds(key) == 1 {
			continue
		}
		if w := m.whole[key]; w == nil || w.decision != r.Decision || w.state != Requested {
			m.setWhole(key, &wholeEviction{gang: key, asked: r.For, node: r.Node, decision: r.Decision,
				state: Requested, retry: deadline.Entry{Phase: phaseWhole}})
		}
		any = true
	}
	return any
}

// wholeAnswered follows the answer to a request.
func (m *Manager) wholeAnswered(a Answer) {
	for _, w := range m.wholeInOrder() {
		switch {
		case w.decision != a.Decision || w.asked.UID != a.For.UID:
		case a.Message == "":
			m.setWhole(w.gang, nil)
		default:
			m.failWhole(w)
		}
	}
}

func (m *Manager) wholeInOrder() []*wholeEviction {
	if len(m.whole) == 0 {
		return nil
	}
	list := make([]*wholeEviction, 0, len(m.whole))
	for _, w := range m.whole { // order: sorted below
		list = append(list, w)
	}
	slices.SortFunc(list, func(a, b *wholeEviction) int {
		return cmp.Or(cmp.Compare(a.decision, b.decision), cmp.Compare(a.gang.String(), b.gang.String()),
			cmp.Compare(a.gang.Source, b.gang.Source))
	})
	return list
}

// finishWhole requests what is left of gangs whose eviction failed.
func (m *Manager) finishWhole() {
	for _, w := range m.wholeInOrder() {
		if w.state != Failed || w.retry.At() > m.host.Now() {
			continue
		}
		rest, enough := m.restOf(w.gang)
		switch {
		case len(rest) == 0 || enough && w.failures >= finishTries:
			m.setWhole(w.gang, nil)
		case enough || m.requestsItself(w.gang):
			m.failWhole(w)
		default:
			w.state = Requested
			m.deadlines.Stop(&w.retry)
			m.Request(Request{For: w.asked, Node: w.node, Decision: w.decision, Victims: rest, Finish: true})
		}
	}
}

// restOf returns the pods of a gang that are bound and do not terminate, and whether they are as many as it needs.
func (m *Manager) restOf(key cluster.GangKey) (rest []record.PodRef, enough bool) {
	s := m.store.Snapshot()
	for _, member := range s.GangMembers(key) {
		if !member.Assumed && !member.Pod.Terminating {
			rest = append(rest, member.Pod.Ref())
		}
	}
	live, _ := s.GangCounts(key)
	return rest, live >= max(m.host.Quorum(key, nil), m.host.DecidedQuorum(key))
}

// requestsItself reports whether the gang that the victims go for is about to request the rest.
func (m *Manager) requestsItself(victim cluster.GangKey) bool {
	members := m.store.Snapshot().GangMembers(victim)
	for _, ev := range m.ofGangs() {
		isVictim := func(member cluster.GangMember) bool { return ev.left[member.Pod.UID] == deleted }
		if ev.state == Failed && !ev.denominated && slices.ContainsFunc(members, isVictim) {
			return true
		}
	}
	return false
}

// findWhole finds, once all pods are known, gangs that a scheduler before this one began to evict.
func (m *Manager) findWhole() {
	s := m.store.Snapshot()
	marked := map[cluster.GangKey]bool{} // gang -> a pod of it is or was to be evicted
	s.AnyGangPod(func(key cluster.GangKey, _ int, p *cluster.Pod) bool {
		if (p.Preempted || p.EvictionPending) && m.host.Profile(p.Spec.SchedulerName) != nil && GoesWhole(s, key) {
			marked[key] = true
		}
		return false
	})
	for key := range marked { // order: wholeInOrder sorts them
		rest, enough := m.restOf(key)
		if len(rest) > 0 && !enough {
			w := &wholeEviction{gang: key, asked: rest[0], state: Failed, retry: deadline.Entry{Phase: phaseWhole}}
			m.setWhole(key, w)
			m.deadlines.Set(&w.retry, m.host.Now())
		}
	}
	m.finishWhole()
}
