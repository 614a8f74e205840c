// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/resource"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Somebody else may bind a pod to a node on which we have decided others that are not bound yet. The API server refuses
// neither, so who sees it first must step back: each of our pods on the way to that node is judged again, and one that
// does not fit any more is recalled if it can be. The oldest decision keeps the capacity.
//
// Only the node of the found pod is looked at. A pod whose place depends on other nodes too (spread, affinity over a
// zone) and that is on its way to another node of the zone is not judged again: it would be a look at all flights for
// each bind that somebody makes.
//
// Rejected: to take back all flights to the node (with 30 pods on the way to a node, 29 would move for nothing), and to
// judge with the capacity of recalled pods still counted (the oldest would lose to the newest).

// recheck judges the pods on their way to the node of found again; found was not decided to be there.
func (b *binds) recheck(found *cluster.Pod) {
	flights := b.headed(found.NodeName)
	if len(flights) == 0 {
		return
	}
	conflicts := b.conflicts(flights, found)
	b.e.emit(Rechecked{Found: found.Ref(), Node: found.NodeName, Pods: len(flights), Conflicts: len(conflicts)})
	for _, f := range conflicts {
		b.recall(f)
	}
}

// headed are the flights that have taken capacity on a node and may still be recalled, by their decisions.
func (b *binds) headed(node string) []*flight {
	s := b.e.store.Snapshot()
	n, ok := s.Find(node)
	if !ok || s.Assumed(resource.Pods).At(n) == 0 {
		return nil
	}
	var flights []*flight
	s.EachPod(n, func(p *cluster.Pod, assumed bool) {
		if f := b.of[p.UID]; assumed && f != nil && f.node == node && f.recalled == "" {
			flights = append(flights, f)
		}
	})
	slices.SortFunc(flights, func(a, b *flight) int {
		return cmp.Compare(a.decision, b.decision)
	})
	return flights
}

// conflicts judges flights to one node, oldest first, each without itself and what is newer, and without those that
// were found not to fit. It returns these, with why.
func (b *binds) conflicts(flights []*flight, found *cluster.Pod) (out []*flight) {
	trial := b.e.store.Trial()
	b.supposeRecalled(trial, found.NodeName)
	marks := make([]cluster.Mark, len(flights)) // flight i and the older ones are there, newer ones are not
	for i, f := range slices.Backward(flights) {
		marks[i] = trial.Checkpoint()
		trial.Evict(f.pod.UID)
	}
	for i, f := range flights {
		trial.Rollback(marks[i])
		for _, lost := range out {
			trial.Evict(lost.pod.UID)
		}
		trial.Evict(f.pod.UID)
		if no := b.judgeAgain(f); no != nil {
			f.recalled = fmt.Sprintf("taken back from node %s: pod %s was bound there meanwhile, and now %s says: %s",
				f.node, found.Key(), no.Plugin, no.Reason)
			out = append(out, f)
		}
	}
	trial.Discard()
	return out
}

// supposeRecalled takes pods off a node that are to leave it once their writes have an outcome. Those whose Recall
// has no answer stay: it may have come too late.
func (b *binds) supposeRecalled(trial *cluster.Trial, node string) {
	var leaving []*flight
	n, _ := b.e.store.Snapshot().Find(node)
	b.e.store.Snapshot().EachPod(n, func(p *cluster.Pod, assumed bool) {
		if f := b.of[p.UID]; assumed && f != nil && f.recalled != "" && f.stage == preparing {
			leaving = append(leaving, f)
		}
	})
	for _, f := range leaving {
		trial.Evict(f.pod.UID)
	}
}

// judgeAgain judges one flight on its node. One whose judging panics stands: it was decided, and no other pod may
// suffer.
func (b *binds) judgeAgain(f *flight) (no *place.NodeRejection) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if broken, ok := r.(cluster.Broken); ok {
			panic(broken)
		}
		b.e.trouble(f.pod.Key(), "panic while judging a decided pod again", fmt.Sprint(r))
		no = nil
	}()
	s := b.e.store.Snapshot()
	n, _ := s.Find(f.node)
	return b.e.profiles[f.pod.Spec.SchedulerName].placer.Refuse(s, f.pod, n, f.holdsBy)
}

// holdsBy reports whether a plugin holds something for the pod. Binding a pod does not take that, and Ready reports
// when it is lost otherwise; but the plugin's filter would find it taken, by the very pod that it is held for.
func (f *flight) holdsBy(plugin string) bool {
	return slices.ContainsFunc(f.holds, func(h held) bool { return h.by == plugin })
}

// recall takes back a flight that does not fit its node any more. A bind may have been sent: its answer decides. Writes
// under way end first.
func (b *binds) recall(f *flight) {
	switch f.stage {
	case binding:
		b.e.emit(Recall{Pod: f.pod.Ref(), Node: f.node, Decision: f.decision})
	case waiting:
		b.endRecall(f)
	}
}

// endRecall ends the way of a recalled flight: all that it holds is given back, and it is tried again; at once, for
// nothing was wrong with it, unless a preemption took its place, which is an error upstream, with the backoff of one.
func (b *binds) endRecall(f *flight) {
	uid := f.pod.UID
	b.endFlight(f)
	if p := b.e.pending[uid]; f.preempted {
		b.retryAfterError(f, BindDone{Outcome: BindFailed, Message: f.recalled})
	} else if p != nil {
		b.tryRecalled(f, p)
	}
	b.e.evictions.Returned(uid)
}

// tryRecalled puts a recalled pod back into the queue.
func (b *binds) tryRecalled(f *flight, p *cluster.Pod) {
	f.unit.Members[0] = p
	if f.gang != nil {
		b.e.backToGang(p, undone, f.recalled)
	} else {
		b.e.queue.Return(f.unit)
	}
	d := b.decisionOf(f)
	d.Verdict, d.Message = record.Recalled, f.recalled
	b.e.decided(d)
}
