// SPDX-License-Identifier: Apache-2.0

package apm

import (
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"golang.org/x/exp/trace"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/apm/bundle"
)

// traceTime is the time of a trace.
type traceTime = trace.Time

// TestLanes: goroutines as kube-scheduler 1.37.1 and kumiki start them.
func TestLanes(t *testing.T) {
	const wait = "k8s.io/apimachinery/pkg/util/wait.UntilWithContext"
	for _, c := range []struct {
		start, stack, creator string // functions, innermost first
		want                  Lane
		sure                  bool
	}{
		{wait, scheduler + "ScheduleOne " + wait, "", Loop, true},
		{ours + "app.run.func1", "runtime.gopark " + ours + "kube.(*Loop).Run", "", Loop, true},
		{worker + "1", "", scheduler + "findNodesThatPassFilters " + scheduler + "ScheduleOne", FilterWorkers, true},
		{worker + "1", "", upstream + "prioritizeNodes " + scheduler + "ScheduleOne", ScoreWorkers, true},
		{worker + "1", "", scheduler + "ScheduleOne", OtherWorkers, true},
		{scheduler + "runBindingCycle", "crypto/tls.(*Conn).Write " + scheduler + "runBindingCycle", "", Binding, true},
		{ours + "kube/effects.(*pool).work", "", "", Binding, true},
		{wait, "k8s.io/client-go/tools/cache.(*Reflector).Run " + wait, "", Informers, true},
		{wait, "k8s.io/client-go/tools/events.(*eventBroadcasterImpl).StartRecordingToSink " + wait, "", Events, true},
		{"golang.org/x/net/http2.(*clientStream).doRequest", "", "", Client, true},
		{"golang.org/x/net/http2.(*serverConn).runHandler", "", "", Serving, false},
		{"golang.org/x/net/http2.(*serverConn).runHandler", "net/http/pprof.Trace", "", Profiler, true},
		{"golang.org/x/net/http2.(*serverConn).serve", "", "", Serving, true},
		{"runtime/trace.Start.func1", "", "", Profiler, true},
		{"runtime.gcBgMarkWorker", "runtime.gcDrain", "", Collector, true},
		{"runtime.forcegchelper", "", "", Collector, true},
		{"runtime.ensureSigM.func1", "", "", Runtime, true},
		{"runtime.main", "main.main runtime.main", "", OtherLane, false},
		{wait, wait, "", OtherLane, false},
		{"", "", "", UnknownLane, false},
	} {
		lane, sure := laneOf(c.start, strings.Fields(c.stack), strings.Fields(c.creator))
		if lane != c.want || sure != c.sure {
			t.Errorf("%s, stack %q, creator %q: %q (sure: %v), want %q (%v)", c.start, c.stack, c.creator, lane, sure,
				c.want, c.sure)
		}
	}
}

func TestPluginOfAStack(t *testing.T) {
	const up = "k8s.io/kubernetes/pkg/scheduler/framework/plugins/"
	for stack, want := range map[string]string{
		up + "helper.Normalize " + up + "noderesources.(*Fit).Filter": "helper",
		"strings.Cut " + up + "noderesources.(*Fit).Filter":           "noderesources",
		ours + "core/plugins/internal/nodematch.(*Required).Match":    "internal/nodematch",
		scheduler + "ScheduleOne":                                     "",
	} {
		if got := pluginOf(strings.Fields(stack)); got != want {
			t.Errorf("%s: %q, want %q", stack, got, want)
		}
	}
}

// TestAtOnceIsThatOfASlowCount compares the sweep over edges with a count at each nanosecond.
func TestAtOnceIsThatOfASlowCount(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var list []interval
		for range rapid.IntRange(0, 12).Draw(t, "intervals") {
			from := rapid.Int64Range(0, 40).Draw(t, "from")
			list = append(list, interval{trace.Time(from), trace.Time(from + rapid.Int64Range(0, 12).Draw(t, "length"))})
		}
		most, busy, sum := 0, 0, 0
		for at := range trace.Time(60) {
			n := 0
			for _, i := range list {
				if i.from <= at && at < i.to {
					n++
				}
			}
			most, sum = max(most, n), sum+n
			if n > 0 {
				busy++
			}
		}
		mean := 0.0
		if busy > 0 {
			mean = float64(sum) / float64(busy)
		}
		if m, a := atOnce(list); m != most || a < mean-1e-9 || a > mean+1e-9 {
			t.Fatalf("%v: %d and %v at once, want %d and %v", list, m, a, most, mean)
		}
	})
}

