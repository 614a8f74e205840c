// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// bindStranger lets another scheduler bind a pod of its own, whether there is capacity or not.
func (w *world) bindStranger() {
	p := w.newPod(fmt.Sprintf("s%d", rapid.IntRange(0, 9).Draw(w.t, "stranger")))
	p.Spec.SchedulerName, p.Spec.SchedulingGates = "other", nil
	p.Spec.NodeName = fmt.Sprintf("n%d", rapid.IntRange(0, 2).Draw(w.t, "its node"))
	w.changed(p)
}

// checkOurs: nothing is ever done to a pod of another scheduler, or said of it. Catches a recheck that writes an event
// about the pod that it found.
func (w *world) checkOurs(f engine.Effect) {
	var about record.PodRef
	switch f := f.(type) {
	case engine.Bind:
		about = f.Pod
	case engine.Recall:
		about = f.Pod
	case engine.Prepare:
		about = f.Pod
	case engine.Release:
		about = f.Pod
	case engine.Nominate:
		about = f.Pod
	case engine.Condition:
		about = f.Pod
	case engine.WriteEvent:
		about = f.Pod
	case engine.Decided:
		about = f.Decision.Pod
	}
	if p := w.pods[about.UID]; p != nil && p.Spec.SchedulerName == "other" {
		w.t.Fatalf("%T is about pod %s of another scheduler", f, about.Name)
	}
}

// recall takes a bind back, unless it is on its way.
func (w *world) recall(f engine.Recall) {
	if w.recalled[f.Decision] {
		w.t.Fatalf("the bind of %s, decision %d, is recalled twice", f.Pod.Name, f.Decision)
	}
	w.recalled[f.Decision] = true
	i := slices.IndexFunc(w.binds, func(b engine.Bind) bool { return b.Decision == f.Decision })
	if i < 0 || rapid.IntRange(0, 2).Draw(w.t, "the recall comes too late") == 0 {
		return
	}
	w.binds = slices.Delete(w.binds, i, i+1)
	w.answers = append(w.answers, engine.BindDone{Pod: f.Pod, Node: f.Node, Outcome: engine.BindRecalled})
}

// foreignNode is the node of a pod that the step of an event finds bound although no decision had it there at that
// moment, or although its decision was recalled; empty for none. It is asked before the step.
func (w *world) foreignNode(ev engine.Event, flights []engine.Flight) string {
	s := w.engine.Snapshot()
	switch ev := ev.(type) {
	case engine.PodSet:
		if _, n, _, ok := s.PodOn(ev.Pod.UID); !ok || s.NodeName(n) != ev.Pod.NodeName {
			return ev.Pod.NodeName
		}
	case engine.BindDone:
		i := slices.IndexFunc(flights, func(f engine.Flight) bool { return string(f.Pod.UID) == ev.Pod.UID })
		_, n, assumed, holds := s.PodOn(cluster.UID(ev.Pod.UID))
		switch {
		case i < 0 || !holds || s.NodeName(n) != flights[i].Node:
		case ev.Outcome == engine.Bound && flights[i].Recalled:
			return flights[i].Node
		case ev.Outcome == engine.BoundElsewhere && assumed: // otherwise the watch was faster
			return ev.Node
		}
	}
	return ""
}

// sharing is the sum of the pods of a node, in the arithmetic of this test.
type sharing struct {
	cpu         float64
	pods, ports int // ports: pods that want the one port there is in these histories
}

func (s *sharing) add(p *cluster.Pod) {
	s.cpu += float64(p.Spec.Held.MilliCPU)
	s.pods++
	s.ports += len(p.Spec.Ports)
}

// against tells why a pod that is counted in s may not be there.
func (s *sharing) against(p *cluster.Pod, n *cluster.Node) string {
	switch {
	case s.pods > 3:
		return "too many pods"
	case len(p.Spec.Ports) > 0 && s.ports > 1:
		return "the port is taken"
	case p.Spec.Held.MilliCPU > 0 && s.cpu > float64(n.Allocatable.MilliCPU):
		return "too few cores"
	}
	return ""
}

// checkRechecked looks at a node on which a pod was found that was not decided to be there. Of the pods on their
// way to it exactly those are recalled that do not fit beside the ones that are there or cannot be recalled, and
// beside older ones that go on. before are the flights as they were before the step.
func (w *world) checkRechecked(node string, before []engine.Flight) {
	s := w.engine.Snapshot()
	row, ok := s.Find(node)
	if !ok {
		return
	}
	recalledBefore := func(f engine.Flight) bool {
		return slices.ContainsFunc(before, func(b engine.Flight) bool { return b.Decision == f.Decision && b.Recalled })
	}
	var beside sharing
	var judged []engine.Flight
	flights := engine.Flights(w.engine)
	s.EachPod(row, func(p *cluster.Pod, assumed bool) {
		i := slices.IndexFunc(flights, func(f engine.Flight) bool { return f.Pod.UID == p.UID })
		switch {
		case !assumed || i < 0:
			beside.add(p)
		case !recalledBefore(flights[i]):
			judged = append(judged, flights[i])
		case !flights[i].Preparing:
			beside.add(p)
		}
	})
	slices.SortFunc(judged, func(a, b engine.Flight) int { return int(a.Decision) - int(b.Decision) })
	for _, f := range judged {
		with := beside
		with.add(f.Pod)
		why := with.against(f.Pod, s.Node(row))
		switch {
		case why != "" && !f.Recalled:
			w.t.Fatalf("pod %s goes on to %s: %s: %+v", f.Pod.Name, node, why, with)
		case why == "" && f.Recalled:
			w.t.Fatalf("pod %s is taken back from %s and fits there: %+v", f.Pod.Name, node, with)
		}
		if !f.Recalled {
			beside = with
		}
	}
}

// BenchmarkForeignBind is what a bind by another scheduler costs, at 1,000 nodes with 2,000 of our pods on their
// way: the step that takes in the bound pod and judges those on its node, and the one that takes it out again. In
// "spread" two are on their way to each node, in "packed" a hundred, in "none" nothing is.
func BenchmarkForeignBind(b *testing.B) {
	for _, c := range []struct {
		name          string
		flights, over int // nodes that they go to
	}{{"none", 0, 1}, {"spread", 2000, 1000}, {"packed", 2000, 20}} {
		b.Run(c.name, func(b *testing.B) {
			e, in := benchEngine(1000, 0)
			for i := range c.flights {
				p := benchPod(i, 0)
				p.Spec.NodeSelector = map[string]string{"kubernetes.io/hostname": fmt.Sprintf("node-%05d", 1+10*(i%c.over)%1000)}
				if c.over == 1000 {
					p.Spec.NodeSelector, p.Spec.Tolerations = nil, []v1.Toleration{{Operator: v1.TolerationOpExists}}
				}
				e.Step(engine.PodSet{Pod: in.Pod(p)})
				e.Step(engine.Cycle{})
			}
			foreign := benchPod(1_000_000, 0)
			foreign.Spec.SchedulerName, foreign.Spec.NodeName = "other", "node-00001"
			bound := in.Pod(foreign)
			judged := 0
			b.ReportAllocs()
			for b.Loop() {
				for _, f := range e.Step(engine.PodSet{Pod: bound}) {
					if r, is := f.(engine.Rechecked); is {
						judged = r.Pods
					}
				}
				e.Step(engine.PodGone{Pod: bound.Ref()})
			}
			b.ReportMetric(float64(judged), "pods")
		})
	}
}
