// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-base/metrics"

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

// TestAnAttemptIsMeasuredFromItsCycle plays attempts that ended in another step than they began, an hour later, and one
// that failed in its cycle: each counts one run of the algorithm, and lasts from its own cycle.
func TestAnAttemptIsMeasuredFromItsCycle(t *testing.T) {
	const hour = 3600.0
	ref := record.PodRef{Namespace: "ns", Name: "p", UID: "1"}
	decided := func(v record.Verdict) []engine.Effect {
		return []engine.Effect{engine.Decided{Decision: record.Decision{Pod: ref, Profile: "a", Attempt: 1, Verdict: v}}}
	}
	rejected := engine.BindDone{Pod: ref, Outcome: engine.BindRejected}
	for _, c := range []struct {
		what, result string
		last         engine.Event // nil: the attempt ends in its cycle
		as           record.Verdict
	}{
		{"Bind is rejected by a plugin", "unschedulable", rejected, record.DoesNotFit},
		{"a plugin rejects at Permit", "unschedulable", engine.Tick{}, record.DoesNotFit},
		{"Bind fails", "error", rejected, record.AttemptFailed},
		{"the cycle fails", "error", nil, record.AttemptFailed},
	} {
		m, reg := counted()
		tl := NewTally(m, NewMeter(), time.Now())
		cycleBegan := time.Now().Add(-time.Hour)
		if c.last == nil {
			tl.Step(engine.Cycle{}, decided(c.as), cycleBegan)
		} else {
			tl.Step(engine.Cycle{}, append(decided(record.Placed), engine.Bind{Pod: ref}), cycleBegan)
			tl.Step(c.last, decided(c.as), time.Now())
		}
		if n := kubetest.Value(t, reg, "scheduler_scheduling_algorithm_duration_seconds"); n != 1 {
			t.Errorf("%s: %v runs of the algorithm are counted, want 1", c.what, n)
		}
		took := sumOf(t, reg, "scheduler_scheduling_attempt_duration_seconds", c.result)
		if took < hour || took > 2*hour {
			t.Errorf("%s: the attempt with result %s took %v s, want an hour", c.what, c.result, took)
		}
	}
}

// sumOf is the sum of the observations of a histogram with this result.
func sumOf(t *testing.T, reg metrics.Gatherer, name, result string) float64 {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == name && l.GetName() == "result" && l.GetValue() == result {
					sum += m.GetHistogram().GetSampleSum()
				}
			}
		}
	}
	return sum
}
