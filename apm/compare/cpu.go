// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"math"
	"slices"

	"github.com/kumiki-scheduler/kumiki/apm"
)

// addCPU adds the CPU time per pod of lanes, plugins and functions.
func (c *Comparison) addCPU(a, b []Round) {
	c.Lanes = sampled(a, b, func(p *apm.Profile) []apm.Row { return p.Lanes })
	c.Plugins = sampled(a, b, func(p *apm.Profile) []apm.Row { return p.Plugins })
	c.Functions = sampled(a, b, func(p *apm.Profile) []apm.Row { return p.Functions })
}

// measured is the CPU time per pod of a row in one round, with the samples behind it.
type measured struct {
	perPod  float64
	samples int
}

// sampled compares the rows with one name, the largest difference first.
func sampled(a, b []Round, rows func(*apm.Profile) []apm.Row) []Row {
	x, whyA := cpuOf("A", a, rows)
	y, whyB := cpuOf("B", b, rows)
	var names []string
	for _, side := range []map[string][]*measured{x, y} {
		for name := range side { // order: sorted below
			names = append(names, name)
		}
	}
	slices.Sort(names)
	var out []Row
	for _, name := range slices.Compact(names) {
		row := Row{Name: name, Unit: Nanoseconds, Why: join(whyA, whyB)}
		va, vb := present(x[name]), present(y[name])
		row.A, row.B = meanOf(va), meanOf(vb)
		if whyA == "" && row.A == nil {
			row.Why = join(row.Why, "A: "+noSample)
		}
		if whyB == "" && row.B == nil {
			row.Why = join(row.Why, "B: "+noSample)
		}
		row.differ(va, vb)
		if row.Diff != nil && row.Interval == nil {
			row.Interval = counted(x[name], y[name], *row.Diff)
		}
		out = append(out, row)
	}
	byDifference(out)
	return out
}

const noSample = "no CPU sample in at least one recording, so less than about 10 ms, or not called"

// cpuOf returns the CPU time per pod of each name in all rounds: name -> a value for each round, nil where a round has
// no sample. Why is set if the side has no CPU time.
func cpuOf(side string, rounds []Round, rows func(*apm.Profile) []apm.Row) (map[string][]*measured, string) {
	out := map[string][]*measured{}
	for i := range rounds {
		r := &rounds[i]
		if r.Profile.CPU.Factor == nil {
			return out, reason(side, rounds[i:i+1], func(r *Round) string {
				return unknown(r, "cpu", unknown(r, "lanes", "it has no CPU time"))
			})
		}
		if scheduled(r) == nil {
			return out, reason(side, rounds[i:i+1], func(r *Round) string {
				return unknown(r, "attempts", "no pod was scheduled by its own count")
			})
		}
		for _, row := range rows(r.Profile) {
			if row.Samples == 0 || row.CPU == nil {
				continue
			}
			if out[row.Name] == nil {
				out[row.Name] = make([]*measured, len(rounds))
			}
			out[row.Name][i] = &measured{*perPod(r, row.CPU), row.Samples}
		}
	}
	return out, ""
}

// present returns the values, and nil if a round has none.
func present(list []*measured) []float64 {
	out := make([]float64, 0, len(list))
	for _, m := range list {
		if m == nil {
			return nil
		}
		out = append(out, m.perPod)
	}
	return out
}

// counted returns the interval by the numbers of samples: each round's value has the relative standard error 1/√n.
func counted(a, b []*measured, diff float64) *Interval {
	variance := func(list []*measured) float64 {
		sum := 0.0
		for _, m := range list {
			sum += m.perPod * m.perPod / float64(m.samples)
		}
		return sum / float64(len(list)*len(list))
	}
	// Half the width of a 95 % interval of the normal distribution.
	half := 1.96 * math.Sqrt(variance(a)+variance(b))
	return &Interval{Low: diff - half, High: diff + half, Kind: FromSamples}
}
