// SPDX-License-Identifier: Apache-2.0

package engine

import (
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

var assignedGone = plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Delete}

// release takes an assumed pod out of the ledger and wakes the pods that its capacity may help.
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
// for one that never held capacity.
func onNode(p *cluster.Pod, node string) *cluster.Pod {
	if p.NodeName == node {
		return p
	}
	bound := *p
	bound.NodeName = node
	return &bound
}

// reportFreed tells the queue of capacity that nominations kept and keep no more, for pods up to the priority as
// which they counted. A pod that got its place where it was nominated frees nothing.
func (e *Engine) reportFreed() {
	freed := e.queue.TakeFreed()
	if !e.pace.Wakes() {
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
		e.queue.Happened(plugin.Change{Event: assignedGone, OldPod: &was, OnlyUpTo: &up, OnlyOthers: true})
	}
}

// roomFreed tells the queue that what p held is free, for pods up to a priority if one is given.
func (e *Engine) roomFreed(p *cluster.Pod, upTo *int32) {
	e.queue.Happened(plugin.Change{Event: assignedGone, OldPod: p, OnlyUpTo: upTo})
}

func (e *Engine) objectHappened(kind cluster.Kind, action plugin.Action, old, obj cluster.Object) {
	if about, wakes := plugin.ResourceOf(kind); wakes {
		e.queue.Happened(plugin.Change{Event: plugin.Event{Resource: about, Action: action}, OldObject: old, NewObject: obj})
	}
	if kind == cluster.KindDeviceTaint {
		e.taintRuleHappened(old, obj)
	}
}

// otherActions: what happened to an object that the engine does not keep -> the action of the event.
var otherActions = [...]plugin.Action{
	message.ForeignAdded: plugin.Add, message.ForeignUpdated: plugin.Update, message.ForeignDeleted: plugin.Delete,
}

// otherChanged wakes the pods that a change of such an object may help.
func (e *Engine) otherChanged(ev ForeignObject) {
	e.queue.Happened(plugin.Change{OldObject: ev.Old, NewObject: ev.New,
		Event: plugin.Event{Resource: plugin.Resource(ev.Resource), Action: otherActions[ev.Change]}})
}

// taintRuleHappened wakes pods as if the slices had changed to whose devices a rule adds or added taints.
// Either version may be nil.
func (e *Engine) taintRuleHappened(old, obj cluster.Object) {
	was, _ := old.(*resourceapi.DeviceTaintRule)
	is, _ := obj.(*resourceapi.DeviceTaintRule)
	for _, ch := range plugin.TaintRuleChanges(e.store.Snapshot(), was, is) {
		e.queue.Happened(ch)
	}
}
