// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/core/resource"
	"github.com/kumiki-scheduler/kumiki/record"
)

// ExplainPod reports on a pod by namespace and name. Asking changes no decision. The newest Decision and the moves are
// not kept here; whoever collects effects adds them.
func (e *Engine) ExplainPod(namespace, name string) (record.PodReport, bool) {
	p := e.findPod(namespace, name)
	if p == nil {
		return record.PodReport{}, false
	}
	s := e.store.Snapshot()
	r := record.PodReport{
		At: e.now, Revision: s.Revision(), Pod: p.Ref(), Profile: p.Spec.SchedulerName, Priority: p.Spec.Priority,
		Created: p.Created, Where: record.Gone, Terminating: p.Terminating, Nominated: p.Nominated, Gates: p.Spec.Gates,
		Requests: amounts(&p.Spec.Request),
	}
	switch {
	case p.Gang == nil || p.Gang.Bad != "":
	case e.apart(p.Gang.Key):
		r.Group = p.Gang.Key.String()
	default:
		r.Gang = p.Gang.Key.String()
	}
	if _, n, assumed, ok := s.PodOn(p.UID); ok {
		r.Node, r.Assumed = s.NodeName(n), assumed
		if f := e.binds.of[p.UID]; f != nil {
			r.Before = f.before
		}
		return r, true
	}
	if unit, sub, ok := e.queue.Lookup(p.UID); ok {
		e.waiting(&r, unit, sub)
	}
	if prof := e.profiles[p.Spec.SchedulerName]; prof != nil && len(p.Spec.Gates) == 0 {
		r.Fit, r.Preemption = e.fit(s, prof, p)
	}
	return r, true
}

// findPod looks among waiting pods first, then in the ledger.
func (e *Engine) findPod(namespace, name string) *cluster.Pod {
	var found *cluster.Pod
	older := func(p *cluster.Pod) bool {
		return found != nil && (found.Created > p.Created || found.Created == p.Created && found.UID > p.UID)
	}
	for _, p := range e.pending { // order: the newest pod of the name wins, by UID among equals
		if p.Namespace == namespace && p.Name == name && !older(p) {
			found = p
		}
	}
	if found != nil {
		return found
	}
	s := e.store.Snapshot()
	for n := range s.Rows() {
		s.EachPod(cluster.NodeIdx(n), func(p *cluster.Pod, _ bool) {
			if p.Namespace == namespace && p.Name == name && !older(p) {
				found = p
			}
		})
	}
	return found
}

// waiting fills in what the queue knows of a unit.
func (e *Engine) waiting(r *record.PodReport, unit *queue.Unit, sub record.SubQueue) {
	r.Where, r.Since, r.Attempts = sub, unit.Since, unit.Attempts
	r.Unschedulable, r.Errors = unit.UnschedulableCount, unit.ErrorCount
	r.Gate = unit.Gate
	if sub == record.Backoff {
		r.BackoffUntil = unit.BackoffUntil
	}
	if sub == record.Unschedulable && e.cfg.UnschedulableTimeout > 0 && unit.Aside == "" {
		r.FlushAt = unit.Since + e.cfg.UnschedulableTimeout
	}
	prof := e.profiles[r.Profile]
	if prof == nil || sub != record.Unschedulable && sub != record.Gated {
		return
	}
	for _, w := range prof.Wakers {
		if slices.Contains(unit.Plugins, w.Name()) || unit.Gate == w.Name() {
			waits := record.WaitsFor{Plugin: w.Name()}
			for _, wake := range w.Wakes() {
				waits.Events = append(waits.Events, eventNames(wake.Event)...)
			}
			r.WaitsFor = append(r.WaitsFor, waits)
		}
	}
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

// fit asks the filters now. A pod that was set aside makes them panic again, which must not end the process either.
func (e *Engine) fit(s cluster.Snapshot, prof *profile, p *cluster.Pod) (f *record.Fit, victims *record.Preemption) {
	defer func() {
		r := recover()
		if r == nil {
			return
		}
		if broken, ok := r.(cluster.Broken); ok {
			panic(broken)
		}
		prof.placer.Drop(p)
		f = &record.Fit{Nodes: s.Nodes(), PreFilterReason: fmt.Sprintf("judging the pod panicked: %v", r)}
	}()
	f, out := fitOf(s, prof.placer, e.queue, p)
	if f.Feasible == 0 {
		victims = e.victimsNow(prof, p, out)
	}
	return f, victims
}

// fitOf is what the filters say of a pod, and the outcome that tells it.
func fitOf(s cluster.Snapshot, pl *place.Placer, noms place.Nominations, p *cluster.Pod) (f *record.Fit, out place.Outcome) {
	out = pl.Explain(s, p, noms)
	if out.Err != nil {
		return &record.Fit{Nodes: out.Nodes, PreFilterReason: out.Err.Error()}, out
	}
	why := pl.Why(s, out)
	f = &record.Fit{Nodes: out.Nodes, Feasible: out.Feasible}
	if why.PreFilter != "" {
		f.PreFilterReason = why.PreFilter
		f.PreFilter = strings.Join(why.Plugins, ", ")
		return f, out
	}
	f.Reasons = why.Reasons
	slices.SortStableFunc(f.Reasons, func(a, b record.Reason) int {
		return cmp.Or(cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Plugin, b.Plugin), cmp.Compare(a.Reason, b.Reason))
	})
	if out.Feasible > 0 {
		for n := cluster.NodeIdx(0); int(n) < s.Rows() && len(f.FeasibleExamples) < 3; n++ {
			if s.Node(n) != nil && out.Verdict(n) == plugin.Fits {
				f.FeasibleExamples = append(f.FeasibleExamples, s.NodeName(n))
			}
		}
		return f, out
	}
	f.Remedies = remedies(s, pl, p, out)
	return f, out
}