// loopTracker is a tracker whose loop goroutine is known, and two of its stacks: in a cycle, and without a pod.
func loopTracker() (t *tracker, loop *goroutine, busy, idle stackID) {
	t = newTracker()
	add := func(functions ...string) stackID {
		var frames []uint32
		for _, f := range functions {
			frames = append(frames, t.stacks.function(f))
		}
		t.stacks.frames = append(t.stacks.frames, frames)
		return stackID(len(t.stacks.frames) - 1)
	}
	busy = add("sync.(*WaitGroup).Wait", scheduler+"findNodesThatPassFilters")
	idle = add("sync.(*Cond).Wait", "k8s.io/kubernetes/pkg/scheduler/backend/queue.(*activeQueue).pop")
	return t, &goroutine{lane: Loop, sum: newSums()}, busy, idle
}

// TestCyclesEndWithABindingGoroutine: the loop waits for a pod, places two, waits for workers in between, and tries one
// that fits nowhere.
func TestCyclesEndWithABindingGoroutine(t *testing.T) {
	tr, loop, busy, idle := loopTracker()
	c := tr.loop
	to := func(at trace.Time, act activity, stack stackID) {
		loop.act, loop.at = act, stack
		c.changed(tr, loop, at)
	}
	bind := func(at trace.Time, by *goroutine, start string) {
		c.started(&goroutine{start: start}, by, at)
	}
	loop.first = 100
	to(100, waiting, idle)
	to(150, runnable, idle)
	to(160, running, idle) // a pod: cycle 1 begins
	to(170, waiting, busy) // for workers
	to(180, running, busy)
	bind(185, nil, scheduler+"runBindingCycle")
	bind(190, loop, worker+"1")
	bind(200, loop, scheduler+"runBindingCycle") // cycle 1 ends, 2 begins
	bind(230, loop, scheduler+"runBindingCycle")
	to(240, waiting, idle)
	to(300, running, idle) // an attempt that places nothing
	to(320, waiting, idle)
	c.finish(100, 400)
	want := Cycles{Placed: 2, Measured: 2, Total: 70, Median: 40, P99: 40, Idle: 60 + 60 + 80, Elsewhere: 30}
	got := c.result("kube-scheduler")
	if got == nil || *got != want {
		t.Errorf("cycles %+v, want %+v", got, want)
	}
	if c.result("kumiki") != nil {
		t.Error("kumiki's loop has cycles, which start no goroutine")
	}
}

// TestACycleThatBeganBeforeTheTraceIsNotMeasured: it is counted, and has no duration.
func TestACycleThatBeganBeforeTheTraceIsNotMeasured(t *testing.T) {
	tr, loop, busy, _ := loopTracker()
	loop.act, loop.at = running, busy
	tr.loop.changed(tr, loop, 100)
	tr.loop.started(&goroutine{start: scheduler + "runBindingCycle"}, loop, 110)
	tr.loop.started(&goroutine{start: scheduler + "runBindingCycle"}, loop, 150)
	tr.loop.finish(90, 200)
	if got := tr.loop.result("kube-scheduler"); got.Placed != 2 || got.Measured != 1 || got.Total != 40 {
		t.Errorf("cycles %+v", got)
	}
}

