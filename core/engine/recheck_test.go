// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
)

// bindStranger lets another scheduler bind a pod of its own, whether there is room or not.
func (w *world) bindStranger() {
	p := w.newPod(fmt.Sprintf("s%d", rapid.IntRange(0, 9).Draw(w.t, "stranger")))
	p.Spec.SchedulerName, p.Spec.SchedulingGates = "other", nil
	p.Spec.NodeName = fmt.Sprintf("n%d", rapid.IntRange(0, 2).Draw(w.t, "its node"))
	w.changed(p)
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

// stranger is the node of a pod that the step of an event finds bound although no decision had it there at that moment,
// or although its decision was recalled; empty for none. It is asked before the step.
func (w *world) stranger(ev engine.Event, flights []engine.Flight) string {
	s := w.engine.Snapshot()
	switch ev := ev.(type) {
	case engine.PodSet:
		if _, n, _, ok := s.PodOn(ev.Pod.UID); !ok || s.NodeName(n) != ev.Pod.NodeName {
			return ev.Pod.NodeName
		}
	case engine.BindDone:
		i := slices.IndexFunc(flights, func(f engine.Flight) bool { return string(f.Pod.UID) == ev.Pod.UID })
		_, _, _, holds := s.PodOn(cluster.UID(ev.Pod.UID))
		switch {
		case i < 0 || !holds:
		case ev.Outcome == engine.Bound && flights[i].Recalled:
			return flights[i].Node
		case ev.Outcome == engine.BoundElsewhere:
			return ev.Node
		}
	}
	return ""
}

// sharing is what the pods of a node come to, in the arithmetic of this test.
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

// checkRechecked looks at a node on which a pod was found that was not decided to be there. Of the pods on their way to it
// exactly those are taken back that do not fit beside the ones that are there or come whatever is said, and beside older
// ones that go on. before are the flights as they were before the step.
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
		locked := len(f.Pod.Spec.Labels) > 0 // its lock may be the reason, too
		switch {
		case why != "" && !f.Recalled:
			w.t.Fatalf("pod %s goes on to %s: %s: %+v", f.Pod.Name, node, why, with)
		case why == "" && f.Recalled && !locked:
			w.t.Fatalf("pod %s is taken back from %s and fits there: %+v", f.Pod.Name, node, with)
		}
		if !f.Recalled {
			beside = with
		}
	}
}
