// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"fmt"
	"slices"
	"time"

	"github.com/kumiki-scheduler/kumiki/apm"
	"github.com/kumiki-scheduler/kumiki/apm/pods"
)

// Round is what one recording has.
type Round struct {
	// File names the recording in messages.
	File    string
	Profile *apm.Profile
	// Pods are the times of pods, or nil with the reason in PodsWhy; Journeys their phases, or nil with JourneysWhy.
	Pods                 *pods.Times
	PodsWhy, JourneysWhy string
	Journeys             []pods.Journey
}

// Kind says from what an interval was computed.
type Kind string

// The kinds of intervals.
const (
	FromPods    Kind = "pods"    // the bootstrap draws pods
	FromRounds  Kind = "rounds"  // the bootstrap draws rounds, and pods within them for times of pods
	FromSamples Kind = "samples" // the standard error of a number of samples
)

// Interval is a 95 % confidence interval of a difference.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
	Kind Kind    `json:"kind"`
}

// Clear reports whether the interval does not contain 0.
func (i *Interval) Clear() bool { return i != nil && (i.Low > 0 || i.High < 0) }

// Row is one compared value: the mean over the rounds of each side, and B minus A.
type Row struct {
	Name string `json:"name"`
	Unit Unit   `json:"unit"`
	// A, B and Diff are nil if they are not known, for the reason in Why.
	A        *float64  `json:"a,omitempty"`
	B        *float64  `json:"b,omitempty"`
	Diff     *float64  `json:"diff,omitempty"`
	Interval *Interval `json:"interval,omitempty"`
	Why      string    `json:"why,omitempty"`
}

// Unit is the unit of a row.
type Unit string

// The units.
const (
	Nanoseconds Unit = "ns"
	Bytes       Unit = "bytes"
	Count       Unit = "count"
	PerSecond   Unit = "1/s"
)

// Side describes one side.
type Side struct {
	Files     []string `json:"files"`
	Scheduler string   `json:"scheduler"`
	Program   string   `json:"program,omitempty"`
	// Pods is the number of different pods with a time to their bind.
	Pods int `json:"pods"`
}

// Comparison is the difference of two sides.
type Comparison struct {
	A Side `json:"a"`
	B Side `json:"b"`
	// Matched is the number of pods that were bound in every round of both sides; OnlyA and OnlyB are in one side
	// alone.
	Matched int `json:"matched"`
	OnlyA   int `json:"onlyA"`
	OnlyB   int `json:"onlyB"`
	// Pods are times of pods, Phases those of each phase, in the order of their begins. Values are per pod.
	Pods      []Row `json:"pods"`
	Phases    []Row `json:"phases,omitempty"`
	Totals    []Row `json:"totals"`
	Lanes     []Row `json:"lanes"`
	Plugins   []Row `json:"plugins,omitempty"`
	Functions []Row `json:"functions"`
	// Notes are what a reader must know to interpret the values.
	Notes []string `json:"notes,omitempty"`
}

// fewest is the number of rounds from which on rounds are drawn. Of fewer, a bootstrap draws hardly anything but what
// was measured.
const fewest = 3

// Compare compares two sides, each with at least one round.
func Compare(a, b []Round) (*Comparison, error) {
	if len(a) == 0 || len(b) == 0 {
		return nil, fmt.Errorf("comparing %d recordings with %d: each side needs one", len(a), len(b))
	}
	for _, side := range [][]Round{a, b} {
		for i := range side {
			if side[i].Profile == nil {
				return nil, fmt.Errorf("comparing %s: it has no profile", side[i].File)
			}
		}
	}
	c := &Comparison{A: sideOf(a), B: sideOf(b)}
	c.addPods(a, b)
	c.addPhases(a, b)
	c.addTotals(a, b)
	c.addCPU(a, b)
	c.addNotes(a, b)
	return c, nil
}

