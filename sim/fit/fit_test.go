// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
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
	o := New(model.InFlight)
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

func between(a, b int) sim.Durations {
	return sim.Durations{Shape: sim.Uniform, A: time.Duration(a) * time.Millisecond,
		B: time.Duration(b) * time.Millisecond}
}

// TestKnownParameters: what a model says is found in a recording that was made under it.
func TestKnownParameters(t *testing.T) {
	model := sim.Model{Decision: 9 * time.Millisecond, InFlight: 64, Watch: between(20, 40), Stop: between(2000, 4000),
		Decisions: map[record.Path]time.Duration{record.Ranked: 400 * time.Microsecond, record.Grouped: time.Millisecond,
			record.Scanned: 2 * time.Millisecond},
		Loads: []sim.CallLatency{{InFlight: 4, Latency: between(10, 14)}, {InFlight: 1 << 20, Latency: between(30, 50)}}}
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
	if m.Nodes != 40 || m.Watch == nil || m.Stop == nil || len(m.Loads) < 2 {
		t.Fatalf("%+v", m)
	}
	near(t, "watch, p50", m.Watch.Quantile(0.5), 30*time.Millisecond, 0.35) // in a burst, the order is kept
	near(t, "watch, p99", m.Watch.Quantile(0.99), 40*time.Millisecond, 0.1)
	near(t, "first sight, p99", m.Sight.Quantile(0.99), 40*time.Millisecond, 0.1)
	near(t, "stop, p10", m.Stop.Quantile(0.1), 2200*time.Millisecond, 0.1)
	near(t, "stop, p90", m.Stop.Quantile(0.9), 3800*time.Millisecond, 0.1)
	near(t, "one bind, p50", m.Loads[0].Latency.Quantile(0.5), 12*time.Millisecond, 0.03)
	near(t, "one bind, p90", m.Loads[0].Latency.Quantile(0.9), 13600*time.Microsecond, 0.03)
	last := m.Loads[len(m.Loads)-1]
	if last.InFlight < 64 {
		t.Errorf("more than 48 binds were sent in 100 ms, but the last level is %d", last.InFlight)
	}
	near(t, "many binds, p50", last.Latency.Quantile(0.5), 40*time.Millisecond, 0.05)
	near(t, "many binds, p99", last.Latency.Quantile(0.99), 50*time.Millisecond, 0.05)
	for _, p := range m.Parts {
		if p.Samples < least || p.Error > 0.01 || p.Tail > 0.01 {
			t.Errorf("%+v", p)
		}
	}
}

