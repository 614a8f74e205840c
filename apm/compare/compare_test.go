// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/apm"
	"github.com/kumiki-scheduler/kumiki/apm/pods"
)

// spec describes a recording.
type spec struct {
	took     map[string]time.Duration // pod -> time from creation to bind, all created at the same time
	lanes    map[string]int           // lane -> samples
	process  time.Duration
	attempts int64
	cycles   *apm.Cycles
	noCPU    string
}

func round(name string, s spec) Round {
	factor := 1.0
	p := &apm.Profile{Scheduler: name, Program: "kumiki", Unknown: map[string]string{}, Cycles: s.cycles,
		CPU: apm.CPU{Factor: &factor}}
	if s.process > 0 {
		p.CPU.Process = &s.process
	} else {
		p.Unknown["process"] = "no metrics"
	}
	if s.attempts > 0 {
		p.Attempts = []apm.Attempt{{Result: "scheduled", Count: s.attempts}}
	}
	if s.cycles == nil {
		p.Unknown["cycles"] = "not from outside"
	}
	for lane, n := range s.lanes {
		d := time.Duration(n) * apm.Period
		p.Lanes = append(p.Lanes, apm.Row{Name: lane, CPU: &d, Samples: n})
	}
	if s.noCPU != "" {
		p.CPU.Factor, p.Unknown["cpu"] = nil, s.noCPU
	}
	r := Round{File: name, Profile: p, JourneysWhy: "no timing: it was not recorded"}
	if s.took == nil {
		r.PodsWhy = "no pod-times: it was not recorded"
		return r
	}
	r.Pods = &pods.Times{Created: pods.FromCall}
	for pod, took := range s.took {
		one := pods.Pod{Namespace: "shop", Name: pod, Created: 1e18}
		if took > 0 {
			one.Bound = 1e18 + int64(took)
		}
		r.Pods.Add(one)
	}
	return r
}

// web are n pods, of which pod i takes first + i ms.
func web(n int, first time.Duration) map[string]time.Duration {
	m := map[string]time.Duration{}
	for i := range n {
		m[fmt.Sprint("web-", i)] = first + time.Duration(i)*time.Millisecond
	}
	return m
}

