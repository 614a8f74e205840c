// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/sim"
)

// observed is an engine whose events are observed.
type observed struct {
	*engine.Engine
	to *Observed
}

func (o *observed) Step(ev engine.Event) []engine.Effect {
	effects := o.Engine.Step(ev)
	o.to.Add(ev, effects)
	return effects
}

// recording runs pods of many shapes, and pods of high priority that evict some, under a model.
func recording(model sim.Model) *Observed {
	p := engine.DefaultProfile(v1.DefaultSchedulerName)
	p.Preemption = &preempt.Config{}
	o := New()
	w := sim.New(sim.Setup{Seed: 3, Model: model, Schedulers: []sim.Scheduler{{Name: "a", Make: func() sim.Stepper {
		return &observed{engine.New(engine.Config{Profiles: []engine.Profile{p}, Less: basic.PrioritySort{},
			InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second}), o}
	}}}})
	for i := range 40 {
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("n", i)}}
		n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("8"),
			v1.ResourcePods: apiresource.MustParse("110")}
		w.AddNode(n)
	}
	w.Start()
	asking := func(cpu string, priority int32) *v1.Pod {
		p := &v1.Pod{}
		p.Spec.Priority = &priority
		p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: apiresource.MustParse(cpu)}}}}
		return p
	}
	w.Load(&sim.Workload{Name: "slow", Pod: asking("100m", 0), Count: 100, Every: sim.Always(time.Second),
		Work: sim.Always(time.Hour)}, 0)
	w.Load(&sim.Workload{Name: "burst", Pod: asking("500m", 0), Size: 600, First: 3 * time.Minute,
		Work: sim.Always(time.Hour)}, 1)
	for i := range 40 {
		w.Load(&sim.Workload{Name: fmt.Sprint("own", i), Pod: asking(fmt.Sprint(10+i, "m"), 0), First: 4*time.Minute +
			time.Duration(i)*time.Second}, 2+i)
	}
	w.Load(&sim.Workload{Name: "high", Pod: asking("7", 100), Count: 15, First: 6 * time.Minute,
		Every: sim.Always(10 * time.Second)}, 60)
	w.Run(sim.Limits{Until: 20 * time.Minute, WhenQuiet: true})
	return o
}

func near(t *testing.T, what string, got, want time.Duration, within float64) {
	t.Helper()
	if Deviation(got.Seconds(), want.Seconds()) > within {
		t.Errorf("%s: %v, want %v within %.0f %%", what, got, want, 100*within)
	}
}

// TestKnownParameters: what a model says is found in a recording that was made under it.
func TestKnownParameters(t *testing.T) {
	between := func(a, b int) sim.Durations {
		return sim.Durations{Shape: sim.Uniform, A: time.Duration(a) * time.Millisecond, B: time.Duration(b) * time.Millisecond}
	}
	model := sim.Model{Decision: 9 * time.Millisecond, InFlight: 64, Watch: between(20, 40), Stop: between(2000, 4000),
		Decisions: map[record.Path]time.Duration{record.Ranked: 400 * time.Microsecond, record.Grouped: time.Millisecond,
			record.Scanned: 2 * time.Millisecond},
		Calls: []sim.CallLatency{{InFlight: 4, Latency: between(10, 14)}, {InFlight: 1 << 20, Latency: between(30, 50)}}}
	m := recording(model).Fit()
	t.Logf("%+v", m.Parts)
	for path, want := range model.Decisions { // order: each by itself
		if got, is := m.Decisions[path]; is {
			near(t, string(path), got, want, 0.05)
		}
	}
	if len(m.Decisions) < 2 {
		t.Errorf("decisions by path: %v", m.Decisions)
	}
	if m.Nodes != 40 || m.Watch == nil || m.Stop == nil || len(m.Calls) < 3 {
		t.Fatalf("%+v", m)
	}
	near(t, "watch, from", m.Watch.A, 20*time.Millisecond, 0.5) // in a burst, the order is kept
	near(t, "watch, to", m.Watch.B, 40*time.Millisecond, 0.25)
	near(t, "stop, from", m.Stop.A, 2*time.Second, 0.25)
	near(t, "stop, to", m.Stop.B, 4*time.Second, 0.25)
	near(t, "one bind, from", m.Calls[0].Latency.A, 10*time.Millisecond, 0.25)
	near(t, "one bind, to", m.Calls[0].Latency.B, 14*time.Millisecond, 0.25)
	last := m.Calls[len(m.Calls)-1]
	if last.Latency.A < 25*time.Millisecond {
		t.Errorf("many binds: %+v", last)
	}
	for _, p := range m.Parts {
		if p.Samples < least || p.Error > 0.3 {
			t.Errorf("%+v", p)
		}
	}
}

// TestRestsAreNoDecisions: turns with few decisions may end with a rest of the loop. They do not count.
func TestRestsAreNoDecisions(t *testing.T) {
	o, now := New(), record.Second
	o.Add(engine.Synced{}, nil)
	turn := func(cycles int, took record.Time) {
		o.Add(engine.Tick{Now: now}, nil)
		for range cycles {
			o.Add(engine.Cycle{}, []engine.Effect{engine.Decided{Decision: record.Decision{Path: record.Ranked}}})
		}
		now += took
	}
	for range 12 {
		turn(4, 4*record.Time(time.Millisecond))
	}
	for range 40 {
		turn(1, 100*record.Time(time.Millisecond))
	}
	if got := o.Fit().Decisions[record.Ranked]; got != time.Millisecond {
		t.Errorf("a decision takes %v, want 1ms", got)
	}
}

// TestFigures: throughput and waits are from the first sight of a pod to the answer of its bind.
func TestFigures(t *testing.T) {
	o := recording(sim.Model{Decision: time.Millisecond, Call: sim.Always(50 * time.Millisecond)})
	f := o.Figures()
	if f.Pods < 700 || f.P50 < 50*time.Millisecond || f.P99 < f.P50 || f.Throughput <= 0 {
		t.Errorf("%+v", f)
	}
	if got := New().Figures(); got != (Figures{}) {
		t.Errorf("of nothing: %+v", got)
	}
	if len(New().Fit().Parts) > 0 {
		t.Error("a model of nothing")
	}
	for _, c := range []struct{ value, truth, want float64 }{{1.1, 1, 0.1}, {0, 0, 0}, {1, 0, 1}, {1, 2, 0.5}} {
		if got := Deviation(c.value, c.truth); got < c.want-1e-9 || got > c.want+1e-9 {
			t.Errorf("%v of %v: %v", c.value, c.truth, got)
		}
	}
}
