// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"testing"
	"time"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
	"github.com/kumiki-scheduler/kumiki/record"
)

// TestUselessWakeUps: a wake-up whose next attempt places nothing is useless, once; one that places the pod is not.
func TestUselessWakeUps(t *testing.T) {
	c, s := newCounting(), newSimulatedCPU()
	c.tally.MeasureCPU(s.StepCPU)
	s.MeasureAll(true)
	step := func(events ...engine.Event) {
		for _, ev := range events {
			c.tally.Begin(ev)
			effects := c.Step(ev)
			if _, cycle := ev.(engine.Cycle); cycle {
				s.cpu, s.now = s.cpu+time.Microsecond, s.now+time.Microsecond
			}
			c.tally.End()
			c.tally.Step(ev, effects, time.Now())
		}
	}
	only := func(when string, want record.EventWakeUps) {
		t.Helper()
		if list := c.tally.Report().Waste.WakeUps; len(list) != 1 || list[0] != want {
			t.Errorf("%s: %+v, want %+v", when, list, want)
		}
	}
	p := kubetest.PendingPod("p", "1")
	step(c.node("n", "100m"), engine.Synced{}, c.pod(p), engine.Cycle{})
	if r := c.tally.Report().Waste; len(r.WakeUps) > 0 || r.Decisions != 1 || r.FullScans != 0 {
		t.Errorf("rejected: %+v", r)
	}
	const plugin, event = "NodeResourcesFit", "NodeUpdateNodeAllocatable"
	closed := kubetest.Node("n") // large enough, and unschedulable
	closed.Spec.Unschedulable = true
	step(engine.NodeSet{Node: c.intake.Node(closed)})
	only("woken", record.EventWakeUps{Plugin: plugin, Event: event, Woken: 1})
	c.pass(20 * record.Second)
	step(engine.Cycle{}, engine.Cycle{})
	only("for nothing", record.EventWakeUps{Plugin: plugin, Event: event, Woken: 1, Useless: 1, Measured: 1, CPU: time.Microsecond})
	c.check(t, "for nothing", count{1, "kumiki_useless_wakeups_total", []string{"plugin=" + plugin, "event=" + event}})
	step(c.node("n", "8"))
	c.pass(20 * record.Second)
	step(engine.Cycle{})
	if list := c.tally.Report().Waste.WakeUps; len(list) != 2 || list[0].Woken != 1 || list[1].Woken != 1 || list[1].Useless != 0 {
		t.Errorf("placed: %+v, want a second wake-up that is not useless", list)
	}
	if n := len(c.tally.waste.woken); n != 0 {
		t.Errorf("%d units are still followed", n)
	}
}

// TestFlushedAndGonePods: a unit that time alone wakes is flushed. One that goes away after it was woken was not woken
// for nothing, and is not followed any more.
func TestFlushedAndGonePods(t *testing.T) {
	c := newCounting()
	p := kubetest.PendingPod("p", "1")
	c.step(c.node("n", "100m"), engine.Synced{}, c.pod(p), engine.Cycle{})
	c.pass(400 * record.Second)
	r := c.tally.Report().Waste
	if r.Flushed != 1 || len(r.WakeUps) != 1 || r.WakeUps[0].Event != flushEvent {
		t.Errorf("flushed: %+v", r)
	}
	c.step(engine.PodGone{Pod: kubetest.Ref(p)})
	if r := c.tally.Report().Waste; r.WakeUps[0].Useless != 0 || len(c.tally.waste.woken) != 0 {
		t.Errorf("gone: %+v, follows %v", r, c.tally.waste.woken)
	}
}

// TestReportSince: a report of an interval has what is new, and no row of what is not.
func TestReportSince(t *testing.T) {
	before := record.WorkReport{Interval: 10, Work: map[string]uint64{"groups": 3}, Steps: map[string]record.StepCPU{
		"cycles": {Steps: 5, Measured: 1, CPU: 100, Wall: 110, Disturbed: 1}},
		Plugins: []record.PluginCPU{{Plugin: "A", CPU: 5, Cycles: 1}, {Plugin: "B", CPU: 5, Cycles: 1}},
		Waste: record.Waste{Flushed: 1, RecalledBinds: 2, UselessEvictions: 3, FullScans: 4, Decisions: 5, WakeUps: []record.EventWakeUps{
			{Plugin: "A", Event: "x", Woken: 4, Useless: 2, Measured: 1, CPU: 7}, {Plugin: "A", Event: "y", Woken: 1}}}}
	after := record.WorkReport{Interval: 30, Work: map[string]uint64{"groups": 4}, Steps: map[string]record.StepCPU{
		"cycles": {Steps: 7, Measured: 3, CPU: 150, Wall: 170, Disturbed: 2}},
		Plugins: []record.PluginCPU{{Plugin: "B", CPU: 9, Cycles: 3}, {Plugin: "A", CPU: 5, Cycles: 1}},
		Waste: record.Waste{Flushed: 2, RecalledBinds: 4, UselessEvictions: 6, FullScans: 8, Decisions: 10, WakeUps: []record.EventWakeUps{
			{Plugin: "A", Event: "x", Woken: 5, Useless: 4, Measured: 2, CPU: 9}, {Plugin: "A", Event: "y", Woken: 1}}}}
	r := after.Since(&before)
	if r.Interval != 20 || r.Work["groups"] != 1 || r.Steps["cycles"] != (record.StepCPU{Steps: 2, Measured: 2, CPU: 50, Wall: 60, Disturbed: 1}) {
		t.Errorf("%+v", r)
	}
	if len(r.Plugins) != 1 || r.Plugins[0] != (record.PluginCPU{Plugin: "B", CPU: 4, Cycles: 2}) {
		t.Errorf("plugins %+v", r.Plugins)
	}
	if w := r.Waste; w.Flushed != 1 || w.RecalledBinds != 2 || w.UselessEvictions != 3 || w.FullScans != 4 || w.Decisions != 5 ||
		len(w.WakeUps) != 1 || w.WakeUps[0] != (record.EventWakeUps{Plugin: "A", Event: "x", Woken: 1, Useless: 2, Measured: 1, CPU: 2}) {
		t.Errorf("waste %+v", w)
	}
}

// TestAGangThatIsPlacedInPart: a gang whose surplus members go back to the queue was not woken for nothing.
func TestAGangThatIsPlacedInPart(t *testing.T) {
	m, _ := counted()
	w := newWaste()
	move := func(from, to record.SubQueue, event string) engine.Effect {
		return engine.Moved{Move: record.QueueMove{Gang: "ns/g", From: from, To: to, Event: event, Hint: "P"}}
	}
	w.follow(m, engine.Tick{}, []engine.Effect{move(record.Gated, record.Active, "PodAdd")}, measuredStep{})
	w.follow(m, engine.Cycle{}, []engine.Effect{
		engine.Decided{Decision: record.Decision{Verdict: record.Placed}}, move(record.InFlight, record.Unschedulable, "Stay"),
	}, measuredStep{})
	if r := w.report(); len(r.WakeUps) != 1 || r.WakeUps[0].Woken != 1 || r.WakeUps[0].Useless != 0 || len(w.woken) != 0 {
		t.Errorf("%+v, follows %v", r, w.woken)
	}
}
