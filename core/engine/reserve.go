// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// refusal is why a decided pod cannot go to its node after all.
type refusal struct {
	plugin string
	reject string // empty for an error
	err    error
	worded bool // see plugin.Reserved
	// watched is what events meant while the pod waited on its node.
	watched queue.WaitResult
}

// words returns the message of an error at an extension point.
func (r refusal) words(point string) string {
	return plugin.ErrorText(point, r.plugin, r.err, r.worded)
}

// reserve puts a pod on its node and lets plugins take what else it needs. When one refuses, nothing is left of it all.
func (b *binds) reserve(prof *profile, p *cluster.Pod, n cluster.NodeIdx) (holds []held, no *refusal) {
	trial := b.e.store.Trial()
	trial.Assume(p, n)
	for _, r := range prof.Reservers {
		b.e.cfg.Meter.Plugin(plugin.AtReserve, r.Name())
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
		return nil, &refusal{plugin: cmp.Or(got.By, r.Name()), reject: got.Reject, err: got.Err, worded: got.Worded}
	}
	trial.Commit()
	return holds, nil
}

// depart sends a decided pod on its way: to its writes if there are any, to its bind if everything is ready.
func (b *binds) depart(f *flight) {
	var writes []cluster.Write
	for _, h := range f.holds {
		writes = append(writes, h.hold.Writes()...)
	}
	b.add(f)
	b.watch(f)
	if len(writes) > 0 {
		f.stage, f.wrote = preparing, true
		f.before = []string{"writes of " + f.writer()}
		b.e.emit(Prepare{Pod: f.pod.Ref(), Node: f.node, Decision: f.decision, Writes: writes})
		b.expect(f)
		return
	}
	f.stage = waiting
	b.proceed(f)
}

// watch tests events for a pod by itself that plugins may still reject.
func (b *binds) watch(f *flight) {
	if f.gang != nil {
		return // it comes back to its gang, which is tried again
	}
	var plugins []string
	for _, h := range f.holds {
		if r, may := h.hold.(plugin.WaitingReservation); may {
			plugins = append(plugins, r.Rejecters()...)
		}
	}
	b.e.queue.Watch(f.unit, plugins)
}

