// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"fmt"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// setNode records a node and wakes the pods that it may help.
func (s *scheduler) setNode(n *cluster.Node) {
	view := s.store.Snapshot()
	var old *cluster.Node
	if row, ok := view.Find(n.Name); ok {
		old = view.Node(row)
	}
	s.store.SetNode(n)
	if old == nil {
		s.queue.Happened(plugin.Change{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}, NewNode: n})
		return
	}
	for _, ev := range plugin.NodeChanges(old, n) {
		s.queue.Happened(plugin.Change{Event: ev, OldNode: old, NewNode: n})
	}
}

func (s *scheduler) deleteNode(name string) {
	if old := s.store.DeleteNode(name); old != nil {
		s.queue.Happened(plugin.Change{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Delete}, OldNode: old})
		s.proceedAll() // pods that wait on it turn back
	}
}

// setPod records a version of a pod.
func (s *scheduler) setPod(p *cluster.Pod) {
	if p.NodeName != "" {
		s.setBound(p)
		s.permit.seen(p)
		return
	}
	s.permit.seen(p)
	s.setPending(p)
}

func (s *scheduler) setBound(p *cluster.Pod) {
	seen := s.store.SetPod(p)
	s.permit.count(p.UID, p.Gang)
	s.abandon(p.UID)
	if waiting := s.pending[p.UID]; waiting != nil {
		delete(s.pending, p.UID)
		s.queue.Delete(waiting)
	}
	if seen.Elsewhere != "" {
		s.freed(seen.Old, seen.Elsewhere)
	}
	if seen.Old == nil || seen.WasAssumed {
		s.queue.Happened(plugin.Change{Event: plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Add}, NewPod: p})
		return
	}
	for _, ev := range plugin.PodChanges(seen.Old, p) {
		s.queue.Happened(plugin.Change{Event: ev, OldPod: seen.Old, NewPod: p})
	}
}

func (s *scheduler) setPending(p *cluster.Pod) {
	old := s.pending[p.UID]
	if on, _, assumed, ok := s.store.Snapshot().PodOn(p.UID); ok {
		if !assumed {
			return // an old version arrives after the bound one
		}
		s.pending[p.UID] = p
		if p.Terminating && !on.Terminating && old != nil && !old.Terminating {
			s.forget(p.UID) // a bind that was sent fails by itself
			s.abandon(p.UID)
		}
		return
	}
	s.pending[p.UID] = p
	switch {
	case old == nil:
		s.queue.Add(p)
	case old.ResourceVersion != "" && old.ResourceVersion == p.ResourceVersion:
	case s.reserved[p.UID] != nil: // the outcome of its bind decides
	default:
		s.queue.Update(old, p)
	}
}

func (s *scheduler) deletePod(uid cluster.UID) {
	s.permit.gone(uid)
	if waiting := s.pending[uid]; waiting != nil {
		delete(s.pending, uid)
		s.queue.Delete(waiting)
	}
	s.abandon(uid)
	view := s.store.Snapshot()
	if old, n, _, ok := view.PodOn(uid); ok {
		node := view.NodeName(n)
		s.store.DeletePod(uid)
		s.freed(old, node)
		s.permit.count(uid, old.Gang)
	}
}

// abandon ends the wait of a pod that is gone, being deleted or bound. A bind that was sent is left to its outcome.
func (s *scheduler) abandon(uid cluster.UID) {
	r := s.reserved[uid]
	if r == nil || r.bindSent {
		return
	}
	delete(s.reserved, uid)
	s.queue.Done(uid)
	s.permit.release(r)
}

// forget takes an assumed pod off its node.
func (s *scheduler) forget(uid cluster.UID) {
	view := s.store.Snapshot()
	p, n, assumed, ok := view.PodOn(uid)
	if !ok || !assumed {
		return
	}
	node := view.NodeName(n)
	s.store.Forget(uid)
	s.freed(p, node)
	s.permit.count(uid, p.Gang)
}

// freed wakes the pods that the capacity of a pod may help.
func (s *scheduler) freed(p *cluster.Pod, node string) {
	was := *p
	was.NodeName = node // the record of an assumed pod names none
	s.queue.Happened(plugin.Change{Event: plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Delete}, OldPod: &was})
}

// wakeByNominations wakes the pods that the end of a nomination may help.
func (s *scheduler) wakeByNominations() {
	for _, f := range s.queue.TakeFreed() {
		view := s.store.Snapshot()
		if _, n, _, there := view.PodOn(f.Pod.UID); there && view.NodeName(n) == f.Node {
			continue // the pod is on the node itself
		}
		was := *f.Pod
		was.Nominated, was.NodeName = f.Node, ""
		upTo := f.Priority
		s.queue.Happened(plugin.Change{Event: plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Delete}, OldPod: &was, OnlyUpTo: &upTo,
			OnlyOthers: true})
	}
}

// bindDone follows the outcome of a bind.
func (s *scheduler) bindDone(ev engine.BindDone) {
	uid := cluster.UID(ev.Pod.UID)
	r := s.reserved[uid]
	if r == nil || !r.bindSent {
		panic(fmt.Sprintf("gangs: outcome of a bind of %s that was not sent", ev.Pod.Key()))
	}
	view := s.store.Snapshot()
	_, n, assumed, known := view.PodOn(uid)
	confirmed := known && !assumed && view.NodeName(n) == r.node
	if ev.Outcome == engine.Bound || confirmed {
		delete(s.reserved, uid)
		s.emit(engine.WriteEvent{Pod: ev.Pod, Type: "Normal", Reason: "Scheduled", Action: "Binding",
			Note: fmt.Sprintf("Successfully assigned %s to %s", ev.Pod.Key(), r.node)})
		return
	}
	s.release(r)
	if ev.Outcome == engine.BindFailed {
		s.retry(r, ev.Message)
	}
}
