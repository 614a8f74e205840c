// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"testing"
	"time"
)

// TestDrawsAreTheSameEverywhere compares draws with values that were written down, so that a compiler or machine that
// computes them otherwise is noticed.
func TestDrawsAreTheSameEverywhere(t *testing.T) {
	if got := mix(42, streamArrival, 1, 2); got != mix(42, streamArrival, 1, 2) || got == mix(42, streamArrival, 2, 1) ||
		got == mix(42, streamDuration, 1, 2) || got == mix(43, streamArrival, 1, 2) {
		t.Error("draws are not told apart by seed, stream and numbers")
	}
	const bits = 6933842527020230692
	if got := mix(42, streamArrival, 1, 2); got != bits {
		t.Errorf("drew %d, want %d", got, uint64(bits))
	}
	for _, c := range []struct {
		d    Durations
		want time.Duration
	}{
		{Durations{Shape: Exponential, A: 10 * time.Second}, 4714196017},
		{Durations{Shape: Pareto, A: time.Second, Alpha: 1.5}, 1369272715},
		{Durations{Shape: Uniform, A: time.Second, B: 3 * time.Second}, 1751768713},
		{steps(0, 1, 2, 3, 4, 5, 6, 7, 8), 2503537426},
	} {
		if got := c.d.draw(bits); got != c.want {
			t.Errorf("%v: drew %d ns, want %d", c.d, got, c.want)
		}
	}
	for i, x := range []float64{1e-9, 0.001, 0.3, 0.5, 0.999, 1, 2.5, 1e6} {
		if got, want := ln(x), math.Log(x); math.Abs(got-want) > 1e-14*math.Max(1, math.Abs(want)) {
			t.Errorf("%d: ln(%v) = %v, want %v", i, x, got, want)
		}
	}
	for _, x := range []float64{-20, -1, 0, 0.1, 1, 5, 30} {
		if got, want := exp(x), math.Exp(x); math.Abs(got-want) > 1e-13*want {
			t.Errorf("exp(%v) = %v, want %v", x, got, want)
		}
	}
}

// steps is a distribution by its quantiles, in seconds.
func steps(seconds ...time.Duration) Durations {
	d := Durations{Shape: Quantiles}
	for i, s := range seconds {
		d.Steps[i] = s * time.Second
	}
	return d
}

// TestQuantiles: draws of a distribution by quantiles have these quantiles.
func TestQuantiles(t *testing.T) {
	d := steps(1, 2, 3, 4, 5, 10, 20, 30, 100)
	for i, level := range Levels {
		if got := d.Quantile(level); got != d.Steps[i] {
			t.Errorf("the quantile %v is %v, want %v", level, got, d.Steps[i])
		}
	}
	if got := d.Median(); got != 4*time.Second {
		t.Errorf("the median is %v, want 4s", got)
	}
	if got := d.Quantile(0.98); got < 24900*time.Millisecond || got > 25100*time.Millisecond {
		t.Errorf("the quantile 0.98 is %v, want 25s", got)
	}
}

// TestDistributions checks mean and range of many draws of each shape.
func TestDistributions(t *testing.T) {
	const n = 20_000
	for _, c := range []struct {
		d         Durations
		mean      float64 // seconds
		from, to  time.Duration
		tolerance float64
	}{
		{Always(3 * time.Second), 3, 3 * time.Second, 3 * time.Second, 1e-9},
		{Durations{Shape: Uniform, A: time.Second, B: 3 * time.Second}, 2, time.Second, 3 * time.Second, 0.02},
		{Durations{Shape: Exponential, A: 10 * time.Second}, 10, 0, longest, 0.3},
		{Durations{Shape: Exponential, A: 10 * time.Second, B: 12 * time.Second}, 6.988, 0, 12 * time.Second, 0.1},
		{Durations{Shape: Pareto, A: time.Second, Alpha: 3}, 1.5, time.Second, longest, 0.03},
		{steps(1, 1, 1, 1, 1, 1, 1, 1, 9), 1.04, time.Second, 9 * time.Second, 0.01},
	} {
		sum := 0.0
		for i := range uint64(n) {
			v := c.d.draw(mix(1, streamDuration, 0, i))
			if v < c.from || v > c.to {
				t.Fatalf("%v: drew %v", c.d, v)
			}
			sum += v.Seconds()
		}
		if got := sum / n; math.Abs(got-c.mean) > c.tolerance {
			t.Errorf("%v: the mean is %v s, want %v", c.d, got, c.mean)
		}
	}
}