func sideOf(rounds []Round) Side {
	s := Side{Scheduler: rounds[0].Profile.Scheduler, Program: rounds[0].Profile.Program}
	for i := range rounds {
		s.Files = append(s.Files, rounds[i].File)
	}
	return s
}

// addNotes adds what restricts the comparison.
func (c *Comparison) addNotes(a, b []Round) {
	if len(a) < fewest || len(b) < fewest {
		c.note("fewer than %d recordings on a side: intervals do not cover the variation between runs", fewest)
	}
	if origin(a) != "" && origin(b) != "" && origin(a) != origin(b) {
		c.note("A times pods from the %s, B from the %s: a watch shows a pod later than its creation", origin(a),
			origin(b))
	}
	for _, side := range []struct {
		name   string
		rounds []Round
	}{{"A", a}, {"B", b}} {
		for i := range side.rounds {
			r := &side.rounds[i]
			if f := r.Profile.CPU.Factor; f != nil && *f < contended {
				c.note("%s, %s: the CPUs of the machine were contended (threads had a CPU in %.0f %% of the time); "+
					"times of pods depend on it, CPU times less", side.name, r.File, 100**f)
			}
			if r.Pods != nil && r.Pods.Dropped > 0 {
				c.note("%s, %s: %d pods exceeded the limit of a recording and are missing", side.name, r.File,
					r.Pods.Dropped)
			}
		}
	}
}

// contended is the factor below which contention is noted, as in package apm.
const contended = 0.95

func (c *Comparison) note(format string, args ...any) {
	c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
}

func origin(rounds []Round) pods.Origin {
	for i := range rounds {
		if rounds[i].Pods != nil {
			return rounds[i].Pods.Created
		}
	}
	return ""
}

// reason returns the first reason of a side why it lacks something.
func reason(side string, rounds []Round, why func(*Round) string) string {
	for i := range rounds {
		if text := why(&rounds[i]); text != "" {
			return fmt.Sprintf("%s, %s: %s", side, rounds[i].File, text)
		}
	}
	return ""
}

// scheduled returns the number of pods that the scheduler placed between the two scrapes of its metrics, by its own
// count; nil if it is not known or 0.
func scheduled(r *Round) *float64 {
	for _, a := range r.Profile.Attempts {
		if a.Result == "scheduled" && a.Count > 0 {
			n := float64(a.Count)
			return &n
		}
	}
	return nil
}

// perPod divides a time or a number by the scheduled pods; nil without one of them.
func perPod[T ~int64](r *Round, value *T) *float64 {
	n := scheduled(r)
	if n == nil || value == nil {
		return nil
	}
	v := float64(*value) / *n
	return &v
}

// perSecond returns the pods that were bound per second, from the first creation to the last bind.
func perSecond(r *Round) *float64 {
	if r.Pods == nil {
		return nil
	}
	first, last, n := int64(0), int64(0), 0
	for _, p := range r.Pods.Pods {
		if first == 0 || p.Created < first {
			first = p.Created
		}
		if p.Bound != 0 {
			n++
			last = max(last, p.Bound)
		}
	}
	if n == 0 || last <= first {
		return nil
	}
	v := float64(n) / time.Duration(last-first).Seconds()
	return &v
}