// TestFittedModelRepeatsTheRun: under a model that was fitted to a run, the same run has the same figures.
func TestFittedModelRepeatsTheRun(t *testing.T) {
	call := sim.Durations{Shape: sim.Pareto, A: 8 * time.Millisecond, Alpha: 1.2, B: time.Second}
	run := recording(sim.Model{InFlight: 32, Decision: 3 * time.Millisecond, Watch: between(5, 15),
		Stop: between(2000, 4000), Call: call})
	m := run.Fit()
	again := recording(sim.Model{InFlight: m.InFlight, Decisions: m.Decisions, Decision: 3 * time.Millisecond,
		Loads: m.Loads, Answer: *m.Answer, Watch: *m.Watch, Sight: *m.Sight, Stop: *m.Stop})
	want, got := run.Figures(0), again.Figures(0)
	t.Logf("%+v, %+v", want, got)
	near(t, "p50", got.P50, want.P50, 0.05)
	near(t, "p99", got.P99, want.P99, 0.05)
	if got.Pods != want.Pods || Deviation(got.Throughput, want.Throughput) > 0.02 {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// TestDecisionsAreNoPartOfABind: a bind that is decided as the fourth of a turn is sent after four decisions, and its
// answer waits for the end of the turn in which it comes.
func TestDecisionsAreNoPartOfABind(t *testing.T) {
	o, ms := New(0), record.Time(time.Millisecond)
	o.Add(engine.Synced{}, nil)
	decided := engine.Decided{Decision: record.Decision{Path: record.Ranked}}
	now := record.Second
	for i := range 40 { // each turn decides 16 pods in 16 ms; the fourth is bound in 12 ms, and read 4 ms later
		uid := fmt.Sprint("p", i)
		o.Add(engine.Tick{Now: now}, nil)
		if i > 0 {
			o.Add(engine.BindDone{Pod: record.PodRef{UID: fmt.Sprint("p", i-1)}}, nil)
		}
		for c := range 16 {
			effects := []engine.Effect{decided}
			if c == 3 {
				effects = append(effects, engine.Bind{Pod: record.PodRef{UID: uid}})
			}
			o.Add(engine.Cycle{}, effects)
		}
		now += 16 * ms
	}
	m := o.Fit()
	if got := m.Decisions[record.Ranked]; got != time.Millisecond {
		t.Fatalf("a decision takes %v, want 1ms", got)
	}
	// The turn is 16 ms long, 4 of it before the bind. The answer came at a random moment: 8 ms before the end.
	if got := m.Loads[0].Latency.Quantile(0.5); got != 4*time.Millisecond {
		t.Errorf("a bind takes %v, want 16 ms less 4 ms and 8 ms", got)
	}
}

// TestRecordingsAreJudgedAlone: full turns in one recording do not make the turns of another one small.
func TestRecordingsAreJudgedAlone(t *testing.T) {
	o := New(0)
	for _, c := range []struct {
		turns, cycles int
		path          record.Path
	}{{20, 32, record.Ranked}, {20, 16, record.Grouped}, {200, 8, record.Scanned}} {
		o.Add(engine.Synced{}, nil)
		now := record.Second
		for range c.turns {
			o.Add(engine.Tick{Now: now}, nil)
			for range c.cycles {
				o.Add(engine.Cycle{}, []engine.Effect{engine.Decided{Decision: record.Decision{Path: c.path}}})
			}
			now += record.Time(c.cycles) * record.Time(time.Millisecond)
		}
		o.End()
	}
	m := o.Fit()
	for _, path := range paths {
		if got := m.Decisions[path]; got != time.Millisecond {
			t.Errorf("%s takes %v, want 1ms: %v", path, got, m.Decisions)
		}
	}
}

// TestWaitingBindsAreNotInFlight: of three binds with a limit of one, each takes 10 ms, although the last was decided
// 30 ms before its answer.
func TestWaitingBindsAreNotInFlight(t *testing.T) {
	o, ms := New(1), record.Time(time.Millisecond)
	o.Add(engine.Synced{}, nil)
	now := record.Second
	for round := range 5 {
		o.Add(engine.Tick{Now: now}, nil)
		for i := range 3 {
			o.Add(engine.WritesDone{}, []engine.Effect{engine.Bind{Pod: record.PodRef{UID: fmt.Sprint(round, i)}}})
		}
		for i := range 3 {
			now += 10 * ms
			o.Add(engine.Tick{Now: now}, nil)
			o.Add(engine.BindDone{Pod: record.PodRef{UID: fmt.Sprint(round, i)}}, nil)
		}
	}
	m := o.Fit()
	if len(m.Loads) != 1 || m.Loads[0].Latency.Quantile(1) != 10*time.Millisecond {
		t.Errorf("%+v", m.Loads)
	}
}

// TestVersionsBeforeTheAnswer: a pod that is seen bound twice before the answer of its bind has no delay of the watch.
func TestVersionsBeforeTheAnswer(t *testing.T) {
	o := New(0)
	o.Add(engine.Synced{}, nil)
	for i := range record.Time(least) {
		uid := fmt.Sprint("p", i)
		o.Add(engine.Tick{Now: (i + 1) * record.Second}, nil)
		o.Add(engine.WritesDone{}, []engine.Effect{engine.Bind{Pod: record.PodRef{UID: uid}}})
		p := &cluster.Pod{UID: cluster.UID(uid), NodeName: "n"}
		o.Add(engine.PodSet{Pod: p}, nil)
		o.Add(engine.PodSet{Pod: p}, nil)
		o.Add(engine.BindDone{Pod: record.PodRef{UID: uid}}, nil)
	}
	if m := o.Fit(); m.Watch == nil || m.Watch.Quantile(1) != 0 {
		t.Errorf("the delay of the watch is %v, want 0", m.Watch)
	}
}

// TestBoundWhenSeen: a pod that the watch shows bound 10 ms after its bind was sent is bound then, although the answer
// comes 30 ms later.
func TestBoundWhenSeen(t *testing.T) {
	o, ms := New(0), record.Time(time.Millisecond)
	o.Add(engine.Synced{}, nil)
	for i := range record.Time(least) {
		uid, now := fmt.Sprint("p", i), (i+1)*record.Second
		o.Add(engine.Tick{Now: now}, nil)
		o.Add(engine.WritesDone{}, []engine.Effect{engine.Bind{Pod: record.PodRef{UID: uid}}})
		o.Add(engine.Tick{Now: now + 10*ms}, nil)
		o.Add(engine.PodSet{Pod: &cluster.Pod{UID: cluster.UID(uid), NodeName: "n"}}, nil)
		o.Add(engine.Tick{Now: now + 40*ms}, nil)
		o.Add(engine.BindDone{Pod: record.PodRef{UID: uid}}, nil)
	}
	m := o.Fit()
	near(t, "bind", m.Loads[0].Latency.Quantile(0.5), 10*time.Millisecond, 0)
	near(t, "answer", m.Answer.Quantile(0.5), 30*time.Millisecond, 0)
}

// TestWaitsBeginWithTheCreation: the API server states whole seconds. The first pod of a second, soon after the last
// one of the second before, shows how long pods are not seen; here 30 ms.
func TestWaitsBeginWithTheCreation(t *testing.T) {
	o, ms := New(0), record.Time(time.Millisecond)
	o.Add(engine.Synced{}, nil)
	for i := range record.Time(500) { // created each 10 ms, seen 30 ms later, and bound 20 ms after that
		created := 1000*record.Second + 10*ms*i + 5*ms
		uid := fmt.Sprint("p", i)
		o.Add(engine.Tick{Now: created + 30*ms}, nil)
		p := &cluster.Pod{UID: cluster.UID(uid), Created: created / record.Second * record.Second}
		o.Add(engine.PodSet{Pod: p}, []engine.Effect{engine.Bind{Pod: record.PodRef{UID: uid}}})
		if i >= 2 {
			o.Add(engine.BindDone{Pod: record.PodRef{UID: fmt.Sprint("p", i-2)}}, nil)
		}
	}
	if a := o.Arrivals(0); a.Samples != 4 || a.Delay < 29*time.Millisecond || a.Delay > 31*time.Millisecond {
		t.Errorf("%+v", a)
	}
	f := o.Figures(0)
	near(t, "p50", f.P50, 50*time.Millisecond, 0.02)
	if f.Pods != 498 || Deviation(f.Throughput, 100) > 0.02 {
		t.Errorf("%+v", f)
	}
	if m := o.Fit(); m.Sight == nil || m.Sight.Shape != sim.Fixed || m.Sight.Median() != o.Arrivals(0).Delay {
		t.Errorf("the first sight in the model: %v, want one delay", m.Sight)
	}
	a := Arrivals{Delay: 200 * time.Millisecond}
	for _, c := range []struct{ stated, seen, want record.Time }{
		{5 * record.Second, 5*record.Second + 500*ms, 5*record.Second + 300*ms},
		{5 * record.Second, 5*record.Second + 100*ms, 5 * record.Second},
		{5 * record.Second, 7 * record.Second, 6*record.Second - 1},
		{5 * record.Second, 4 * record.Second, 4 * record.Second}, // another clock
	} {
		if got := a.Created(c.stated, c.seen); got != c.want {
			t.Errorf("stated %d, seen %d: %d, want %d", c.stated, c.seen, got, c.want)
		}
	}
}

// TestRestsAreNoDecisions: turns with few decisions may end with a rest of the loop. They do not count.
func TestRestsAreNoDecisions(t *testing.T) {
	o, now := New(0), record.Second
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

// TestFigures: throughput and waits are from the creation of a pod to the answer of its bind.
func TestFigures(t *testing.T) {
	o := recording(sim.Model{Decision: time.Millisecond, Call: sim.Always(50 * time.Millisecond)})
	f := o.Figures(0)
	if f.Pods < 700 || f.P50 < 50*time.Millisecond || f.P99 < f.P50 || f.Throughput <= 0 {
		t.Errorf("%+v", f)
	}
	if got := New(0).Figures(0); got != (Figures{}) {
		t.Errorf("of nothing: %+v", got)
	}
	if len(New(0).Fit().Parts) > 0 {
		t.Error("a model of nothing")
	}
	for _, c := range []struct{ value, truth, want float64 }{{1.1, 1, 0.1}, {0, 0, 0}, {1, 0, 1}, {1, 2, 0.5}} {
		if got := Deviation(c.value, c.truth); got < c.want-1e-9 || got > c.want+1e-9 {
			t.Errorf("%v of %v: %v", c.value, c.truth, got)
		}
	}
}
