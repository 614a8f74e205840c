// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
	"github.com/kumiki-scheduler/kumiki/record"
)

// TestQueueMetricsFollowAPod plays the way of one pod. After each step it checks which plugins the pod counts for, and
// under which labels it came to the queues: gated pods are unschedulable ones, and a gate that stays shut after an
// event counts again. conformance/kumiki compares the same series with upstream's in random histories.
func TestQueueMetricsFollowAPod(t *testing.T) {
	m, reg := counted()
	meter := NewMeter()
	tl := NewTally(m, meter, time.Now())
	pod := record.PodRef{Namespace: "ns", Name: "p", UID: "1"}
	moved := func(from, to record.SubQueue, event, gate string) engine.Effect {
		return engine.Moved{Move: record.QueueMove{Pod: pod, From: from, To: to, Event: event, Hint: gate}}
	}
	first := &cluster.Pod{UID: "1", Spec: &cluster.PodSpec{SchedulerName: v1.DefaultSchedulerName}}
	rejected := engine.Decided{Decision: record.Decision{Pod: pod, Profile: v1.DefaultSchedulerName,
		Verdict: record.DoesNotFit, Plugins: []string{"Fit"}}}
	for _, s := range []struct {
		when        string
		event       engine.Event
		stays       string // an event after which the gate stays shut
		effects     []engine.Effect
		fit, gate   float64 // unschedulable_pods of the plugins Fit and Gate
		came, label string  // the labels of queue_incoming_pods_total that count this step, if any
		entity      bool    // so does queue_incoming_entities_total
	}{
		{when: "it comes gated", event: engine.PodSet{Pod: first},
			effects: []engine.Effect{moved(record.Gone, record.Gated, "UnscheduledPodAdd", "Gate")},
			gate:    1, came: "unschedulable", label: "UnscheduledPodAdd", entity: true},
		{when: "an event leaves its gate shut", stays: "NodeAdd",
			gate: 1, came: "unschedulable", label: "NodeAdd", entity: true},
		{when: "the gate opens", effects: []engine.Effect{moved(record.Gated, record.Active, "NodeUpdate", "")},
			gate: 1, came: "active", label: "NodeUpdate", entity: true},
		{when: "it fits nowhere", effects: []engine.Effect{moved(record.Active, record.InFlight, "Pop", ""),
			moved(record.InFlight, record.Unschedulable, "ScheduleAttemptFailure", ""), rejected},
			fit: 1, came: "unschedulable", label: "ScheduleAttemptFailure"},
		{when: "its own update meets a gate", effects: []engine.Effect{
			moved(record.Unschedulable, record.Gated, "TargetPodUpdateLabel", "Gate")},
			fit: 1, gate: 1},
		{when: "the gate opens again", effects: []engine.Effect{moved(record.Gated, record.Backoff, "PodDelete", "")},
			fit: 1, gate: 1, came: "backoff", label: "PodDelete"},
		{when: "it fits nowhere, and a gate has closed", effects: []engine.Effect{
			moved(record.Backoff, record.Active, "BackoffComplete", ""),
			moved(record.Active, record.InFlight, "Pop", ""),
			moved(record.InFlight, record.Gated, "ScheduleAttemptFailure", "Gate"), rejected},
			fit: 1, gate: 1, came: "unschedulable", label: "ScheduleAttemptFailure", entity: true},
		{when: "another event meets the gate", effects: []engine.Effect{
			moved(record.Gated, record.Unschedulable, "NodeDelete", "")},
			fit: 1, gate: 1, came: "unschedulable", label: "NodeDelete"},
		{when: "it is active again", effects: []engine.Effect{
			moved(record.Unschedulable, record.Active, "ForceActivate", "")},
			fit: 1, gate: 1, came: "active", label: "ForceActivate", entity: true},
		{when: "it is deleted", effects: []engine.Effect{moved(record.Active, record.Gone, "PodDelete", "")}},
	} {
		const pods, entities = "scheduler_queue_incoming_pods_total", "scheduler_queue_incoming_entities_total"
		in := []string{"queue=" + s.came, "event=" + s.label}
		allBefore, before := kubetest.Value(t, reg, pods), kubetest.Value(t, reg, pods, in...)
		entitiesBefore := kubetest.Value(t, reg, entities, in...)
		if s.event == nil {
			s.event = engine.Tick{}
		}
		if s.stays != "" {
			meter.StaysGated(record.QueueMove{Pod: pod, From: record.Gated, To: record.Gated, Event: s.stays})
		}
		tl.Step(s.event, s.effects, time.Now())

		for plugin, want := range map[string]float64{"Fit": s.fit, "Gate": s.gate} { // order: each is checked alone
			got := kubetest.Value(t, reg, "scheduler_unschedulable_pods", "plugin="+plugin,
				"profile="+v1.DefaultSchedulerName)
			if got != want {
				t.Errorf("%s: %v pods are unschedulable by %s, want %v", s.when, got, plugin, want)
			}
		}
		switch {
		case s.came == "" && kubetest.Value(t, reg, pods) != allBefore:
			t.Errorf("%s: it counts as coming to a queue", s.when)
		case s.came != "" && kubetest.Value(t, reg, pods, in...) != before+1:
			t.Errorf("%s: it does not count as coming to %v", s.when, in)
		case s.came != "" && (kubetest.Value(t, reg, entities, in...) != entitiesBefore) != s.entity:
			t.Errorf("%s: counts as an entity in %v: want %v", s.when, in, s.entity)
		}
	}
}