// addTotals adds values of a whole recording.
func (c *Comparison) addTotals(a, b []Round) {
	noPods := func(r *Round) string {
		if r.Pods == nil {
			return r.PodsWhy
		}
		return "no pod was bound"
	}
	c.Totals = append(c.Totals, scalar("pods per second", PerSecond, a, b, perSecond, noPods))
	process := func(r *Round) *float64 { return perPod(r, r.Profile.CPU.Process) }
	c.Totals = append(c.Totals, scalar("CPU per pod", Nanoseconds, a, b, process, func(r *Round) string {
		return unknown(r, "process", "no pod was scheduled by its own count")
	}))
	allocated := func(r *Round) *float64 {
		sum, known := int64(0), false
		for i := range r.Profile.Functions {
			if n := r.Profile.Functions[i].Allocated; n != nil {
				sum, known = sum+*n, true
			}
		}
		if !known {
			return nil
		}
		return perPod(r, &sum)
	}
	c.Totals = append(c.Totals, scalar("allocated per pod", Bytes, a, b, allocated, func(r *Round) string {
		return unknown(r, "allocated", "no pod was scheduled by its own count")
	}))
	for _, one := range []struct {
		name  string
		value func(*apm.Cycles) time.Duration
	}{
		{"cycle, mean", func(c *apm.Cycles) time.Duration { return c.Total / time.Duration(max(c.Measured, 1)) }},
		{"cycle, median", func(c *apm.Cycles) time.Duration { return c.Median }},
		{"cycle, p99", func(c *apm.Cycles) time.Duration { return c.P99 }},
	} {
		value := func(r *Round) *float64 {
			if r.Profile.Cycles == nil || r.Profile.Cycles.Measured == 0 {
				return nil
			}
			v := float64(one.value(r.Profile.Cycles))
			return &v
		}
		c.Totals = append(c.Totals, scalar(one.name, Nanoseconds, a, b, value, func(r *Round) string {
			return unknown(r, "cycles", "no cycle placed a pod within the trace")
		}))
	}
}

// unknown returns the reason why a profile lacks a value.
func unknown(r *Round, value, otherwise string) string {
	if why := r.Profile.Unknown[value]; why != "" {
		return why
	}
	return otherwise
}

// scalar compares a value of which each round has one.
func scalar(
	name string, unit Unit, a, b []Round, value func(*Round) *float64, why func(*Round) string,
) Row {
	row := Row{Name: name, Unit: unit}
	x, y := values(a, value), values(b, value)
	row.A, row.B = meanOf(x), meanOf(y)
	missing := func(of func(*Round) *float64) func(*Round) string {
		return func(r *Round) string {
			if of(r) != nil {
				return ""
			}
			return why(r)
		}
	}
	if row.A == nil {
		row.Why = reason("A", a, missing(value))
	}
	if row.B == nil {
		row.Why = join(row.Why, reason("B", b, missing(value)))
	}
	row.differ(x, y)
	return row
}

// differ sets the difference, and its interval if rounds can be drawn.
func (row *Row) differ(a, b []float64) {
	if row.A == nil || row.B == nil {
		return
	}
	d := *row.B - *row.A
	row.Diff = &d
	if len(a) < fewest || len(b) < fewest {
		return
	}
	row.Interval = bootstrap(FromRounds, func(draw *draws) float64 {
		return mean(draw.pick(b)) - mean(draw.pick(a))
	})
}

// values returns the values of all rounds, and nil if one has none.
func values(rounds []Round, value func(*Round) *float64) []float64 {
	list := make([]float64, 0, len(rounds))
	for i := range rounds {
		v := value(&rounds[i])
		if v == nil {
			return nil
		}
		list = append(list, *v)
	}
	return list
}

func meanOf(list []float64) *float64 {
	if len(list) == 0 {
		return nil
	}
	v := mean(list)
	return &v
}

func join(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// byDifference sorts rows by the size of the difference, descending. A row without one stands where it would if the
// missing side were 0.
func byDifference(rows []Row) {
	size := func(r *Row) float64 {
		switch {
		case r.Diff != nil:
			return max(*r.Diff, -*r.Diff)
		case r.A != nil:
			return *r.A
		case r.B != nil:
			return *r.B
		}
		return 0
	}
	slices.SortStableFunc(rows, func(x, y Row) int {
		switch a, b := size(&x), size(&y); {
		case a > b:
			return -1
		case a < b:
			return 1
		case x.Name < y.Name:
			return -1
		case x.Name > y.Name:
			return 1
		}
		return 0
	})
}
