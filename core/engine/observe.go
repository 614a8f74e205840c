// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"reflect"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// setNode records a node and wakes the pods that its arrival or change may help.
func (e *Engine) setNode(n *cluster.Node) {
	old := nodeNow(e.store.Snapshot(), n.Name)
	if old != nil && reflect.DeepEqual(old, n) {
		return // heartbeats change nothing we read
	}
	e.store.SetNode(n)
	e.search.window.SetNode(old, n)
	if old == nil {
		e.queue.Happened(plugin.Change{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}, NewNode: n})
		return
	}
	for _, ev := range plugin.NodeChanges(old, n) {
		e.queue.Happened(plugin.Change{Event: ev, OldNode: old, NewNode: n})
	}
}

func nodeNow(s cluster.Snapshot, name string) *cluster.Node {
	row, ok := s.Find(name)
	if !ok {
		return nil
	}
	return s.Node(row)
}

func (e *Engine) deleteNode(name string) {
	if old := e.store.DeleteNode(name); old != nil {
		e.search.window.DeleteNode(old)
		e.queue.Happened(plugin.Change{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Delete}, OldNode: old})
		e.binds.askAgain(e.binds.allWaiting()) // those who wait for something on it need not
		e.evictions.NodeGone(name)
	}
}

// setPod records a version of a pod: bound pods go to the ledger, pending ones of our profiles to the queue.
func (e *Engine) setPod(p *cluster.Pod) {
	switch {
	case p.NodeName != "":
		e.setBound(p)
	case e.profiles[p.Spec.SchedulerName] != nil:
		e.setPending(p)
	}
}

// boundChange is what a version of a bound pod changes, collected before anything follows from it.
type boundChange struct {
	pod  *cluster.Pod
	seen cluster.Seen
	// waiting is the pod as it waited until now, nil if it did not.
	waiting *cluster.Pod
	// withdrawn: it was to come back to the queue, and is bound all the same.
	withdrawn bool
	// gang is the one in which it has a place, zero for none; change is what that means to the gang.
	gang   cluster.GangKey
	change gangChange
}

// gangChange is what a change of one of its pods means to a gang.
type gangChange uint8

const (
	gangProgressed gangChange = iota // nothing but how far it is bound
	gangGained                       // a place
	gangLost                         // a place
	gangReread                       // another declaration
)

// setBound records a bound pod, in numbered steps.
func (e *Engine) setBound(p *cluster.Pod) {
	// 1. Record it, and collect what it changes.
	ch := e.recordBound(p)

	// 2. It does not wait any more.
	e.binds.abandon(p.UID, "it was bound meanwhile")
	e.evictions.NeedsNone(p.UID)
	if ch.waiting != nil {
		e.stopWaiting(ch.waiting)
		e.evictions.GangLeft(ch.waiting)
	}

	// 3. Report what the ledger did not expect, and follow evictions.
	if ch.seen.Elsewhere != "" {
		e.trouble(p.Key(), "pod is bound to another node than the ledger had it on",
			fmt.Sprintf("ledger %q, API server %q, was assumed %v", ch.seen.Elsewhere, p.NodeName, ch.seen.WasAssumed))
		e.roomFreed(onNode(ch.seen.Old, ch.seen.Elsewhere), nil)
	}
	e.observeEviction(ch)

	// 4. Wake the pods that it may help.
	e.wakeAfter(ch)

	// 5. Follow in its gang, the one that it waited in first.
	if ch.waiting != nil && ch.waiting.Gang != nil {
		e.forgetGang(ch.waiting.Gang.Key)
	}
	if ch.withdrawn {
		e.evictions.WithdrawnBound(p.UID)
	}
	e.followInGang(ch)
}

// recordBound records a bound pod and returns what it changes.
func (e *Engine) recordBound(p *cluster.Pod) boundChange {
	before, _ := e.store.Snapshot().HeldGang(p.UID)
	ch := boundChange{pod: p, seen: e.store.SetPod(p), waiting: e.pending[p.UID]}
	if f := e.binds.of[p.UID]; f != nil {
		ch.withdrawn = f.recalled != ""
	}
	key, in := e.store.Snapshot().HeldGang(p.UID)
	if !in {
		return ch
	}
	ch.gang = key
	switch {
	case before != key: // its group may have been learnt late, too
		ch.change = gangGained
	case p.Terminating && !ch.seen.Old.Terminating:
		ch.change = gangLost
	case !ch.seen.Old.Gang.Same(p.Gang):
		ch.change = gangReread
	}
	return ch
}

// stopWaiting forgets a pod that waited.
func (e *Engine) stopWaiting(p *cluster.Pod) {
	delete(e.pending, p.UID)
	delete(e.gangs.edited, p.UID)
	e.queue.Delete(p)
	e.role.gone(p)
}

