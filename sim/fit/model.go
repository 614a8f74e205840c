// SPDX-License-Identifier: Apache-2.0

package fit

import (
	"math"
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
	Nodes     int
	Decisions map[record.Path]time.Duration // path -> one decision
	Calls     []sim.CallLatency
	Watch     *sim.Durations
	Stop      *sim.Durations
	Parts     []Part
}

// least is how many samples a part needs.
const least = 10

// paths are the paths of decisions, in the order of reports.
var paths = []record.Path{record.Ranked, record.Grouped, record.Scanned}

// levels are the numbers of binds on the way for which latencies are fitted. With more, binds wait for each other
// before they are sent (sim.Model.InFlight), which is no latency.
var levels = []int{1, 4, 16, 64}

// Fit computes a model.
func (o *Observed) Fit() *Model {
	m := &Model{Nodes: o.Nodes, Decisions: map[record.Path]time.Duration{}}
	for _, path := range paths {
		samples := o.decisions(path)
		if len(samples) < least {
			continue
		}
		m.Decisions[path] = quantile(samples, 0.5)
		m.add("decision, "+string(path), samples, sim.Always(m.Decisions[path]))
	}
	from := 0
	for _, level := range levels {
		var samples []time.Duration
		for _, c := range o.calls {
			if c.inFlight > from && c.inFlight <= level {
				samples = append(samples, c.took)
			}
		}
		if from = level; len(samples) < least {
			continue
		}
		d := uniform(samples)
		m.Calls = append(m.Calls, sim.CallLatency{InFlight: level, Latency: d})
		m.add("bind, at most "+strconv.Itoa(level)+" in flight", samples, d)
	}
	if len(o.lags) >= least {
		d := uniform(o.lags)
		m.Watch = &d
		m.add("watch", o.lags, d)
	}
	if len(o.stops) >= least {
		d := uniform(o.stops)
		m.Stop = &d
		m.add("stop of a pod", o.stops, d)
	}
	if len(o.evicted) >= least {
		m.add("eviction, until its answer", o.evicted, uniform(o.evicted))
	}
	return m
}

// decisions returns the duration of a decision in each turn that made only those of a path, and made at least half as
// many as the largest turn: the loop does not rest after such turns.
func (o *Observed) decisions(path record.Path) (samples []time.Duration) {
	most := 0
	for _, t := range o.turns {
		most = max(most, t.all)
	}
	for _, t := range o.turns {
		if n := t.cycles[path]; n == t.all && 2*n >= most && t.events <= n {
			samples = append(samples, t.took/time.Duration(n))
		}
	}
	return samples
}

// uniform returns the uniform distribution with the 10th and 90th percentiles of samples.
func uniform(samples []time.Duration) sim.Durations {
	low, high := quantile(samples, 0.1), quantile(samples, 0.9)
	edge := (high - low) / 8
	return sim.Durations{Shape: sim.Uniform, A: max(0, low-edge), B: high + edge}
}

func (m *Model) add(name string, samples []time.Duration, d sim.Durations) {
	median, tail := d.A, d.A
	if d.Shape == sim.Uniform {
		median, tail = d.A+(d.B-d.A)/2, d.A+(d.B-d.A)*99/100
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
