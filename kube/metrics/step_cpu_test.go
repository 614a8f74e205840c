// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"
	"testing"
	"time"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
	"github.com/kumiki-scheduler/kumiki/record"
)

// simulatedCPU is a StepCPU whose clocks stand still until a test moves them.
type simulatedCPU struct {
	*StepCPU
	cpu, now time.Duration
	locked   int
}

func newSimulatedCPU() *simulatedCPU {
	s := &simulatedCPU{}
	s.StepCPU = &StepCPU{clock: func() time.Duration { return s.cpu }, wall: func() time.Time { return time.Unix(0, int64(s.now)) },
		lock: func() { s.locked++ }, unlock: func() { s.locked-- }}
	return s
}

// step is a Step with an event that takes so much CPU and wall time.
func (s *simulatedCPU) step(ev engine.Event, cpu, wall time.Duration) (measuredStep, bool) {
	measured := s.Begin(ev)
	locked := s.locked == 1
	s.cpu, s.now = s.cpu+cpu, s.now+wall
	m := s.End()
	return m, measured == locked && measured == m.measured && s.locked == 0
}

// TestOneStepInSixteenIsMeasured: of each lane one Step in 16 is measured and all while a recording asks for it. The
// goroutine is locked to its thread for these Steps, and for nothing else.
func TestOneStepInSixteenIsMeasured(t *testing.T) {
	s := newSimulatedCPU()
	run := func(n int) {
		for range n {
			for _, ev := range []engine.Event{engine.Cycle{}, engine.Tick{}, engine.Tick{}} {
				if _, ok := s.step(ev, time.Microsecond, time.Microsecond); !ok {
					t.Fatal("the goroutine is locked to its thread without a measurement, or not with one, or afterwards")
				}
			}
		}
	}
	check := func(when string, cycles, events uint64) {
		t.Helper()
		if c, e := s.lanes[record.CycleSteps], s.lanes[record.EventSteps]; c.Measured != cycles || e.Measured != events {
			t.Errorf("%s: %d of %d cycles and %d of %d events are measured, want %d and %d", when, c.Measured, c.Steps,
				e.Measured, e.Steps, cycles, events)
		}
	}
	run(32)
	check("on", 2, 4)
	s.MeasureAll(true)
	s.MeasureAll(true) // two recordings
	run(10)
	check("two recordings", 12, 24)
	s.MeasureAll(false)
	run(1)
	check("one recording", 13, 26)
	s.MeasureAll(false)
	run(5)
	check("none", 13, 26)
	if c := s.lanes[record.CycleSteps]; c.CPU != 13*time.Microsecond || c.Wall != c.CPU || c.Disturbed != 0 {
		t.Errorf("%+v, want 13µs of CPU and wall time, none disturbed", c)
	}
}

// TestForeignCodeIsNotMeasured: a Step that may call foreign code is counted, and never locked to a thread.
func TestForeignCodeIsNotMeasured(t *testing.T) {
	c := NewStepCPU(true)
	c.lock = func() { t.Error("the goroutine is locked to its thread") }
	c.MeasureAll(true)
	if c.Begin(engine.Cycle{}) || c.End().measured || c.lanes[record.CycleSteps].Steps != 1 || c.why == "" {
		t.Errorf("%+v", c)
	}
}

