// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// A gang that goes whole is evicted pod by pod, for the API has no other way. When that ends midway (a delete fails, nobody
// needs the room any more, the scheduler is killed), what is left of the gang runs in vain and holds room. So a gang that was
// begun to be evicted and has less than its quorum left is evicted to its end, whatever has become of the preemptor (rule R5).
// A preemptor that still waits asks for the rest itself.
//
// What a scheduler before this one has begun shows on the pods: all victims of a gang are marked with the condition
// DisruptionTarget before the first of them is deleted.

// departure is a gang whose eviction was asked for.
type departure struct {
	gang     cluster.GangKey
	asked    record.PodRef // in whose name
	node     string
	decision uint64
	// underWay: EvictDone is to come. Otherwise an eviction failed, and the gang is looked at again at retry.
	underWay bool
	failures int
	retry    record.Time
}

// finishTries is how often a gang is looked at whose eviction failed and of which enough pods seem to be there.
const finishTries = 6

// departing notes the gangs that go whole and whose pods are among the victims of an eviction. It tells whether there are any.
func (e *Engine) departing(f Evict) (whole bool) {
	s := e.store.Snapshot()
	for _, v := range f.Victims {
		key, in := s.HeldGang(cluster.UID(v.UID))
		if !in || !e.goesWhole(key) || s.GangHolds(key) == 1 {
			continue
		}
		if d := e.departures[key]; d == nil || d.decision != f.Decision || !d.underWay {
			e.departures[key] = &departure{gang: key, asked: f.For, node: f.Node, decision: f.Decision, underWay: true}
		}
		whole = true
	}
	return whole
}

// departed learns what became of the evictions of gangs.
func (e *Engine) departed(done EvictDone) {
	for _, d := range e.departuresInOrder() {
		switch {
		case d.decision != done.Decision || d.asked.UID != done.For.UID:
		case done.Message == "":
			delete(e.departures, d.gang)
		default:
			d.underWay = false
			d.failures++
			d.retry = e.now + min(record.Second<<min(d.failures-1, 5), 30*record.Second)
		}
	}
}

func (e *Engine) departuresInOrder() []*departure {
	if len(e.departures) == 0 {
		return nil
	}
	list := make([]*departure, 0, len(e.departures))
	for _, d := range e.departures { // order: sorted below
		list = append(list, d)
	}
	slices.SortFunc(list, func(a, b *departure) int {
		return cmp.Or(cmp.Compare(a.decision, b.decision), cmp.Compare(a.gang.String(), b.gang.String()), cmp.Compare(a.gang.Source, b.gang.Source))
	})
	return list
}

// finishDepartures asks for what is left of gangs whose eviction failed.
func (e *Engine) finishDepartures() {
	for _, d := range e.departuresInOrder() {
		if d.underWay || d.retry > e.now {
			continue
		}
		rest, whole := e.restOf(d.gang)
		switch {
		case len(rest) == 0 || whole && d.failures >= finishTries:
			delete(e.departures, d.gang)
		case whole || e.asksItself(d.gang):
			d.failures++
			d.retry = e.now + min(record.Second<<min(d.failures-1, 5), 30*record.Second)
		default:
			d.underWay = true
			e.emit(Evict{For: d.asked, Node: d.node, Decision: d.decision, Victims: rest, Finish: true})
		}
	}
}

// restOf are the pods of a gang that are bound and not going, and whether they are as many as it needs.
func (e *Engine) restOf(key cluster.GangKey) (rest []record.PodRef, whole bool) {
	for _, m := range e.store.Snapshot().GangMembers(key) {
		if !m.Assumed && !m.Pod.Terminating {
			rest = append(rest, m.Pod.Ref())
		}
	}
	return rest, e.gangLive(key) >= max(e.quorumOf(key, nil).pods, e.quorumOnce(key))
}

func (e *Engine) quorumOnce(key cluster.GangKey) int {
	if st := e.gangs[key]; st != nil {
		return st.quorum
	}
	return 0
}

// asksItself tells whether the gang that the victims go for is about to ask for the rest.
func (e *Engine) asksItself(victim cluster.GangKey) bool {
	members := e.store.Snapshot().GangMembers(victim)
	for _, c := range e.clearancesInOrder() {
		if c.failed && !c.lost && slices.ContainsFunc(members, func(m cluster.GangMember) bool { return c.left[m.Pod.UID] == deleted }) {
			return true
		}
	}
	return false
}

// findDepartures looks, once all pods are known, for gangs that a scheduler before this one began to evict.
func (e *Engine) findDepartures() {
	s := e.store.Snapshot()
	marked := map[cluster.GangKey]bool{} // gang -> a pod of it is or was to be evicted
	s.AnyGangPod(func(key cluster.GangKey, _ int, p *cluster.Pod) bool {
		if (p.Preempted || p.Doomed) && e.profiles[p.Spec.SchedulerName] != nil && e.goesWhole(key) {
			marked[key] = true
		}
		return false
	})
	for key := range marked { // order: departuresInOrder sorts them
		rest, whole := e.restOf(key)
		if len(rest) > 0 && !whole {
			e.departures[key] = &departure{gang: key, asked: rest[0], retry: e.now}
		}
	}
	e.finishDepartures()
}

// nextFinish is when the first gang is to be looked at again; 0 for no time.
func (e *Engine) nextFinish() (at record.Time) {
	for _, d := range e.departures { // order: the least of all
		if !d.underWay && (at == 0 || d.retry < at) {
			at = d.retry
		}
	}
	return at
}
