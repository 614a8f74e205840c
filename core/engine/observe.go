// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"reflect"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// setNode records a node and wakes the pods that its arrival or change may help.
func (e *Engine) setNode(n *cluster.Node) {
	old := e.nodeNow(n.Name)
	if old != nil && reflect.DeepEqual(old, n) {
		return // heartbeats change nothing we read
	}
	e.store.SetNode(n)
	e.window.SetNode(old, n)
	if old == nil {
		e.queue.Happened(plugin.Change{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}, NewNode: n})
		return
	}
	for _, ev := range plugin.NodeChanges(old, n) {
		e.queue.Happened(plugin.Change{Event: ev, OldNode: old, NewNode: n})
	}
}

func (e *Engine) nodeNow(name string) *cluster.Node {
	s := e.store.Snapshot()
	row, ok := s.Find(name)
	if !ok {
		return nil
	}
	return s.Node(row)
}

func (e *Engine) deleteNode(name string) {
	if old := e.store.DeleteNode(name); old != nil {
		e.window.DeleteNode(old)
		e.queue.Happened(plugin.Change{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Delete}, OldNode: old})
		e.askAgain(true) // those who wait for something on it need not
		e.evictions.NodeGone(name)
	}
}

// setPod records a version of a pod: bound pods go to the ledger, pending ones of our profiles to the queue.
func (e *Engine) setPod(p *cluster.Pod) {
	switch {
	case p.NodeName != "":
		e.setBound(p)
		e.lobby.seen(p)
	case e.profiles[p.Spec.SchedulerName] != nil:
		e.lobby.seen(p)
		e.setPending(p)
	}
}

func (e *Engine) setBound(p *cluster.Pod) {
	before, _ := e.store.Snapshot().HeldGang(p.UID)
	seen := e.store.SetPod(p)
	if key, is := e.store.Snapshot().HeldGang(p.UID); is {
		if seen.WasAssumed {
			defer e.lastBound(key) // after what follows
		}
		switch {
		case before != key: // its group may have been learnt late, too
			defer e.gangGained(key)
		case p.Terminating && !seen.Old.Terminating:
			defer e.gangLost(key)
		case !seen.Old.Gang.Same(p.Gang):
			defer e.gangReread(key)
		default:
			defer e.gangProgress(key)
		}
	}
	if f := e.binding[p.UID]; f != nil && f.recalled != "" {
		defer e.evictions.WithdrawnBound(p.UID)
	}
	e.abandon(p.UID, "it was bound meanwhile")
	e.evictions.NeedsNone(p.UID)
	if waiting := e.pending[p.UID]; waiting != nil {
		delete(e.pending, p.UID)
		delete(e.edited, p.UID)
		e.queue.Delete(waiting)
		e.evictions.GangLeft(waiting)
		if waiting.Gang != nil {
			defer e.forgetGang(waiting.Gang.Key)
		}
	}
	if seen.Elsewhere != "" {
		e.emit(Trouble{p.Key(), "pod is bound to another node than the ledger had it on",
			fmt.Sprintf("ledger %q, API server %q, was assumed %v", seen.Elsewhere, p.NodeName, seen.WasAssumed)})
		e.roomFreed(onNode(seen.Old, seen.Elsewhere), nil)
	}
	if p.Terminating && (seen.Old == nil || !seen.Old.Terminating) {
		e.evictions.Terminates(p.UID)
	}
	if p.Preempted && seen.Old != nil && !seen.Old.Preempted {
		e.evictions.EvictedByOthers(p)
	}
	if seen.Old == nil || seen.Elsewhere != "" {
		e.evictions.Bound(p)
	}
	if seen.Old == nil || seen.WasAssumed {
		e.queue.Happened(plugin.Change{Event: plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Add}, NewPod: p})
		if seen.Old == nil || seen.Elsewhere != "" {
			e.recheck(p)
		}
		return
	}
	for _, ev := range plugin.PodChanges(seen.Old, p) {
		e.queue.Happened(plugin.Change{Event: ev, OldPod: seen.Old, NewPod: p})
	}
	e.evictions.Relabelled(seen.Old, p)
}

func (e *Engine) setPending(p *cluster.Pod) {
	old := e.pending[p.UID]
	if on, _, assumed, ok := e.store.Snapshot().PodOn(p.UID); ok {
		if !assumed {
			return // an old version arrives after the bound one
		}
		e.pending[p.UID] = e.keepGang(old, p)
		if p.Terminating && !on.Terminating && old != nil && !old.Terminating {
			// The pod goes away before it is bound: its room is free now. A bind that is on the way will fail on its own.
			e.release(p.UID)
			e.abandon(p.UID, "it is being deleted")
		}
		return
	}
	p = e.keepGang(old, p)
	e.pending[p.UID] = p
	if p.Gang != nil {
		defer e.otherWaits(p.Gang.Key)
	}
	if old == nil {
		e.queue.Add(p)
		return
	}
	switch regrouped := !old.Gang.Same(p.Gang); {
	case old.ResourceVersion != "" && old.ResourceVersion == p.ResourceVersion && !regrouped:
		return
	case e.binding[p.UID] != nil:
		return // released while its bind is on the way; the outcome decides
	case regrouped:
		e.regroup(old, p)
	default:
		e.queue.Update(old, p)
	}
}

