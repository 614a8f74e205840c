// SPDX-License-Identifier: Apache-2.0

package bottleneck

import (
	"fmt"
	"math"
)

// finding returns what is known of one cause. The rates of v must be set.
func (f *finder) finding(c Cause, v *Verdict) Finding {
	return Finding{Cause: c, Stage: f.at[c].String(), What: c.What(), PodSeconds: f.seconds[c],
		Share: f.seconds[c] / f.total, Evidence: f.evidence[c], Setting: c.Setting(), Gain: f.gain(c, v)}
}

// gain returns what removing a cause changes. Where pods accumulate before the cause, it limits the rate. Where they
// leave a backlog behind it, it does too, but arrivals do not bound what follows. Otherwise the rate is that of
// arrivals, and pods wait less.
func (f *finder) gain(c Cause, v *Verdict) (g Gain) {
	g.Saved = f.saved(c)
	factor, limits := f.factor(c)
	grown := (v.Arrived - v.Placed) * v.Seconds
	noise := noiseFactor*math.Sqrt(2*f.flowing/v.Seconds) + 1
	switch {
	case f.total < f.w.Evidence.Resolution:
		return Gain{Unknown: fmt.Sprintf("%.1f pod-seconds are less than what gauges at intervals can resolve",
			f.total)}
	case limits && grown < -noise:
		return Gain{Unknown: "pods waited from the start, and how many the next stages can take was not observed"}
	case !limits || grown <= noise:
		g.AtLeast = contends(c)
		if grown <= noise {
			g.Saved = min(g.Saved+f.queueing(c)/f.total, 1)
		}
		return g
	}
	most, known := f.capacityBeside(f.serverOf(c), v)
	g.PerSecond = min(v.Arrived, most)
	if !math.IsInf(factor, 1) { // with no placed pod, infinity times the rate is no number
		g.PerSecond = min(g.PerSecond, v.Placed*factor)
	}
	g.AtLeast = !known && g.PerSecond == v.Arrived
	return g
}

// noiseFactor is by how many standard deviations the number of pods must have changed to be no chance: if pods arrive
// at random and are all served, it has a Poisson distribution (M/G/infinity), and the difference of two numbers has
// twice its variance.
const noiseFactor = 3

// contends reports whether a cause is a lack of CPU: what it delays outside of the parts that are measured is counted
// for other causes, so its own pod-seconds are a lower bound.
func contends(c Cause) bool { return c == CPUStarvation || c == GC || c == APIServerCPU }

// saved is the share of the pod-seconds that a cause takes, and that do not stay without it.
func (f *finder) saved(c Cause) float64 {
	saved := f.seconds[c]
	for s := range f.w.Evidence.Parts {
		for _, p := range f.w.Evidence.Parts[s] {
			if p.Cause == c && f.at[c] == Stage(s) {
				saved *= 1 - p.Stays
			}
		}
	}
	return saved / f.total
}

// queueing is how many more pod-seconds are saved than those of a cause in the loop: a shorter service makes the queue
// before it shorter by more than its share. The mean wait in a queue is the service time multiplied by u/(1-u) for the
// utilisation u and by the variability (Kingman, 1961), of which the last is taken to stay.
func (f *finder) queueing(c Cause) float64 {
	share := 0.0
	for _, p := range f.w.Evidence.Parts[Loop] {
		if p.Cause == c {
			share += p.Share
		}
	}
	u, seconds := min(f.atCapacity(Loop), 1), f.w.Took().Seconds()
	if share == 0 || u == 0 {
		return 0
	}
	waiting := max(f.queued-u*seconds, 0) // without the pod that the loop works on
	// The divisor is 1-u*(1-share), written so that a busy loop and the smallest share do not make it zero.
	rest := (1 - share) * (1 - share) * (1 - u) / (1 - u + u*share)
	return waiting * max(1-rest-share, 0)
}

// factor returns by which factor the capacity of the cause's stage rises without the cause, and whether the cause
// limits the rate at all.
func (f *finder) factor(c Cause) (float64, bool) {
	switch c {
	case InFlightLimit:
		return max(f.limitOf(BindQueue).gains(), 1), true
	case ClientLimit, DecidedAheadLimit:
		return math.Inf(1), true
	}
	s := f.serverOf(c)
	for _, p := range f.w.Evidence.Parts[s] {
		if p.Cause == c {
			return 1 / max(1-p.Share, 1e-3), !s.delays() || f.limitsRate(s)
		}
	}
	return 1, false
}

// serverOf is the stage whose time a cause takes: the loop takes what is in the inbox.
func (f *finder) serverOf(c Cause) Stage {
	if f.at[c] == Inbox {
		return Loop
	}
	return f.at[c]
}

// limitsRate reports whether a stage that delays is at capacity most of the time.
func (f *finder) limitsRate(s Stage) bool { return f.atCapacity(s) > full }

// atCapacity is the share of time in which a stage was at capacity.
func (f *finder) atCapacity(s Stage) (share float64) {
	took := f.w.Took().Seconds()
	for i := range f.w.Buckets {
		share += f.w.Buckets[i].Stages[s].AtCapacity * f.w.Buckets[i].Took.Seconds() / took
	}
	return share
}

// capacityBeside is the lowest rate that the other stages allow: their flow by the share of time in which they were at
// capacity. It is not known if none of them was. A stage that delays serves all pods at the same time, so its delay is
// no limit of the rate.
func (f *finder) capacityBeside(beside Stage, v *Verdict) (float64, bool) {
	most, known := math.Inf(1), false
	for s := Loop; s < Stage(Stages); s++ {
		if s == beside || s.delays() {
			continue
		}
		if busy := f.atCapacity(s); busy > 0 && v.Placed > 0 {
			most, known = min(most, v.Placed/busy), true
		}
	}
	return most, known
}
