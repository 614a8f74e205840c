// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"cmp"
	"slices"
	"time"

	"github.com/kumiki-scheduler/kumiki/record"
)

// arrival is a pod that came while the scheduler ran.
type arrival struct {
	created record.Time // as the API server says; whole seconds in a recording of a cluster
	seen    record.Time
	bound   record.Time // when it was first known to be bound, by the answer or the watch; 0 for never
}

// dense is the longest gap between two arrivals for which the second in which they were created is a clock.
const dense = record.Time(50 * time.Millisecond)

// fewest is how many delays a median rests on.
const fewest = 3

// sightsOf returns delays from the creation of pods to their first sight. Where times of creation have whole seconds,
// these are known for the first pod of each second, if it comes soon after the last one of the second before: it was
// created between the begin of the second and the gap to that pod.
func sightsOf(list []*arrival) (delays []time.Duration) {
	if precise(list) {
		for _, a := range list {
			delays = append(delays, since(a.created, a.seen))
		}
		return delays
	}
	for i := 1; i < len(list); i++ {
		a, b := list[i-1], list[i]
		if gap := b.seen - a.seen; b.created > a.created && gap <= dense {
			delays = append(delays, since(b.created+gap/2, b.seen))
		}
	}
	return delays
}

// precise reports whether times of creation have more than whole seconds.
func precise(list []*arrival) bool {
	return slices.ContainsFunc(list, func(a *arrival) bool { return a.created%record.Second != 0 })
}

// Arrivals estimates when pods were created.
type Arrivals struct {
	precise bool
	// Delay is how long before their first sight pods were created, in the median. Samples is on how many pods it
	// rests: with less than three, it is the assumption.
	Delay   time.Duration
	Samples int
}

// Arrivals returns the estimate for the pods of all recordings. assumed is the delay from the creation to the first
// sight of a pod where the recordings do not show one.
func (o *Observed) Arrivals(assumed time.Duration) Arrivals {
	return arrivalsOf(slices.Concat(append(slices.Clone(o.whole), o.arrivals)...), assumed)
}

func arrivalsOf(list []*arrival, assumed time.Duration) Arrivals {
	delays := sightsOf(list)
	a := Arrivals{precise: precise(list), Delay: assumed, Samples: len(delays)}
	if len(delays) >= fewest {
		a.Delay = quantile(delays, 0.5)
	}
	return a
}

// Created returns when a pod was created whose creation the API server dates to a time, and that was first seen at
// another: in that second, and the delay before it was seen.
func (a *Arrivals) Created(stated, seen record.Time) record.Time {
	if a.precise {
		return stated
	}
	return max(min(seen-record.Time(a.Delay), stated+record.Second-1), min(stated, seen))
}

// Figures are what users see of a run: bound pods per second, and the waits from the creation of a pod until it was
// first known to be bound.
type Figures struct {
	Pods       int           `json:"pods"`
	Throughput float64       `json:"podsPerSecond"`
	P50        time.Duration `json:"p50Nanoseconds"`
	P99        time.Duration `json:"p99Nanoseconds"`
}

// Figures returns those of the recordings. assumed is as for Arrivals.
func (o *Observed) Figures(assumed time.Duration) Figures {
	var waits []time.Duration
	var span time.Duration
	for _, list := range append(slices.Clone(o.whole), o.arrivals) {
		arrivals := arrivalsOf(list, assumed)
		var first, last record.Time
		for _, a := range list {
			if a.bound == 0 {
				continue
			}
			created := arrivals.Created(a.created, a.seen)
			waits = append(waits, since(created, a.bound))
			first, last = min(cmp.Or(first, created), created), max(last, a.bound)
		}
		span += since(first, last)
	}
	f := Figures{Pods: len(waits), P50: quantile(waits, 0.5), P99: quantile(waits, 0.99)}
	if span > 0 {
		f.Throughput = float64(f.Pods) / span.Seconds()
	}
	return f
}

// quantile returns a quantile by the nearest rank, 0 of nothing.
func quantile(list []time.Duration, q float64) time.Duration {
	if len(list) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(list))
	return sorted[min(len(sorted)-1, int(q*float64(len(sorted))))]
}