// writesDone learns what became of a pod's writes.
func (b *binds) writesDone(ev WritesDone) {
	f := b.of[cluster.UID(ev.Pod.UID)]
	if f == nil || f.stage != preparing || f.decision != ev.Decision {
		b.e.trouble(ev.Pod.Key(), "outcome of writes that were not asked for", fmt.Sprintf("decision %d: %q", ev.Decision, ev.Message))
		return
	}
	switch {
	case f.cancelled != "":
		b.cancel(f)
	case f.recalled != "":
		b.endRecall(f)
	case ev.Message != "":
		b.undoPlacement(f, refusal{plugin: f.writer(), err: errors.New(ev.Message)})
	default:
		f.stage = waiting
		b.proceed(f)
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
func (b *binds) proceed(f *flight) {
	b.resume(f)
	f.before = nil
	s, ready := b.e.store.Snapshot(), true
	var again record.Time
	if _, there := s.Find(f.node); !there {
		// The API server would take the bind: it does not ask for the node.
		b.endFlight(f)
		b.retryAfterError(f, BindDone{Outcome: BindFailed, Message: fmt.Sprintf("node %q is gone", f.node)})
		return
	}
	for i := range f.holds {
		h := &f.holds[i]
		r := h.hold.Ready(s, b.e.now)
		switch {
		case r.Err != nil || r.Reject != "":
			b.undoPlacement(f, refusal{plugin: cmp.Or(r.By, h.by), reject: r.Reject, err: r.Err, worded: r.Worded})
			return
		case !r.Ready:
			ready = false
			f.before = append(f.before, h.by)
			b.announce(f, h)
			if r.Again != 0 && (again == 0 || r.Again < again) {
				again = r.Again
			}
		}
	}
	if !ready {
		b.wait(f, again)
		b.expect(f)
		return
	}
	f.stage = binding
	b.e.queue.EndWatch(f.unit)
	bind := Bind{Pod: f.pod.Ref(), Node: f.node, Decision: f.decision, Gang: f.gang}
	if foreign := b.e.profiles[f.pod.Spec.SchedulerName].Foreign; foreign != nil {
		bind.Via = foreign.Binder(f.pod)
		f.expected = f.expected || bind.Via != "" // plugins' PreBind is called, and the node is nominated before
	}
	b.e.emit(bind)
}

// expect shows once where a pod that is not bound at once is about to go, so that no other pod takes the node
// meanwhile. A bind that fails clears it, with the condition.
func (b *binds) expect(f *flight) {
	if !f.expected && f.pod.Nominated != f.node {
		b.e.emit(Nominate{Pod: f.pod.Ref(), Node: f.node})
	}
	f.expected = true
}

// announce tells once that a pod must wait, if its plugin has something to say about it.
func (b *binds) announce(f *flight, h *held) {
	a, tells := h.hold.(plugin.Announcer)
	if !tells || h.announced {
		return
	}
	h.announced = true
	n := a.Announce()
	b.e.writeEvent(f.pod.Ref(), "Normal", n.Reason, n.Action, n.Note)
}

// askAgain asks decided pods that wait whether they can be bound now.
func (b *binds) askAgain(flights []*flight) {
	for _, f := range flights {
		if b.of[f.pod.UID] == f {
			b.proceed(f)
		}
	}
}

// letGo gives back what is held for a pod; what was written is undone, too.
func (b *binds) letGo(f *flight) {
	if len(f.holds) == 0 {
		return
	}
	var writes []cluster.Write
	trial := b.e.store.Trial()
	for _, h := range slices.Backward(f.holds) {
		writes = append(writes, h.hold.Release(trial, f.wrote)...)
	}
	trial.Commit()
	f.holds = nil
	for _, r := range trial.Restored() {
		// What was taken by assumption is free: pods that saw it taken may have it. Upstream leaves pods that volume
		// binding rejected for that to wait for the flush.
		if r.Is == nil {
			b.e.objectHappened(r.Kind, plugin.Delete, r.Was, nil)
		} else {
			b.e.objectHappened(r.Kind, plugin.Update, r.Was, r.Is)
		}
	}
	if len(writes) > 0 {
		b.e.emit(Release{Pod: f.pod.Ref(), Writes: writes})
	}
}

// undoPlacement ends the placement of a pod whose writes or whose waiting failed: it releases everything and requeues
// the pod.
func (b *binds) undoPlacement(f *flight, why refusal) {
	uid := f.pod.UID
	// That its own capacity is free again does not help the pod, so that event is not tested for it.
	why.watched = b.e.queue.EndWatch(f.unit)
	b.endFlight(f)
	if why.err != nil {
		b.retryAfterError(f, BindDone{Outcome: BindFailed, Message: why.words("PreBind")})
		return
	}
	p := b.e.pending[uid]
	if p == nil {
		return
	}
	if f.gang != nil {
		b.e.backToGang(p, undone, "plugin "+why.plugin+" refused it on its node: "+why.reject)
		b.e.tell(p, ReasonUnschedulable, fmt.Sprintf("0/1 nodes are available: 1 %s.", why.reject), f.shownUntilNow(p))
		return
	}
	f.unit.Members[0] = p
	d := b.decisionOf(f)
	d.Nodes = 1
	b.e.refuse(f.unit, d, f.node, why, f.shownUntilNow(p))
}

// decisionOf is the decision of a pod that comes back; its unit holds the newest version of the pod.
func (b *binds) decisionOf(f *flight) record.Decision {
	p := f.unit.Pod()
	return record.Decision{
		Number: f.decision, At: b.e.now, Revision: b.e.store.Snapshot().Revision(), Pod: p.Ref(),
		Profile: p.Spec.SchedulerName, Attempt: f.unit.Attempts,
	}
}

// endFlight takes a pod off its way and gives back what it held.
func (b *binds) endFlight(f *flight) {
	b.cancel(f)
	b.e.release(f.pod.UID)
}

// cancel ends the way of a pod that is gone, going, or bound by someone else.
func (b *binds) cancel(f *flight) {
	b.remove(f)
	b.letGo(f)
}

// abandon handles a pod that is not to be bound any more, wherever it is on its way. What is on the way to the API
// server ends first.
func (b *binds) abandon(uid cluster.UID, why string) {
	f := b.of[uid]
	switch {
	case f == nil || f.stage == binding:
	case f.stage == preparing:
		f.cancelled = why
	default:
		b.cancel(f)
	}
}