// remedies finds, for each plugin that rejects, the node on which the least would have to change: the fewest other
// plugins against it, then the smallest lack.
func remedies(s cluster.Snapshot, pl *place.Placer, p *cluster.Pod, out place.Outcome) []record.Remedy {
	best := map[string]record.Remedy{} // plugin -> its cheapest remedy
	alone := map[string]int{}          // plugin -> nodes that it alone rejects
	for row := range s.Rows() {
		n := cluster.NodeIdx(row)
		node := s.Node(n)
		if node == nil || out.Verdict(n) == plugin.Excluded {
			continue
		}
		against := pl.Against(s, out, n)
		for i, f := range against {
			name := f.Name()
			rem := record.Remedy{Plugin: name, Node: node.Name, Do: "satisfy " + name + " on " + node.Name}
			if adviser, ok := f.(plugin.Adviser); ok {
				adviser.Advise(s.View(n), p, &rem)
			}
			rem.Also = others(against, i)
			if len(rem.Also) == 0 {
				alone[name]++
			}
			if old, known := best[name]; !known || cheaper(rem, old) {
				best[name] = rem
			}
		}
	}
	var list []record.Remedy
	for name, rem := range best { // order: sorted below by a key that no two share
		rem.Nodes = alone[name]
		list = append(list, rem)
	}
	slices.SortFunc(list, func(a, b record.Remedy) int {
		return cmp.Or(cmp.Compare(len(a.Also), len(b.Also)), cmp.Compare(b.Nodes, a.Nodes), cmp.Compare(a.Plugin, b.Plugin))
	})
	return list
}

func others(filters []plugin.Filter, but int) []string {
	var names []string
	for i, f := range filters {
		if i != but {
			names = append(names, f.Name())
		}
	}
	return names
}

func cheaper(a, b record.Remedy) bool {
	if len(a.Also) != len(b.Also) {
		return len(a.Also) < len(b.Also)
	}
	return share(a) < share(b)
}

// share is how much of what is asked a node lacks; 0 for a remedy that is not about an amount.
func share(r record.Remedy) float64 {
	if r.Need == 0 {
		return 0
	}
	return float64(r.Short) / float64(r.Need)
}

// amounts lists what is asked for, fixed resources first.
func amounts(a *resource.Amounts) []record.ResourceAmount {
	var list []record.ResourceAmount
	add := func(name v1.ResourceName, value int64) {
		if value != 0 {
			list = append(list, record.ResourceAmount{Resource: string(name), Value: value, Overflowed: value == resource.Overflowed})
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
