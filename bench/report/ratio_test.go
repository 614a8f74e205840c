// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Catches: unbound pods that are dropped, or counted as 0, before percentiles are taken.
func TestPodsThatWereNeverBoundAreInfinite(t *testing.T) {
	seconds := make([]float64, 1000)
	for i := range seconds {
		seconds[i] = 1
	}
	seconds[0], seconds[1] = math.Inf(1), math.Inf(1)
	got := LatencyOf(seconds)
	if got.P99 != 1 || !math.IsInf(float64(got.P999), 1) || !math.IsInf(float64(got.Max), 1) {
		t.Errorf("2 of 1000 pods were never bound: %+v", got)
	}
}

// Catches: a draw that differs from call to call, an interval that leaves the measured values or its own estimate,
// and one that is given for two rounds.
func TestIntervalsHoldTheirEstimate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		figures := rapid.SliceOfN(rapid.Float64Range(1, 1000), 1, 9)
		of, to := figures.Draw(t, "of"), figures.Draw(t, "to")
		n := min(len(of), len(to))
		for name, of2 := range map[string]func() Interval{
			"paired": func() Interval { return pairedRatio(of[:n], to[:n]) },
			"free":   func() Interval { return freeRatio(of, to) },
		} {
			i := of2()
			if again := of2(); again != i {
				t.Fatalf("%s: %+v and then %+v", name, i, again)
			}
			if i.Low > i.Estimate || i.High < i.Estimate {
				t.Fatalf("%s: the interval %+v does not hold its estimate", name, i)
			}
			if low, high := slices.Min(of)/slices.Max(to), slices.Max(of)/slices.Min(to); i.Low < low*(1-1e-9) || i.High > high*(1+1e-9) {
				t.Fatalf("%s: %+v leaves what was measured, %g to %g", name, i, low, high)
			}
			if i.Known != (n >= fewest) {
				t.Fatalf("%s: %d rounds, known is %v", name, n, i.Known)
			}
		}
	})
}

// Catches: medians that are divided where rounds should be (a machine that gets slower would then change the ratio).
func TestPairedRatiosAreOfTheSameRound(t *testing.T) {
	got := pairedRatio([]float64{100, 50, 10}, []float64{200, 100, 20})
	if want := (Interval{0.5, 0.5, 0.5, true}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// Catches: an interval as wide as the measured values, or without width: of 20 rounds between 0.9 and 1.1 the median is
// known better than any of them.
func TestMoreRoundsNarrowTheInterval(t *testing.T) {
	var of, to []float64
	for i := range 20 {
		of, to = append(of, 90+20*float64(i)/19), append(to, 100)
	}
	got := pairedRatio(of, to)
	if !(got.Low > 0.92 && got.High < 1.08 && got.High-got.Low > 0.01) {
		t.Errorf("got %+v", got)
	}
}

// Catches: the first second counted (it began in the middle), idle seconds counted as 0 or thrown away instead of
// folded.
func TestThroughputIsThatOfUpstream(t *testing.T) {
	for _, c := range []struct {
		boundBy []int
		want    []float64
	}{
		{nil, nil},
		{[]int{0, 70}, nil},
		{[]int{0, 70, 170, 270}, []float64{100, 100}},
		{[]int{70, 70, 70, 100, 150, 150}, []float64{10, 10, 10, 50}},
	} {
		if got := Throughput(c.boundBy); !slices.Equal(got, c.want) {
			t.Errorf("bound by the end of each second %v: got %v, want %v", c.boundBy, got, c.want)
		}
	}
}

// slower is a report whose kumiki got slower by a factor, and all others with the machine.
func slower(kumiki, machine float64) *Comparison {
	c := someTrials()
	for i := range c.Trials {
		c.Trials[i].PodsPerSecond *= machine
		if c.Trials[i].Scheduler == Kumiki {
			c.Trials[i].PodsPerSecond *= kumiki
		}
	}
	return c
}

func change(t *testing.T, changes []Change, workload, scheduler string) Change {
	t.Helper()
	for _, c := range changes {
		if c.Workload == workload && c.Scheduler == scheduler {
			return c
		}
	}
	t.Fatalf("no change of %s, %s", workload, scheduler)
	return Change{}
}

// Catches: a slower machine reported as a loss where null was measured with it, and a loss that is not reported.
func TestCompareTakesTheMachineOut(t *testing.T) {
	changes := Compare(someTrials(), slower(1, 0.5))
	if c := change(t, changes, "Basic/50Nodes", Kumiki); c.Lost || c.Figure != "of null" || c.Speed.Estimate != 1 {
		t.Errorf("the machine got slower, kumiki did not: %+v", c)
	}
	// In this workload null was idle: nothing takes the machine out.
	if c := change(t, changes, "Gangs/8", Kumiki); !c.Lost || c.Figure != "pods/s" {
		t.Errorf("half of the pods/s without a null that counts: %+v", c)
	}
	if c := change(t, Compare(someTrials(), slower(0.5, 1)), "Basic/50Nodes", Kumiki); !c.Lost {
		t.Errorf("kumiki lost half: %+v", c)
	}
	if c := change(t, Compare(someTrials(), slower(0.96, 1)), "Basic/50Nodes", Kumiki); c.Lost {
		t.Errorf("4 %% is what an hour makes: %+v", c)
	}
}

// Catches: rounds too few for an interval that lead to the revert of a change.
func TestTwoRoundsProveNothing(t *testing.T) {
	b := slower(0.5, 1)
	b.Trials = slices.DeleteFunc(b.Trials, func(t Trial) bool { return t.Round == 3 })
	if c := change(t, Compare(someTrials(), b), "Basic/50Nodes", Kumiki); c.Lost || c.verdict() != "fewer than 3 rounds" {
		t.Errorf("two rounds: %+v, %s", c, c.verdict())
	}
}