// TestADisturbedStepIsNotSplit: where the thread had a CPU for less than 95 % of the Step, its CPU time counts, and
// says nothing about plugins. Otherwise the parts of the Step add up to its CPU time.
func TestADisturbedStepIsNotSplit(t *testing.T) {
	for _, c := range []struct {
		cpu   time.Duration
		exact bool
	}{{1000, true}, {950, true}, {949, false}, {10, false}} {
		s, p := newSimulatedCPU(), newPluginCPU()
		m := &Meter{pending: true, sampled: true, ran: []run{{at: plugin.AtFilter, name: "A", took: 300}, {at: plugin.AtScore, name: "B", took: 100}}}
		m.points[plugin.AtFilter], m.points[plugin.AtScore] = 500, 100
		s.cost = 5
		step, _ := s.step(engine.Cycle{}, c.cpu, 1000)
		p.split(m, step)
		if step.exact != c.exact || step.cpu != c.cpu-5 || (s.lanes[record.CycleSteps].Disturbed == 0) != c.exact {
			t.Errorf("CPU %v of 1µs: %+v, %+v", c.cpu, step, s.lanes[record.CycleSteps])
		}
		sum := time.Duration(0)
		for _, e := range p.list() {
			sum += e.CPU
		}
		switch list := p.list(); {
		case !c.exact && len(list) > 0:
			t.Errorf("CPU %v of 1µs: it is split: %+v", c.cpu, list)
		case c.exact && (sum > step.cpu || sum < step.cpu-4): // each part is rounded
			t.Errorf("CPU %v of 1µs: the parts add up to %v, the Step has %v: %+v", c.cpu, sum, step.cpu, list)
		case c.exact && (len(list) != 4 || list[1].Plugin != "A" || list[2].Plugin != "" || list[2].Point != "Filter" || list[3].Plugin != "B"):
			t.Errorf("CPU %v of 1µs: %+v", c.cpu, list)
		}
	}
}

// TestBoundariesOfPlugins: with readings at the boundaries, the CPU time of plugins is exact also in a disturbed cycle, and
// with that of no plugin it adds up to the Step. The readings count for none of them.
func TestBoundariesOfPlugins(t *testing.T) {
	s, p, m := newSimulatedCPU(), newPluginCPU(), NewMeter()
	s.cost, s.boundaries.cost = 1, 1
	s.MeasureAll(true)
	s.MeasureBoundaries(true)
	m.measure(s.Begin(engine.Cycle{}), s.atBoundaries())
	runs := func(cpu time.Duration) { s.cpu, s.now = s.cpu+cpu, s.now+cpu }
	m.Enter(engine.StepPop)
	runs(100)
	m.Enter(engine.StepSearch)
	m.Plugin(plugin.AtFilter, "A")
	runs(300)
	s.now += 3000 // the thread has no CPU
	m.Plugin(plugin.AtFilter, "B")
	runs(50)
	m.Plugin(plugin.AtFilter, "A")
	runs(20)
	m.Plugin(plugin.AtScore, "") // several at once
	runs(30)
	m.Leave()
	runs(10)
	step := s.End()
	p.take(s.boundaries.spent)
	want := []record.PluginCPU{{Plugin: "A", Point: "Filter", CPU: 318, Cycles: 1}, {CPU: 108, Cycles: 1},
		{Plugin: "B", Point: "Filter", CPU: 49, Cycles: 1}, {Point: "Score", CPU: 29, Cycles: 1}}
	if got := p.list(); !slices.Equal(got, want) || step.exact || step.cpu != 504 {
		t.Errorf("%+v, %+v, want %+v of 504ns", step, got, want)
	}
	if got := s.boundaries.total; got != (record.ExactCPU{Cycles: 1, Readings: 5, CPU: 5}) {
		t.Errorf("%+v, want 5 readings", got)
	}
}