// observeEviction follows a bound pod that terminates, was evicted, or was bound by another scheduler.
func (e *Engine) observeEviction(ch boundChange) {
	p, old := ch.pod, ch.seen.Old
	if p.Terminating && (old == nil || !old.Terminating) {
		e.evictions.TerminationSeen(p, old == nil)
		e.evictions.Terminates(p.UID)
	}
	if p.Preempted && old != nil && !old.Preempted {
		e.evictions.EvictedByOthers(p)
	}
	if old == nil || ch.seen.Elsewhere != "" {
		e.evictions.Bound(p)
	}
}

// wakeAfter wakes the pods that a change of a bound pod may help.
func (e *Engine) wakeAfter(ch boundChange) {
	p, old := ch.pod, ch.seen.Old
	if old == nil || ch.seen.WasAssumed {
		e.queue.Happened(plugin.Change{Event: plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Add}, NewPod: p})
		if old == nil || ch.seen.Elsewhere != "" {
			e.binds.recheck(p)
		}
		return
	}
	for _, ev := range plugin.PodChanges(old, p) {
		e.queue.Happened(plugin.Change{Event: ev, OldPod: old, NewPod: p})
	}
	e.evictions.Relabelled(old, p)
	if p.EvictableForGangs && !old.EvictableForGangs { // gangs may have it evicted now
		e.roomFreed(p, nil)
	}
}

// followInGang follows a change of a bound pod in its gang.
func (e *Engine) followInGang(ch boundChange) {
	if ch.gang == (cluster.GangKey{}) {
		return
	}
	switch ch.change {
	case gangGained:
		e.gangChanged(ch.gang, memberPlaced)
	case gangLost:
		e.gangLost(ch.gang)
	case gangReread:
		e.gangChanged(ch.gang, memberDeclares) // the number of pods that are needed may be another
	case gangProgressed:
		e.gangProgress(ch.gang)
	}
	if ch.seen.WasAssumed {
		e.lastBound(ch.gang)
	}
}

func (e *Engine) setPending(p *cluster.Pod) {
	old := e.pending[p.UID]
	if on, _, assumed, ok := e.store.Snapshot().PodOn(p.UID); ok {
		if !assumed {
			return // an old version arrives after the bound one
		}
		e.pending[p.UID] = e.gangs.keepGang(old, p)
		if p.Terminating && !on.Terminating && old != nil && !old.Terminating {
			// The pod goes away before it is bound: its capacity is free now. A bind that is on the way will fail
			// on its own.
			e.release(p.UID)
			e.binds.abandon(p.UID, "it is being deleted")
		}
		return
	}
	p = e.gangs.keepGang(old, p)
	e.pending[p.UID] = p
	e.queuePending(old, p)
	e.role.waits(p)
	if p.Gang != nil {
		e.blocked.Changed(p.Gang.Key)
	}
}

// queuePending brings a version of a pending pod to the queue; old is the one before, nil for none.
func (e *Engine) queuePending(old, p *cluster.Pod) {
	if old == nil {
		e.queue.Add(p)
		return
	}
	switch regrouped := !old.Gang.Same(p.Gang); {
	case old.ResourceVersion != "" && old.ResourceVersion == p.ResourceVersion && !regrouped:
	case e.binds.of[p.UID] != nil: // released while its bind is on the way; the outcome decides
	case regrouped:
		e.gangs.regroup(old, p)
	default:
		e.queue.Update(old, p)
	}
}

// deletePod follows the end of a pod, in numbered steps.
func (e *Engine) deletePod(uid cluster.UID) {
	// 1. It does not wait any more.
	waiting := e.pending[uid]
	if waiting != nil {
		e.stopWaiting(waiting)
		e.evictions.GangLeft(waiting)
	}
	e.binds.abandon(uid, "it is gone")
	e.evictions.NeedsNone(uid)
	e.evictions.Deleted(uid)

	// 2. Free its capacity, and follow in its gang.
	s := e.store.Snapshot()
	if old, n, _, ok := s.PodOn(uid); ok {
		left := onNode(old, s.NodeName(n))
		key, inGang := s.HeldGang(uid)
		e.store.DeletePod(uid)
		e.roomFreed(left, nil)
		e.evictions.Terminates(uid)
		if inGang {
			e.gangLost(key)
		}
	}

	// 3. Follow in evictions that it was a victim of, and in the gang that it waited in.
	e.evictions.Gone(uid)
	if waiting != nil && waiting.Gang != nil {
		e.forgetGang(waiting.Gang.Key)
	}
}