// release takes an assumed pod out of the ledger and wakes the pods that its room may help.
func (e *Engine) release(uid cluster.UID) bool {
	s := e.store.Snapshot()
	p, n, assumed, ok := s.PodOn(uid)
	if !ok || !assumed {
		return false
	}
	left := onNode(p, s.NodeName(n))
	key, _ := s.HeldGang(uid)
	e.store.Forget(uid)
	e.roomFreed(left, nil)
	e.evictions.Terminates(uid)
	e.gangLost(key)
	return true
}

// onNode is p as bound to a node. The record of an assumed pod names none, and a hint that reads it would take the pod
// for one that never held room.
func onNode(p *cluster.Pod, node string) *cluster.Pod {
	if p.NodeName == node {
		return p
	}
	bound := *p
	bound.NodeName = node
	return &bound
}

// reportFreed tells the queue of capacity that nominations kept and keep no more, for pods up to the priority as which they
// counted. A pod that got its place where it was nominated frees nothing.
func (e *Engine) reportFreed() {
	freed := e.queue.TakeFreed()
	if !e.pace.wakes() {
		return
	}
	for _, f := range freed {
		s := e.store.Snapshot()
		if _, n, _, there := s.PodOn(f.Pod.UID); there && s.NodeName(n) == f.Node {
			continue
		}
		was := *f.Pod
		was.Nominated, was.NodeName = f.Node, ""
		up := f.Priority
		freed := plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Delete}
		e.queue.Happened(plugin.Change{Event: freed, OldPod: &was, OnlyUpTo: &up, OnlyOthers: true})
	}
}

// roomFreed tells the queue that what p held is free, for pods up to a priority if one is given.
func (e *Engine) roomFreed(p *cluster.Pod, upTo *int32) {
	freed := plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Delete}
	e.queue.Happened(plugin.Change{Event: freed, OldPod: p, OnlyUpTo: upTo})
}

func (e *Engine) deletePod(uid cluster.UID) {
	e.lobby.gone(uid)
	waiting := e.pending[uid]
	if waiting != nil {
		delete(e.pending, uid)
		delete(e.edited, uid)
		e.queue.Delete(waiting)
		if waiting.Gang != nil {
			defer e.forgetGang(waiting.Gang.Key)
		}
	}
	if waiting != nil {
		e.evictions.GangLeft(waiting)
	}
	e.abandon(uid, "it is gone")
	e.evictions.NeedsNone(uid)
	e.evictions.Deleted(uid)
	defer e.evictions.Gone(uid)
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
}

// bindDone learns what became of a bind.
func (e *Engine) bindDone(ev BindDone) {
	uid := cluster.UID(ev.Pod.UID)
	f := e.binding[uid]
	if f == nil || f.stage != binding {
		e.emit(Trouble{ev.Pod.Key(), "outcome of a bind that was not asked for", fmt.Sprintf("node %q, outcome %d", ev.Node, ev.Outcome)})
		return
	}
	e.leaveBinding(f)
	s := e.store.Snapshot()
	_, n, assumed, inLedger := s.PodOn(uid)
	confirmed := inLedger && !assumed
	switch {
	case confirmed && s.NodeName(n) != f.node:
		e.letGo(f) // the watch was faster than the answer, and showed it elsewhere; Trouble was told then
	case ev.Outcome == Bound, confirmed:
		e.emit(WriteEvent{ev.Pod, "Normal", "Scheduled", "Binding",
			fmt.Sprintf("Successfully assigned %s/%s to %s", ev.Pod.Namespace, ev.Pod.Name, f.node)})
		if f.recalled != "" {
			e.recheck(onNode(f.pod, f.node)) // the Recall came too late, and the pod takes room that others were left
		}
	case ev.Outcome == BindRecalled:
		if f.recalled == "" {
			f.recalled = ev.Message // not we asked
		}
		e.comeBack(f)
	case ev.Outcome == BindFailed && f.gang != nil && f.recalled == "" && assumed && e.pending[uid] != nil:
		e.retryBind(f, ev.Message)
	case ev.Outcome == BindFailed:
		e.letGo(f)
		e.release(uid)
		e.retryAfterError(f, ev.Message)
	case ev.Outcome == BoundElsewhere:
		e.letGo(f)
		e.release(uid)
		e.takeRoom(f.pod, ev.Node)
		e.emit(Trouble{ev.Pod.Key(), "pod was bound by someone else", fmt.Sprintf("decided %q, API server %q", f.node, ev.Node)})
	case ev.Outcome == PodVanished:
		e.letGo(f)
		e.release(uid)
	}
}

// takeRoom counts a pod on the node where the API server has it, until the watch shows it there.
func (e *Engine) takeRoom(p *cluster.Pod, node string) {
	n, ok := e.store.Snapshot().Find(node)
	if !ok || e.pending[p.UID] == nil {
		return
	}
	trial := e.store.Trial()
	trial.Assume(p, n)
	trial.Commit()
	if key, is := e.store.Snapshot().HeldGang(p.UID); is {
		e.gangGained(key)
	}
	e.recheck(onNode(p, node))
}

// retryAfterError puts a pod whose bind failed back into the queue, unless it has gone meanwhile.
func (e *Engine) retryAfterError(f *flight, message string) {
	p := e.pending[f.pod.UID]
	if p == nil {
		return
	}
	if f.gang != nil {
		e.backToGang(p, true, message)
		e.tell(p, ReasonError, message, f.expected)
		return
	}
	f.unit.Members[0] = p
	e.fail(f.unit, record.Decision{
		Number: f.decision, At: e.now, Revision: e.store.Snapshot().Revision(), Pod: p.Ref(), Profile: p.Spec.SchedulerName,
		Attempt: f.unit.Attempts,
	}, message, f.expected)
}