// TestExecutingTimeIsScaledOnlyIfItIsNotCPUTime: the error of sampling does not count as contention.
func TestExecutingTimeIsScaledOnlyIfItIsNotCPUTime(t *testing.T) {
	for _, c := range []struct {
		samples, noGo int
		executing     time.Duration
		want          float64
	}{
		{100, 0, time.Second, 1},                  // as much as the samples show
		{90, 0, time.Second, 1},                   // within the error of 90 samples
		{400, 0, 10 * time.Second, 0.4},           // threads waited for a CPU
		{440, 40, 10 * time.Second, 0.4},          // samples without a goroutine are not of this time
		{130, 0, time.Second, 1},                  // more samples than time
		{0, 0, time.Millisecond, 1},               // too short for a sample
		{0, 0, 0, 1},                              // idle
		{10000, 0, 110 * time.Second, 100. / 110}, // beyond the error of many samples
	} {
		tr := newTracker()
		tr.samples, tr.noGo.samples = c.samples, c.noGo
		g := newSums()
		g.spent[running], g.spent[inSyscall] = c.executing/2, c.executing-c.executing/2
		g.spent[blockedSyscall], g.spent[waiting] = time.Hour, time.Hour
		tr.groups[groupKey{Loop, "f"}] = g
		p := &Profile{Unknown: map[string]string{}}
		p.setFactor(bundleOf(t, map[bundle.Kind]string{bundle.CPU: "a profile"}), tr)
		if p.CPU.Factor == nil || *p.CPU.Factor < c.want-1e-9 || *p.CPU.Factor > c.want+1e-9 {
			t.Errorf("%+v: factor %v", c, p.CPU.Factor)
		}
		if noted := len(p.Notes) > 0; noted != (c.want < noteBelow) {
			t.Errorf("%+v: notes %q", c, p.Notes)
		}
	}
}

// TestFewSamplesDoNotLetLanesExceedTheProcess: 29 samples are within their error of 380 ms, and the process used less.
func TestFewSamplesDoNotLetLanesExceedTheProcess(t *testing.T) {
	tr := newTracker()
	tr.samples, tr.noGo.samples = 31, 2
	g := newSums()
	g.spent[running] = 380 * time.Millisecond
	tr.groups[groupKey{Loop, "f"}] = g
	process := 322 * time.Millisecond
	p := &Profile{Unknown: map[string]string{}, CPU: CPU{Process: &process}}
	p.setFactor(bundleOf(t, map[bundle.Kind]string{bundle.CPU: "a profile"}), tr)
	if want := 302. / 380; *p.CPU.Factor < want-1e-9 || *p.CPU.Factor > want+1e-9 {
		t.Errorf("factor %v, want %v", *p.CPU.Factor, want)
	}
}

// TestSamplesAreCorrectedByTheProcess: an error of sampling is divided among what was sampled, and what is more than that
// stays unattributed.
func TestSamplesAreCorrectedByTheProcess(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		process, executing  time.Duration
		factor              float64
		samples, noGo       int
		goroutines, outside time.Duration
	}{
		"goroutines alone are exact":       {439 * ms, 238 * ms, 1, 38, 14, 238 * ms, 201 * ms},
		"too much for 14 samples":          {500 * ms, 238 * ms, 1, 38, 14, 238 * ms, 214833 * time.Microsecond},
		"without a sample outside":         {250 * ms, 238 * ms, 1, 24, 0, 238 * ms, 12 * ms},
		"a single period without samples":  {290 * ms, 238 * ms, 1, 24, 0, 238 * ms, 20 * ms},
		"less than the samples show":       {300 * ms, 238 * ms, 1, 38, 14, 238 * ms, 65167 * time.Microsecond},
		"contended, divided by samples":    {4200 * ms, 10 * time.Second, 0.3, 400, 100, 3150 * ms, 1050 * ms},
		"contended, more than their error": {6000 * ms, 10 * time.Second, 0.3, 400, 100, 3300 * ms, 1100 * ms},
		"equal":                            {4000 * ms, 10 * time.Second, 0.3, 400, 100, 3000 * ms, 1000 * ms},
	} {
		p := &Profile{CPU: CPU{Process: &c.process, Factor: &c.factor, Executing: c.executing, Samples: c.samples}}
		before := time.Duration(float64(c.executing) * c.factor)
		r := p.reconcile(before, c.samples-c.noGo, c.noGo)
		goroutines := time.Duration(float64(before) * r.goroutines)
		if (goroutines-c.goroutines).Abs() > time.Microsecond || (r.outside-c.outside).Abs() > time.Microsecond {
			t.Errorf("%s: goroutines %v, outside %v; want %v, %v", name, goroutines, r.outside, c.goroutines, c.outside)
		}
		if all := goroutines + r.outside - before - time.Duration(c.noGo)*Period; (*p.CPU.Corrected - all).Abs() > time.Microsecond {
			t.Errorf("%s: corrected by %v, want %v", name, *p.CPU.Corrected, all)
		}
	}
}

