// SPDX-License-Identifier: Apache-2.0

package bottleneck

import "math"

// finding returns what is known of one cause. The rates of v must be set.
func (f *finder) finding(c Cause, v *Verdict) Finding {
	out := Finding{Cause: c, Stage: f.at[c].String(), What: c.What(), PodSeconds: f.seconds[c],
		Share: f.seconds[c] / f.total, Evidence: f.evidence[c], Setting: c.Setting()}
	out.Gain.Saved = out.Share
	factor, limits := f.factor(c)
	if !limits || v.Arrived <= v.Placed*(1+rounding) {
		return out // the rate is that of arrivals
	}
	most, known := f.capacityBeside(f.at[c], v)
	out.Gain.PerSecond = min(v.Arrived, most)
	if !math.IsInf(factor, 1) { // with no placed pod, infinity times the rate is no number
		out.Gain.PerSecond = min(out.Gain.PerSecond, v.Placed*factor)
	}
	out.Gain.AtLeast = !known && out.Gain.PerSecond == v.Arrived
	return out
}

// factor returns by which factor the capacity of the cause's stage rises without the cause, and whether the cause
// limits the rate at all.
func (f *finder) factor(c Cause) (float64, bool) {
	switch c {
	case InFlightLimit:
		return max(f.limitGains(), 1), true
	case ClientLimit, DecidedAheadLimit:
		return math.Inf(1), true
	}
	s := f.at[c]
	for _, p := range f.w.Evidence.Parts[s] {
		if p.Cause == c {
			return 1 / max(1-p.Share, 1e-3), !s.delays() || f.limitsRate(s)
		}
	}
	return 1, false
}

// limitsRate reports whether a stage that delays is at capacity most of the time.
func (f *finder) limitsRate(s Stage) bool {
	sum := 0.0
	for i := range f.w.Buckets {
		sum += f.w.Buckets[i].Stages[s].AtCapacity
	}
	return sum > full*float64(len(f.w.Buckets))
}

// capacityBeside is the lowest rate that the other stages allow: their flow by the share of time in which they were at
// capacity. It is not known if none of them was.
func (f *finder) capacityBeside(beside Stage, v *Verdict) (float64, bool) {
	most, known := math.Inf(1), false
	for s := Loop; s < Stage(Stages); s++ {
		if s == beside {
			continue
		}
		busy := 0.0
		for i := range f.w.Buckets {
			b := &f.w.Buckets[i]
			busy += b.Stages[s].AtCapacity * b.Took.Seconds() / v.Seconds
		}
		if busy > 0 && v.Placed > 0 {
			most, known = min(most, v.Placed/busy), true
		}
	}
	return most, known
}
