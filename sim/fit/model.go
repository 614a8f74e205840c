// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/sim"
)

// Part is one part of a fitted model. Error is how far the median of the fitted distribution is from that of the
// samples, as a share of it, and Tail the same for the 99th percentile.
type Part struct {
	Name    string        `json:"name"`
	Samples int           `json:"samples"`
	Fitted  sim.Durations `json:"-"`
	Form    string        `json:"fitted"`
	Error   float64       `json:"medianError"`
	Tail    float64       `json:"p99Error"`
}

// Model is a fitted model. Parts without samples are missing in it.
type Model struct {
	Nodes int
	// InFlight is the limit on binds; 0 for none.
	InFlight  int
	Decisions map[record.Path]time.Duration // path -> one decision
	Loads     []sim.CallLatency             // by the number of binds sent in the last sim.LoadWindow
	Answer    *sim.Durations
	Watch     *sim.Durations
	// Sight is the delay from the creation of a pod to its first sight.
	Sight *sim.Durations
	Stop  *sim.Durations
	Parts []Part
}

// least is how many samples a part needs.
const least = 10

// paths are the paths of decisions, in the order of reports.
var paths = []record.Path{record.Ranked, record.Grouped, record.Scanned}

// levels are the numbers of binds sent in the last sim.LoadWindow for which latencies are fitted.
//
// Rejected: the number of binds on the way. Where the API server is slow, binds are slow and many are on the way, so a
// fitted latency rises steeply with their number; in a simulation, a slow bind then makes those after it slow. How many
// were sent does not depend on how slow they are.
var levels = []int{1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024}

// leastCalls is how many binds a level needs; with fewer, it is one with the next.
const leastCalls = 100

// Fit computes a model.
func (o *Observed) Fit() *Model {
	m := &Model{Nodes: o.Nodes, InFlight: o.limit, Decisions: map[record.Path]time.Duration{}}
	for i, path := range paths {
		samples := o.decisions(i)
		if len(samples) < least {
			continue
		}
		m.Decisions[path] = quantile(samples, 0.5)
		m.add("decision, "+string(path), samples, sim.Always(m.Decisions[path]))
	}
	m.fitCalls(o.calls)
	m.Answer = m.distribution("answer of a bind", o.answers)
	m.Watch = m.distribution("watch", o.lags)
	m.fitSight(o)
	m.Stop = m.distribution("stop of a pod", o.stops)
	m.distribution("eviction, until its answer", o.evicted)
	return m
}

// fitSight fits the delay of the first sight of a pod. Where times of creation have whole seconds, Arrivals takes one
// delay for all pods of a recording, so the model has one, too: with a distribution, simulated waits would vary by
// something that recorded ones do not show.
func (m *Model) fitSight(o *Observed) {
	all := slices.Concat(append(slices.Clone(o.whole), o.arrivals)...)
	samples := append(slices.Clone(o.sights), sightsOf(o.arrivals)...)
	const name = "first sight of a pod"
	if precise(all) {
		m.Sight = m.distribution(name, samples)
	} else if len(samples) >= fewest {
		d := sim.Always(quantile(samples, 0.5))
		m.Sight = &d
		m.add(name, samples, d)
	}
}

// fitCalls fits the latency of binds by how many were sent recently.
func (m *Model) fitCalls(calls []call) {
	at := make([][]time.Duration, len(levels))
	for i := range calls {
		for j, level := range levels {
			if calls[i].load <= level {
				at[j] = append(at[j], m.latency(&calls[i]))
				break
			}
		}
	}
	var samples []time.Duration
	for j, level := range levels {
		samples = append(samples, at[j]...)
		left := 0
		for _, more := range at[j+1:] {
			left += len(more)
		}
		if len(samples) < leastCalls && left > 0 || left > 0 && left < leastCalls {
			continue
		}
		if d := m.distribution("bind, at most "+strconv.Itoa(level)+" in 100 ms", samples); d != nil {
			m.Loads = append(m.Loads, sim.CallLatency{InFlight: level, Latency: *d})
		}
		if samples = nil; left == 0 {
			break
		}
	}
}