// TestContendedLanesFollowTheirSamples: where threads waited for a CPU, a lane with more samples than expected gets more
// CPU time, and the sum is the same. Where they did not, samples change nothing.
func TestContendedLanesFollowTheirSamples(t *testing.T) {
	lanes := map[Lane]*sums{Loop: newSums(), Collector: newSums(), Binding: newSums()}
	for lane, s := range map[Lane]struct {
		executing time.Duration
		samples   int
	}{Loop: {10 * time.Second, 600}, Collector: {10 * time.Second, 200}, Binding: {10 * time.Millisecond, 1}} {
		lanes[lane].spent[running], lanes[lane].samples = s.executing, s.samples
	}
	half, one := 0.4, 1.0
	p := &Profile{CPU: CPU{Factor: &half, Executing: 20010 * time.Millisecond}}
	got := p.laneFactors(lanes)
	sum := 10*got[Loop] + 10*got[Collector] + 0.01*got[Binding]
	if got[Loop] < 0.57 || got[Loop] > 0.6 || got[Collector] > 0.22 || sum < 8.003 || sum > 8.005 {
		t.Errorf("factors %v, CPU time %v s", got, sum)
	}
	if b := got[Binding]; b < 0.3 || b > 0.5 {
		t.Errorf("one sample moves the factor of a short lane to %v", b)
	}
	p.CPU.Factor = &one
	if got := p.laneFactors(lanes); got[Loop] != 1 || got[Collector] != 1 || got[Binding] != 1 {
		t.Errorf("without contention: factors %v", got)
	}
}

// TestTheResidualIsNotHidden: CPU time that no lane explains, and lanes that exceed the process.
func TestTheResidualIsNotHidden(t *testing.T) {
	for process, want := range map[time.Duration]time.Duration{time.Second: 400 * time.Millisecond,
		500 * time.Millisecond: -100 * time.Millisecond} {
		cpu, one := 600*time.Millisecond, 1.0
		p := &Profile{CPU: CPU{Process: &process, Factor: &one}, Lanes: []Row{{CPU: &cpu}}}
		if p.setResidual(); p.CPU.Unattributed == nil || *p.CPU.Unattributed != want {
			t.Errorf("process %v: unattributed %v, want %v", process, p.CPU.Unattributed, want)
		}
	}
}

const before = `# TYPE process_cpu_seconds_total counter
process_cpu_seconds_total 10.5
process_start_time_seconds 1.7e9
scheduler_schedule_attempts_total{profile="a",result="scheduled"} 5
scheduler_schedule_attempts_total{profile="odd,\"result=\"x",result="error"} 1
scheduler_scheduling_algorithm_duration_seconds_sum 0.5
scheduler_scheduling_algorithm_duration_seconds_count 5
`

