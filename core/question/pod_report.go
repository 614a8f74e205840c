// SPDX-License-Identifier: Apache-2.0

package question

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/core/resource"
	"github.com/kumiki-scheduler/kumiki/record"
)

// ExplainPod reports on a pod by namespace and name; ok is false for a pod that is not known. The newest Decision
// and the moves are not kept in the engine; the collector of effects adds them.
func (i Inspector) ExplainPod(namespace, name string) (r record.PodReport, ok bool) {
	p := i.findPod(namespace, name)
	if p == nil {
		return record.PodReport{}, false
	}
	s := i.view.Snapshot()
	r = record.PodReport{
		At: i.view.Now(), Revision: s.Revision(), Pod: p.Ref(), Profile: p.Spec.SchedulerName,
		Priority: p.Spec.Priority, Created: p.Created, Where: record.Gone,
		Terminating: p.Terminating, Nominated: p.Nominated, Gates: p.Spec.Gates,
		Requests: amounts(&p.Spec.Request),
	}
	switch {
	case i.inGang(p):
		r.Gang = p.Gang.Key.String()
	case p.Gang != nil && p.Gang.Bad == "":
		r.Group = p.Gang.Key.String()
	}
	if _, n, assumed, holds := s.PodOn(p.UID); holds {
		r.Node, r.Assumed, r.Before = s.NodeName(n), assumed, i.view.BeforeBind(p.UID)
		return r, true
	}
	if unit, sub, waits := i.view.Queue().Lookup(p.UID); waits {
		i.addWaiting(&r, unit, sub)
	}
	if i.view.Profile(p.Spec.SchedulerName) != nil && len(p.Spec.Gates) == 0 {
		r.Fit, r.Preemption = i.fit(p)
	}
	return r, true
}

// Fit returns what the filters say of a waiting pod now and, if it fits on no node, which pods it would evict. Both
// are nil for a pod that does not wait or that no profile schedules.
func (i Inspector) Fit(uid cluster.UID) (*record.Fit, *record.Preemption) {
	p := i.view.Pending(uid)
	if p == nil || i.view.Profile(p.Spec.SchedulerName) == nil {
		return nil, nil
	}
	return i.fit(p)
}

// addWaiting adds what the queue knows of a unit.
func (i Inspector) addWaiting(r *record.PodReport, unit *queue.Unit, sub record.SubQueue) {
	r.Where, r.Since, r.Attempts = sub, unit.Since, unit.Attempts
	r.Unschedulable, r.Errors = unit.UnschedulableCount, unit.ErrorCount
	r.Gate = unit.Gate
	if sub == record.Backoff {
		r.BackoffUntil = unit.BackoffUntil
	}
	if timeout := i.view.Config().UnschedulableTimeout; sub == record.Unschedulable && timeout > 0 && unit.Aside == "" {
		r.FlushAt = unit.Since + timeout
	}
	prof := i.view.Profile(r.Profile)
	if prof == nil || sub != record.Unschedulable && sub != record.Gated {
		return
	}
	for _, w := range prof.Wakers {
		if slices.Contains(unit.Plugins, w.Name()) || unit.Gate == w.Name() {
			r.WaitsFor = append(r.WaitsFor, waitsFor(w))
		}
	}
}

// waitsFor lists the events of a plugin that wake the pods that it rejected.
func waitsFor(w plugin.Waker) record.WaitsFor {
	waits := record.WaitsFor{Plugin: w.Name()}
	for _, wake := range w.Wakes() {
		waits.Events = append(waits.Events, eventNames(wake.Event)...)
	}
	return waits
}

// eventNames lists what a registration covers, one name per action; all updates have one name.
func eventNames(ev plugin.Event) []string {
	if ev.Action == plugin.All {
		return []string{ev.String()}
	}
	var names []string
	name := func(a plugin.Action) { names = append(names, plugin.Event{Resource: ev.Resource, Action: a}.String()) }
	for bit := plugin.Add; bit != 0 && bit <= plugin.All; bit <<= 1 {
		switch {
		case ev.Action&bit == 0:
		case plugin.Update&bit != 0 && ev.Action&plugin.Update == plugin.Update:
			if bit == plugin.UpdateNodeAllocatable { // the first of them
				name(plugin.Update)
			}
		default:
			name(bit)
		}
	}
	return names
}

// fit runs the filters now. A pod that was set aside makes them panic again, which must not end the process either.
func (i Inspector) fit(p *cluster.Pod) (f *record.Fit, victims *record.Preemption) {
	s, prof := i.view.Snapshot(), i.view.Profile(p.Spec.SchedulerName)
	placer := i.view.Placer(prof.Name)
	defer contain(func(cause any) {
		placer.Drop(p)
		f = &record.Fit{Nodes: s.Nodes(), PreFilterReason: fmt.Sprintf("judging the pod panicked: %v", cause)}
	})
	f, out := fitOf(s, placer, i.view.NominationsFor(p), p)
	if f.Feasible == 0 {
		victims = i.victimsNow(prof, p, out)
	}
	return f, victims
}

// amounts lists what is requested, fixed resources first.
func amounts(a *resource.Amounts) []record.ResourceAmount {
	var list []record.ResourceAmount
	add := func(name v1.ResourceName, value int64) {
		if value != 0 {
			list = append(list, record.ResourceAmount{
				Resource: string(name), Value: value, Overflowed: value == resource.Overflowed,
			})
		}
	}
	add(v1.ResourceCPU, a.MilliCPU)
	add(v1.ResourceMemory, a.Memory)
	add(v1.ResourceEphemeralStorage, a.Ephemeral)
	for _, sc := range a.Scalars {
		add(sc.Name, sc.Value)
	}
	return list
}