// latency returns how long a bind took: a recording has the begin of the turns in which it was decided and in which
// its answer, or the bound pod, was read. The decisions of the first turn up to it are none of it, nor is the rest of
// the turn within which the answer came.
func (m *Model) latency(c *call) time.Duration {
	took := since(c.from.at, c.bound.at) - m.duration(c.from.work)
	if busy := m.duration(c.bound.before.work); c.bound.before.took > 0 && busy > 0 {
		busy = min(busy, c.bound.before.took)
		// The answer came at a random moment of the turn: with a probability of busy/took while it decided, and then
		// it waited for half of that on average.
		took -= time.Duration(float64(busy) / float64(c.bound.before.took) * float64(busy) / 2)
	}
	return max(0, took)
}

// duration returns how long searches take. Those without a path take no time, because none was fitted.
func (m *Model) duration(w work) (sum time.Duration) {
	for i, path := range paths {
		sum += time.Duration(w[i]) * m.Decisions[path]
	}
	return sum
}

// busy is how many decisions a turn of the production loop makes at least after which the loop does not rest.
const busy = 16

// decisions returns the duration of a search in each turn that made only those of a path, and at least half as many
// decisions as the largest turn of its recording: the loop does not rest after such turns. In a recording whose turns
// are all small it may rest after each of them. There the fastest tenth of the turns counts.
func (o *Observed) decisions(path int) (samples []time.Duration) {
	most := map[int]int{} // recording -> decisions of its largest turn
	for _, t := range o.turns {
		most[t.recording] = max(most[t.recording], t.all)
	}
	resting := map[int][]time.Duration{} // recording -> samples that may have a rest in them
	for _, t := range o.turns {
		n := t.work[path]
		if n == 0 || n != t.work[0]+t.work[1]+t.work[2]+t.work[3] {
			continue
		}
		each := t.took / time.Duration(n)
		switch largest := most[t.recording]; {
		case largest < busy:
			resting[t.recording] = append(resting[t.recording], each)
		case 2*t.all >= largest && t.events <= n:
			samples = append(samples, each)
		}
	}
	for i := range len(o.whole) + 1 {
		list := slices.Sorted(slices.Values(resting[i]))
		samples = append(samples, list[:min(len(list), max(least, len(list)/10))]...)
	}
	return samples
}

// distribution fits a distribution to samples: their quantiles. It returns nil for too few.
func (m *Model) distribution(name string, samples []time.Duration) *sim.Durations {
	if len(samples) < least {
		return nil
	}
	d := sim.Durations{Shape: sim.Quantiles}
	sorted := slices.Sorted(slices.Values(samples))
	for i, level := range sim.Levels {
		d.Steps[i] = sorted[min(len(sorted)-1, int(level*float64(len(sorted))))]
	}
	m.add(name, samples, d)
	return &d
}

func (m *Model) add(name string, samples []time.Duration, d sim.Durations) {
	median, tail := d.A, d.A
	if d.Shape == sim.Quantiles {
		median, tail = d.Quantile(0.5), d.Quantile(0.99)
	}
	m.Parts = append(m.Parts, Part{Name: name, Samples: len(samples), Fitted: d, Form: d.String(),
		Error: Deviation(median.Seconds(), quantile(samples, 0.5).Seconds()),
		Tail:  Deviation(tail.Seconds(), quantile(samples, 0.99).Seconds())})
}

// Deviation returns how far a value is from the true one, as a share of it. It is 0 if both are 0, and 1 if only the
// true one is.
func Deviation(value, truth float64) float64 {
	if truth == 0 {
		if value == 0 {
			return 0
		}
		return 1
	}
	return math.Abs(value-truth) / math.Abs(truth)
}
