// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"errors"
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// refusal is why a decided pod cannot go to its node after all.
type refusal struct {
	plugin string
	reject string // empty for an error
	err    error
}

// reserve puts a pod on its node and lets plugins take what else it needs. When one refuses, nothing is left of it all.
func (e *Engine) reserve(prof *profile, p *cluster.Pod, n cluster.NodeIdx) (holds []held, no *refusal) {
	trial := e.store.Trial()
	trial.Assume(p, n)
	for _, r := range prof.Reservers {
		e.meter.Plugin(plugin.AtReserve, r.Name())
		got := r.Reserve(trial, p, n)
		if got.Hold != nil {
			holds = append(holds, held{by: r.Name(), hold: got.Hold})
		}
		if got.Reject == "" && got.Err == nil {
			continue
		}
		for _, h := range slices.Backward(holds) {
			h.hold.Release(trial, false)
		}
		trial.Discard()
		return nil, &refusal{r.Name(), got.Reject, got.Err}
	}
	trial.Commit()
	return holds, nil
}

// depart sends a decided pod on its way: to its writes if there are any, to its bind if everything is ready.
func (e *Engine) depart(f *flight) {
	var writes []cluster.Write
	for _, h := range f.holds {
		writes = append(writes, h.hold.Writes()...)
	}
	e.binds.add(f)
	if len(writes) > 0 {
		f.stage, f.wrote = preparing, true
		f.before = []string{"writes of " + f.writer()}
		e.emit(Prepare{f.pod.Ref(), f.node, f.decision, writes})
		e.expect(f)
		return
	}
	f.stage = waiting
	e.proceed(f)
}

// writesDone learns what became of a pod's writes.
func (e *Engine) writesDone(ev WritesDone) {
	f := e.binds.of[cluster.UID(ev.Pod.UID)]
	if f == nil || f.stage != preparing || f.decision != ev.Decision {
		e.emit(Trouble{ev.Pod.Key(), "outcome of writes that were not asked for", fmt.Sprintf("decision %d: %q", ev.Decision, ev.Message)})
		return
	}
	switch {
	case f.cancelled != "":
		e.cancel(f)
	case f.recalled != "":
		e.comeBack(f)
	case ev.Message != "":
		e.turnBack(f, refusal{plugin: f.writer(), err: errors.New(ev.Message)})
	default:
		f.stage = waiting
		e.proceed(f)
	}
}

// writer is the plugin whose writes come first.
func (f *flight) writer() string {
	for _, h := range f.holds {
		if len(h.hold.Writes()) > 0 {
			return h.by
		}
	}
	return ""
}

// proceed binds a pod whose writes are done, if all that it needs is ready.
func (e *Engine) proceed(f *flight) {
	e.binds.resume(f)
	f.before = nil
	s, ready := e.store.Snapshot(), true
	var again record.Time
	if _, there := s.Find(f.node); !there {
		// The API server would take the bind: it does not ask for the node.
		e.endFlight(f)
		e.retryAfterError(f, fmt.Sprintf("node %q is gone", f.node))
		return
	}
	for i := range f.holds {
		h := &f.holds[i]
		r := h.hold.Ready(s, e.now)
		switch {
		case r.Err != nil || r.Reject != "":
			e.turnBack(f, refusal{h.by, r.Reject, r.Err})
			return
		case !r.Ready:
			ready = false
			f.before = append(f.before, h.by)
			e.announce(f, h)
			if r.Again != 0 && (again == 0 || r.Again < again) {
				again = r.Again
			}
		}
	}
	if !ready {
		e.binds.wait(f, again)
		e.expect(f)
		return
	}
	f.stage = binding
	bind := Bind{Pod: f.pod.Ref(), Node: f.node, Decision: f.decision, Gang: f.gang}
	if foreign := e.profiles[f.pod.Spec.SchedulerName].Foreign; foreign != nil {
		bind.Via = foreign.Binder(f.pod)
	}
	e.emit(bind)
}

// expect shows once where a pod that is not bound at once is about to go, so that nobody takes the node away meanwhile.
// A bind that fails clears it, with the condition.
func (e *Engine) expect(f *flight) {
	if !f.expected && f.pod.Nominated != f.node {
		e.emit(Nominate{f.pod.Ref(), f.node})
	}
	f.expected = true
}

// announce tells once that a pod must wait, if its plugin has something to say about it.
func (e *Engine) announce(f *flight, h *held) {
	a, tells := h.hold.(plugin.Announcer)
	if !tells || h.announced {
		return
	}
	h.announced = true
	n := a.Announce()
	e.emit(WriteEvent{f.pod.Ref(), "Normal", n.Reason, n.Action, n.Note})
}

// askAgain asks decided pods that wait whether they can be bound now.
func (e *Engine) askAgain(flights []*flight) {
	for _, f := range flights {
		if e.binds.of[f.pod.UID] == f {
			e.proceed(f)
		}
	}
}

// letGo gives back what is held for a pod; what was written is taken back, too.
func (e *Engine) letGo(f *flight) {
	if len(f.holds) == 0 {
		return
	}
	var writes []cluster.Write
	trial := e.store.Trial()
	for _, h := range slices.Backward(f.holds) {
		writes = append(writes, h.hold.Release(trial, f.wrote)...)
	}
	trial.Commit()
	f.holds = nil
	for _, r := range trial.Restored() {
		// What was taken by assumption is free: pods that saw it taken may have it. Upstream leaves pods that volume
		// binding rejected for that to wait for the flush.
		if r.Is == nil {
			e.objectHappened(r.Kind, plugin.Delete, r.Was, nil)
		} else {
			e.objectHappened(r.Kind, plugin.Update, r.Was, r.Is)
		}
	}
	if len(writes) > 0 {
		e.emit(Release{f.pod.Ref(), writes})
	}
}