// TestBoundariesAreMeasuredOnRequest: while a recording asks for them, and in the report of the scheduler then.
func TestBoundariesAreMeasuredOnRequest(t *testing.T) {
	c, s := newCounting(), newSimulatedCPU()
	c.tally.MeasureCPU(s.StepCPU)
	step := func(ev engine.Event) {
		c.tally.Begin(ev)
		effects := c.Step(ev)
		s.cpu, s.now = s.cpu+100, s.now+100
		c.tally.End()
		c.tally.Step(ev, effects, time.Now())
	}
	cycles := func(n int) *record.ExactCPU {
		for range n {
			step(engine.Cycle{})
		}
		r := c.tally.Report()
		return r.Exact
	}
	c.tally.MeasureAll(true)
	if e := cycles(3); e != nil {
		t.Errorf("without a request: %+v", e)
	}
	c.tally.MeasureBoundaries(true)
	c.tally.MeasureBoundaries(true)
	c.tally.MeasureBoundaries(false)
	step(engine.Tick{})
	if e := cycles(4); e == nil || e.Cycles != 4 {
		t.Errorf("of 4 cycles: %+v", e)
	}
	c.tally.MeasureBoundaries(false)
	if e := cycles(5); e.Cycles != 4 {
		t.Errorf("after the request: %+v", e)
	}
	before := record.WorkReport{Exact: &record.ExactCPU{Cycles: 1, Readings: 2, CPU: 3}}
	after := record.WorkReport{Exact: &record.ExactCPU{Cycles: 5, Readings: 20, CPU: 30}}
	if got := after.Since(&before).Exact; got == nil || *got != (record.ExactCPU{Cycles: 4, Readings: 18, CPU: 27}) {
		t.Errorf("of an interval: %+v", got)
	}
	if got := after.Since(&after).Exact; got != nil {
		t.Errorf("of an interval without a request: %+v", got)
	}
}

// TestMeasuredStepsAreReported: the metrics have each Step once.
func TestMeasuredStepsAreReported(t *testing.T) {
	c, s := newCounting(), newSimulatedCPU()
	c.tally.MeasureCPU(s.StepCPU)
	s.MeasureAll(true)
	step := func(ev engine.Event, cpu, wall time.Duration) {
		c.tally.Begin(ev)
		effects := c.Step(ev)
		s.cpu, s.now = s.cpu+cpu, s.now+wall
		c.tally.End()
		c.tally.Step(ev, effects, time.Now())
	}
	step(c.node("n", "4"), time.Second, time.Second)
	step(engine.Synced{}, time.Second, time.Second)
	step(c.pod(kubetest.PendingPod("p", "1")), time.Second, time.Second)
	step(engine.Cycle{}, time.Second, 3*time.Second)
	for range 2 {
		c.tally.periodic = newPeriodic(c.tally.m) // due
		c.tally.Refresh(c.Engine)
	}
	const steps, cpu = "kumiki_engine_steps_total", "kumiki_cpu_seconds_total"
	c.check(t, "reported",
		count{3, steps, []string{"lane=events", "cpu=exact"}}, count{0, steps, []string{"lane=events", "cpu=disturbed"}},
		count{0, steps, []string{"lane=cycles", "cpu=exact"}}, count{1, steps, []string{"lane=cycles", "cpu=disturbed"}},
		count{3, cpu, []string{"lane=events"}}, count{1, cpu, []string{"lane=cycles"}})
}

// TestTheClockOfTheThread: on this system there is a clock, or a reason why not; a clock does not go back.
func TestTheClockOfTheThread(t *testing.T) {
	c := NewStepCPU(false)
	if c.clock == nil {
		if c.why == "" {
			t.Error("no clock, and no reason")
		}
		return
	}
	c.MeasureAll(true)
	for range 1000 {
		c.Begin(engine.Cycle{})
		if m := c.End(); m.cpu < 0 || m.wall < 0 {
			t.Fatalf("a Step of %v CPU time and %v wall time", m.cpu, m.wall)
		}
	}
}

// BenchmarkMeasuredStep is what Begin and End cost: of each Step, and of each while a recording asks for all.
func BenchmarkMeasuredStep(b *testing.B) {
	for name, all := range map[string]bool{"one in 16": false, "all": true} {
		b.Run(name, func(b *testing.B) {
			c := NewStepCPU(false)
			if all {
				c.MeasureAll(true)
			}
			b.ReportAllocs()
			for b.Loop() {
				c.Begin(engine.Cycle{})
				c.End()
			}
		})
	}
}