func compared(t testing.TB, a, b []Round) *Comparison {
	t.Helper()
	c, err := Compare(a, b)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func rowOf(t testing.TB, rows []Row, name string) Row {
	t.Helper()
	i := slices.IndexFunc(rows, func(r Row) bool { return r.Name == name })
	if i < 0 {
		t.Fatalf("there is no row %q in %v", name, rows)
	}
	return rows[i]
}

// TestTheSamePodsAreCompared: pods are aligned by name. Each takes 30 ms longer in B, so each statistic differs by that,
// in every resample; pods of one side alone, and those that were not bound, do not count.
func TestTheSamePodsAreCompared(t *testing.T) {
	a, b := web(100, 10*time.Millisecond), web(100, 40*time.Millisecond)
	a["only-a"], b["only-b"], b["other"] = time.Hour, time.Hour, time.Hour
	a["never"], b["never"] = 0, time.Hour // it is not bound in A
	c := compared(t, []Round{round("a", spec{took: a})}, []Round{round("b", spec{took: b})})
	if c.Matched != 100 || c.OnlyA != 1 || c.OnlyB != 3 || c.A.Pods != 101 || c.B.Pods != 103 {
		t.Errorf("%d matched, only A %d, only B %d, of %d and %d", c.Matched, c.OnlyA, c.OnlyB, c.A.Pods, c.B.Pods)
	}
	for name, want := range map[string]float64{"mean": 59.5e6, "median": 59e6, "p99": 108e6} {
		r := rowOf(t, c.Pods, "created to bound, "+name)
		if *r.A != want || *r.B != want+30e6 || *r.Diff != 30e6 {
			// The mean of A is 10 + 49.5 ms.
			t.Errorf("%s: %v and %v, difference %v, want %v", name, *r.A, *r.B, *r.Diff, want)
		}
		if i := r.Interval; i == nil || math.Abs(i.Low-30e6) > 1 || math.Abs(i.High-30e6) > 1 || i.Kind != FromPods ||
			!i.Clear() {
			t.Errorf("%s: interval %+v", name, r.Interval)
		}
	}
	if !strings.Contains(strings.Join(c.Notes, "\n"), "do not cover the variation between runs") {
		t.Errorf("notes %q", c.Notes)
	}
}

// TestTheIntervalHasItsCoverage: of many experiments with a known difference, about 95 % of the intervals contain it.
// The seeds are fixed, so the count is too.
func TestTheIntervalHasItsCoverage(t *testing.T) {
	const experiments, n, diff = 150, 60, 5.0
	inside := 0
	for e := range experiments {
		r := rand.New(rand.NewPCG(uint64(e), 7))
		a, b := table{make([]float64, n)}, table{make([]float64, n)}
		for i := range n {
			base := 100 * r.ExpFloat64() // pods differ more than the sides
			a[0][i], b[0][i] = base+10*r.NormFloat64(), base+diff+10*r.NormFloat64()
		}
		row := statistics[0].compare("x", a, b)
		if row.Interval.Low <= diff && diff <= row.Interval.High {
			inside++
		}
		if row.Interval.High-row.Interval.Low > 15 {
			t.Errorf("experiment %d: the interval %+v is that of unpaired pods", e, row.Interval)
		}
	}
	if share := float64(inside) / experiments; share < 0.90 || share > 0.99 {
		t.Errorf("%.1f %% of the intervals contain the difference", 100*share)
	}
}

// TestRoundsAreDrawn: with three rounds on each side the interval covers the variation between runs, which is larger
// here than that between pods; rounds are paired, so drift that affects both sides alike does not widen it.
func TestRoundsAreDrawn(t *testing.T) {
	side := func(name string, firsts ...time.Duration) (list []Round) {
		for i, f := range firsts {
			list = append(list, round(fmt.Sprint(name, i), spec{took: web(50, f*time.Millisecond), attempts: 50,
				process: f * time.Millisecond}))
		}
		return list
	}
	varied := compared(t, side("a", 10, 10, 10), side("b", 10, 40, 100))
	r := rowOf(t, varied.Pods, "created to bound, mean")
	if *r.Diff != 40e6 || r.Interval.Kind != FromRounds || r.Interval.Low > 5e6 || r.Interval.High < 75e6 {
		t.Errorf("difference %v, interval %+v", *r.Diff, r.Interval)
	}
	drifting := compared(t, side("a", 10, 40, 100), side("b", 15, 45, 105))
	r = rowOf(t, drifting.Pods, "created to bound, mean")
	if math.Abs(r.Interval.Low-5e6) > 1 || math.Abs(r.Interval.High-5e6) > 1 {
		t.Errorf("with common drift, the interval is %+v", r.Interval)
	}
	cpu := rowOf(t, drifting.Totals, "CPU per pod")
	if math.Abs(*cpu.Diff-1e5) > 1 || cpu.Interval == nil || cpu.Interval.Kind != FromRounds ||
		math.Abs(cpu.Interval.High-1e5) > 1 {
		t.Errorf("CPU per pod: %+v, interval %+v", *cpu.Diff, cpu.Interval)
	}
	if len(drifting.Notes) > 0 {
		t.Errorf("notes %q", drifting.Notes)
	}
}

// TestCPUPerPod: by lane, the largest difference first, with the error of counting samples; one lane has 400 samples in
// A and 100 in B, both for 100 pods.
func TestCPUPerPod(t *testing.T) {
	a := round("a", spec{lanes: map[string]int{"loop": 400, "binding": 50, "events": 3}, attempts: 100,
		process: 5 * time.Second})
	b := round("b", spec{lanes: map[string]int{"loop": 100, "binding": 45, "GC": 1}, attempts: 100,
		process: 2 * time.Second})
	c := compared(t, []Round{a}, []Round{b})
	var names []string
	for _, r := range c.Lanes {
		names = append(names, r.Name)
	}
	if want := []string{"loop", "binding", "events", "GC"}; !slices.Equal(names, want) {
		t.Errorf("order %q, want %q", names, want)
	}
	loop := c.Lanes[0]
	half := 1.96 * math.Sqrt(40e6*40e6/400+10e6*10e6/100)
	if *loop.A != 40e6 || *loop.Diff != -30e6 || loop.Interval.Kind != FromSamples ||
		math.Abs(loop.Interval.High-(-30e6+half)) > 1 {
		t.Errorf("loop: %v, difference %v, interval %+v", *loop.A, *loop.Diff, loop.Interval)
	}
	if r := rowOf(t, c.Lanes, "binding"); r.Interval.Clear() {
		t.Errorf("50 and 45 samples differ clearly: %+v", r.Interval)
	}
	for name, side := range map[string]string{"events": "B: no CPU sample", "GC": "A: no CPU sample"} {
		if r := rowOf(t, c.Lanes, name); r.Diff != nil || r.Interval != nil || !strings.HasPrefix(r.Why, side) ||
			(r.A == nil) == (r.B == nil) {
			t.Errorf("%s: %+v", name, r)
		}
	}
	if r := rowOf(t, c.Totals, "CPU per pod"); *r.A != 50e6 || *r.B != 20e6 || r.Interval != nil {
		t.Errorf("process: %+v", r)
	}
}

// TestMissingValuesAreReasons: what one side does not have is a dash on that side, and there is no difference.
func TestMissingValuesAreReasons(t *testing.T) {
	full := round("a", spec{took: web(5, time.Millisecond), lanes: map[string]int{"loop": 4}, attempts: 5,
		process: time.Second, cycles: &apm.Cycles{Measured: 5, Total: 5e6, Median: 1e6, P99: 2e6}})
	empty := round("b", spec{noCPU: "no cpu-profile: denied", took: nil})
	c := compared(t, []Round{full}, []Round{empty})
	for name, want := range map[string]string{"pods per second": "B, b: no pod-times", "CPU per pod": "B, b: no metrics",
		"cycle, mean": "B, b: not from outside"} {
		if r := rowOf(t, c.Totals, name); r.A == nil || r.B != nil || r.Diff != nil || !strings.HasPrefix(r.Why, want) {
			t.Errorf("%s: %+v, want the reason %q", name, r, want)
		}
	}
	if r := c.Lanes[0]; r.A == nil || r.B != nil || r.Diff != nil || r.Why != "B, b: no cpu-profile: denied" {
		t.Errorf("lane: %+v", r)
	}
	for _, r := range c.Pods {
		if r.A != nil || r.Diff != nil || !strings.Contains(r.Why, "B, b: no pod-times") {
			t.Errorf("%s: %+v", r.Name, r)
		}
	}
	if r := c.Phases[0]; r.Diff != nil || !strings.Contains(r.Why, "A, a: no timing") || !strings.Contains(r.Why, "B, b") {
		t.Errorf("phases: %+v", r)
	}
	disjoint := compared(t, []Round{full}, []Round{round("b", spec{took: map[string]time.Duration{"x": 5}})})
	if r := disjoint.Pods[0]; r.Diff != nil || !strings.Contains(r.Why, "no pod has the same") {
		t.Errorf("without a common pod: %+v", r)
	}
	if _, err := Compare(nil, []Round{full}); err == nil {
		t.Error("a side without recordings is compared")
	}
}

// journey is a pod with two phases.
func journey(name string, waited, sent int64) pods.Journey {
	j := pods.Journey{Began: 1000, Ended: 1000 + waited + sent, End: "bound", Spans: []pods.Phase{
		{Phase: "active", Start: 1000, Took: waited}, {Phase: "sent", Start: 1000 + waited, Took: sent}}}
	j.Pod.Namespace, j.Pod.Name = "shop", name
	if waited == 0 {
		j.Spans = j.Spans[1:]
	}
	return j
}

// TestPhasesOfTheSamePods: differences of phases add up to that of all; a phase that a pod skipped took it no time.
func TestPhasesOfTheSamePods(t *testing.T) {
	a, b := round("a", spec{}), round("b", spec{})
	for i := range int64(20) {
		a.Journeys = append(a.Journeys, journey(fmt.Sprint("p", i), 100, 50+i))
		b.Journeys = append(b.Journeys, journey(fmt.Sprint("p", i), 100*(i%2), 60+i))
	}
	lost := journey("lost", 1, 1)
	lost.LostSpans = 1
	a.Journeys, b.Journeys = append(a.Journeys, lost), append(b.Journeys, journey("lost", 9e9, 9e9))
	a.JourneysWhy, b.JourneysWhy = "", ""
	c := compared(t, []Round{a}, []Round{b})
	var got []string
	for _, r := range c.Phases {
		got = append(got, fmt.Sprintf("%s %g", r.Name, *r.Diff))
	}
	if want := []string{"active -50", "sent 10", "all phases -40"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// drawn is a random recording.
func drawn(t *rapid.T, name string) Round {
	s := spec{took: map[string]time.Duration{}, lanes: map[string]int{}, attempts: rapid.Int64Range(0, 50).Draw(t, "n"),
		process: time.Duration(rapid.Int64Range(0, 1e10).Draw(t, "cpu"))}
	for i := range 12 {
		if rapid.Bool().Draw(t, "has") {
			s.took[fmt.Sprint("p", i)] = time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "took"))
		}
	}
	for _, lane := range []string{"loop", "GC", "binding"} {
		if n := rapid.IntRange(0, 300).Draw(t, "samples"); n > 0 {
			s.lanes[lane] = n
		}
	}
	if rapid.Bool().Draw(t, "cycles") {
		s.cycles = &apm.Cycles{Measured: 3, Total: time.Duration(rapid.Int64Range(0, 1e9).Draw(t, "total"))}
	}
	return round(name, s)
}

// each calls f with each pair of rows of two comparisons that have one name.
func each(t *rapid.T, x, y *Comparison, f func(x, y *Row)) {
	for _, pair := range [][2][]Row{{x.Pods, y.Pods}, {x.Totals, y.Totals}, {x.Lanes, y.Lanes}} {
		if len(pair[0]) != len(pair[1]) {
			t.Fatalf("%d and %d rows", len(pair[0]), len(pair[1]))
		}
		for i := range pair[0] {
			at := slices.IndexFunc(pair[1], func(r Row) bool { return r.Name == pair[0][i].Name })
			f(&pair[0][i], &pair[1][at])
		}
	}
}

// TestSwappingTheSidesNegates: differences and the ends of intervals, exactly; and a side has no difference to itself,
// with an interval that contains 0.
func TestSwappingTheSidesNegates(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var a, b []Round
		for i := range rapid.IntRange(1, 4).Draw(t, "rounds of A") {
			a = append(a, drawn(t, fmt.Sprint("a", i)))
		}
		for i := range rapid.IntRange(1, 4).Draw(t, "rounds of B") {
			b = append(b, drawn(t, fmt.Sprint("b", i)))
		}
		compare := func(x, y []Round) *Comparison {
			c, err := Compare(x, y)
			if err != nil {
				t.Fatal(err)
			}
			return c
		}
		there, back, same := compare(a, b), compare(b, a), compare(a, a)
		each(t, there, back, func(x, y *Row) {
			if (x.Diff == nil) != (y.Diff == nil) || (x.Interval == nil) != (y.Interval == nil) {
				t.Fatalf("%s: %+v, swapped %+v", x.Name, x, y)
			}
			if x.Diff != nil && *x.Diff != -*y.Diff {
				t.Fatalf("%s: %v, swapped %v", x.Name, *x.Diff, *y.Diff)
			}
			if i, j := x.Interval, y.Interval; i != nil && (i.Low != -j.High || i.High != -j.Low || i.Kind != j.Kind) {
				t.Fatalf("%s: %+v, swapped %+v", x.Name, i, j)
			}
			if x.Diff != nil && x.Interval != nil && x.Interval.Kind != FromPods && x.Interval.Kind != FromRounds &&
				(x.Interval.Low > *x.Diff || x.Interval.High < *x.Diff) {
				t.Fatalf("%s: %v is not in %+v", x.Name, *x.Diff, x.Interval)
			}
		})
		each(t, same, same, func(x, _ *Row) {
			if x.Diff != nil && *x.Diff != 0 || x.Interval.Clear() {
				t.Fatalf("%s differs from itself: %v, %+v", x.Name, *x.Diff, x.Interval)
			}
		})
		if again := compare(a, b); !reflect.DeepEqual(there, again) {
			t.Fatal("the same comparison gives two results")
		}
	})
}