func TestMetricsAreDifferencesOfTwoScrapes(t *testing.T) {
	after := strings.NewReplacer("10.5", "12.75", "} 5", "} 9", "_sum 0.5", "_sum 0.625", "_count 5", "_count 9").
		Replace(before)
	read := func(text string) scrape {
		s, err := readScrape(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	two := twoScrapes{read(before), read(after)}
	if d, ok := two.delta("process_cpu_seconds_total", false); !ok || d != 2.25 {
		t.Errorf("CPU %v (%v)", d, ok)
	}
	if _, ok := (twoScrapes{read(after), read(before)}).delta("process_cpu_seconds_total", false); ok {
		t.Error("a counter that fell has a difference")
	}
	if two.restarted() || !(twoScrapes{read(before), read(strings.Replace(before, "1.7e9", "1.8e9", 1))}).restarted() {
		t.Error("a restart is not what the start time shows")
	}
	got, ok := two.attempts()
	if !ok || len(got) != 2 || got[0] != (Attempt{"scheduled", 4}) || got[1] != (Attempt{"error", 0}) {
		t.Errorf("attempts %v", got)
	}
	if got, ok := (twoScrapes{read(after), read(before)}).attempts(); ok {
		t.Errorf("a counter of attempts that fell gives %v", got)
	}
	huge := read("process_cpu_seconds_total 1e308\nprocess_cpu_seconds_total{a=\"b\"} 1e308\n")
	for _, from := range []scrape{huge, read("process_cpu_seconds_total 0\n")} {
		if d, ok := (twoScrapes{from, huge}).delta("process_cpu_seconds_total", false); ok {
			t.Errorf("the difference of numbers that are too large is %v", d)
		}
	}
	for _, bad := range []string{"process_cpu_seconds_total", "process_cpu_seconds_total x", "go_info{a=\"b\" 1",
		"process_cpu_seconds_total NaN", "go_info " + strings.Repeat("9", maxMetricLine+1)} {
		if s, err := readScrape(strings.NewReader(bad)); err == nil {
			t.Errorf("%.40q gives %v", bad, s)
		}
	}
}

// TestARestartVoidsDifferences: the CPU time of two processes is no CPU time.
func TestARestartVoidsDifferences(t *testing.T) {
	p := analyzed(t, bundleOf(t, map[bundle.Kind]string{bundle.MetricsBefore: before,
		bundle.MetricsAfter: strings.Replace(before, "1.7e9", "1.8e9", 1)}))
	if p.CPU.Process != nil || len(p.Attempts) > 0 || !strings.Contains(p.Unknown["process"], "restarted") {
		t.Errorf("%+v, attempts %v, unknown %v", p.CPU, p.Attempts, p.Unknown)
	}
}

// TestOrders: each order is descending, and equal rows are sorted by name, whatever the order before.
func TestOrders(t *testing.T) {
	d := func(ms int) *time.Duration { x := time.Duration(ms) * time.Millisecond; return &x }
	rows := []Row{{Name: "a", CPU: d(1), CumulativeCPU: d(9)}, {Name: "b", CPU: d(3), CumulativeCPU: d(3)},
		{Name: "c", CPU: d(1), CumulativeCPU: d(1), Runnable: 5, Blocked: Blocked{Sync: 1}}}
	for order, want := range map[Order]string{ByCPU: "bac", ByCumulative: "abc", ByWait: "cab"} {
		rand.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
		if Sort(rows, order); strings.Join(names(rows), "") != want {
			t.Errorf("by %s: %v, want %s", order, names(rows), want)
		}
	}
}

// sampledStack returns a tracker and a group with one stack, its innermost function first, that has two samples.
func sampledStack(names ...string) (*tracker, *sums) {
	t, g := newTracker(), newSums()
	var frames []uint32
	for _, f := range names {
		frames = append(frames, t.stacks.function(f))
	}
	t.stacks.frames = append(t.stacks.frames, frames)
	g.samples = 2
	g.cell(1).samples = 2
	return t, g
}

// TestARecursiveFunctionCountsOnce: its cumulative CPU time is that of the samples that have it, not of its calls.
func TestARecursiveFunctionCountsOnce(t *testing.T) {
	tr, g := sampledStack("walk", "visit", "walk", "main")
	f := functions{stacks: tr.stacks, rows: map[string]*share{}, plugins: map[string]*share{}}
	cpu := 20 * time.Millisecond
	f.add(OtherLane, g, &cpu)
	for name, want := range map[string][2]float64{"walk": {20e6, 20e6}, "visit": {0, 20e6}, "main": {0, 20e6}} {
		if got := f.rows[name]; got.own != want[0] || got.cumulative != want[1] {
			t.Errorf("%s: own %v, cumulative %v, want %v", name, got.own, got.cumulative, want)
		}
	}
}

// TestLanesWithoutSamplesHaveARow: their CPU time is in a row of its own, and that of an unknown stack too.
func TestLanesWithoutSamplesHaveARow(t *testing.T) {
	tr, g := sampledStack()
	f := functions{stacks: tr.stacks, rows: map[string]*share{}, plugins: map[string]*share{}}
	cpu, small := 20*time.Millisecond, 3*time.Millisecond
	f.add(OtherLane, g, &cpu)
	f.add(Binding, newSums(), &small)
	if got := f.rows[unknownFunction]; got == nil || got.own != 20e6 {
		t.Errorf("the unknown stack is %+v", got)
	}
	if got := f.rows["(no sample: binding)"]; got == nil || got.own != 3e6 || len(f.rows) != 2 {
		t.Errorf("the lane without samples is %+v of %d rows", got, len(f.rows))
	}
}