// turnBack ends the way of a pod whose writes or whose waiting failed: it gives everything back and goes to the queue
// again.
func (e *Engine) turnBack(f *flight, why refusal) {
	uid := f.pod.UID
	e.endFlight(f)
	if why.err != nil {
		e.retryAfterError(f, fmt.Sprintf("running PreBind plugin %q: %v", why.plugin, why.err))
		return
	}
	p := e.pending[uid]
	if p == nil {
		return
	}
	if f.gang != nil {
		e.backToGang(p, false, "plugin "+why.plugin+" refused it on its node: "+why.reject)
		e.tell(p, ReasonUnschedulable, fmt.Sprintf("0/1 nodes are available: 1 %s.", why.reject), f.expected)
		return
	}
	f.unit.Members[0] = p
	d := record.Decision{
		Number: f.decision, At: e.now, Revision: e.store.Snapshot().Revision(), Pod: p.Ref(), Profile: p.Spec.SchedulerName,
		Attempt: f.unit.Attempts, Nodes: 1,
	}
	e.refuse(f.unit, d, f.node, why, f.expected)
}

// endFlight takes a pod off its way and gives back what it held.
func (e *Engine) endFlight(f *flight) {
	e.binds.remove(f)
	e.letGo(f)
	e.release(f.pod.UID)
}

// refuse puts a unit back that one plugin refused on the node that was chosen for it (upstream words it as if the
// cluster had this one node). See tell for shown.
func (e *Engine) refuse(unit *queue.Unit, d record.Decision, node string, why refusal, shown bool) {
	p := unit.Members[0]
	message := fmt.Sprintf("0/1 nodes are available: 1 %s.", why.reject)
	e.queue.Requeue(unit, queue.Rejection{Plugins: []string{why.plugin}})
	e.queue.Unnominate(p.UID)
	d.Verdict, d.Message, d.Plugins = record.DoesNotFit, message, []string{why.plugin}
	d.Reasons = []record.Reason{{Plugin: why.plugin, Reason: why.reject, Nodes: 1, Examples: []string{node}}}
	e.decided(d)
	e.tell(p, ReasonUnschedulable, message, shown)
}

// cancel ends the way of a pod that is gone, going, or bound by someone else.
func (e *Engine) cancel(f *flight) {
	e.binds.remove(f)
	e.letGo(f)
}

// abandon is told that a pod is not to be bound any more, wherever it is on its way. What is on the way to the API
// server comes to its end first.
func (e *Engine) abandon(uid cluster.UID, why string) {
	f := e.binds.of[uid]
	switch {
	case f == nil || f.stage == binding:
	case f.stage == preparing:
		f.cancelled = why
	default:
		e.cancel(f)
	}
}

// setObject records an object and wakes the pods that its arrival or change may help.
func (e *Engine) setObject(obj cluster.Object) {
	old := e.store.SetObject(obj)
	action := plugin.Update
	if old == nil {
		action = plugin.Add
	}
	e.objectHappened(cluster.KindOf(obj), action, old, obj)
	if g, is := obj.(*cluster.Gang); is {
		was, _ := old.(*cluster.Gang)
		e.setGang(g)
		e.protectionChanged(g.Key, was, g)
	}
	e.evictions.ObjectChanged(old, obj)
	e.askAgain(e.binds.allWaiting())
}

func (e *Engine) deleteObject(kind cluster.Kind, key cluster.ObjectKey) {
	if old := e.store.DeleteObject(kind, key); old != nil {
		e.objectHappened(kind, plugin.Delete, old, nil)
		e.evictions.ObjectChanged(old, nil)
		if g, is := old.(*cluster.Gang); is {
			e.regroupGang(g.Key)
			e.reconsider(g.Key, "its pod group is gone")
			e.protectionChanged(g.Key, g, nil)
			e.forgetGang(g.Key)
		}
	}
	e.askAgain(e.binds.allWaiting())
}

// eventKinds are the kinds whose changes wake pods (upstream: eventhandlers.go).
var eventKinds = map[cluster.Kind]plugin.Resource{ // kind -> as plugins register for it
	cluster.KindClaim:         plugin.ClaimObject,
	cluster.KindVolume:        plugin.VolumeObject,
	cluster.KindStorageClass:  plugin.StorageClassObject,
	cluster.KindCSINode:       plugin.CSINodeObject,
	cluster.KindCSIDriver:     plugin.CSIDriverObject,
	cluster.KindCapacity:      plugin.CapacityObject,
	cluster.KindAttachment:    plugin.AttachmentObject,
	cluster.KindDeviceClaim:   plugin.DeviceClaimObject,
	cluster.KindResourceSlice: plugin.ResourceSliceObject,
	cluster.KindDeviceClass:   plugin.DeviceClassObject,
}

func (e *Engine) objectHappened(kind cluster.Kind, action plugin.Action, old, obj cluster.Object) {
	if about, wakes := eventKinds[kind]; wakes {
		e.queue.Happened(plugin.Change{Event: plugin.Event{Resource: about, Action: action}, OldObject: old, NewObject: obj})
	}
}

// foreignWakes are the events that wake pods that foreign code rejected: all.
type foreignWakes struct{}

func (foreignWakes) Name() string { return place.ForeignName }

func (foreignWakes) Wakes() []plugin.Wake {
	return []plugin.Wake{{Event: plugin.Event{Resource: plugin.Wildcard, Action: plugin.All}}}
}
