// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// Metric is one figure of a run. Value is nil if there is none, as for the median of nothing.
type Metric struct {
	Name  string   `json:"name"`
	Unit  string   `json:"unit,omitempty"`
	Value *float64 `json:"value"`
}

// Result is what a run gave.
type Result struct {
	Seed       uint64   `json:"seed"`
	Profile    string   `json:"profile"`
	Reason     Reason   `json:"ended"`
	Seconds    float64  `json:"seconds"` // of virtual time
	Resources  []string `json:"resources"`
	Metrics    []Metric `json:"metrics"`
	Schedulers []Tally  `json:"schedulers"`
	Samples    []Sample `json:"samples"`
}

// Find returns a metric by name.
func (r *Result) Find(name string) (Metric, bool) {
	i := slices.IndexFunc(r.Metrics, func(m Metric) bool { return m.Name == name })
	if i < 0 {
		return Metric{}, false
	}
	return r.Metrics[i], true
}

// metrics collects figures.
type metrics struct{ list []Metric }

func (m *metrics) add(name, unit string, value float64) {
	m.list = append(m.list, Metric{name, unit, &value})
}

func (m *metrics) count(name string, n int) { m.add(name, "", float64(n)) }

// maybe adds a figure that may have no value.
func (m *metrics) maybe(name, unit string, value float64, known bool) {
	if !known || math.IsNaN(value) || math.IsInf(value, 0) {
		m.list = append(m.list, Metric{Name: name, Unit: unit})
		return
	}
	m.add(name, unit, value)
}

// spread adds mean, percentiles and maximum of durations, in seconds. It sorts the list.
func (m *metrics) spread(name string, list []time.Duration) {
	slices.Sort(list)
	n := len(list)
	sum := 0.0
	for _, d := range list {
		sum += d.Seconds()
	}
	m.maybe(name+".mean", "s", sum/float64(max(n, 1)), n > 0)
	for _, q := range []struct {
		name string
		mil  int
	}{{"p50", 500}, {"p90", 900}, {"p99", 990}, {"max", 1000}} {
		value := 0.0
		if n > 0 {
			value = list[max(0, (n*q.mil+999)/1000-1)].Seconds() // nearest rank
		}
		m.maybe(name+"."+q.name, "s", value, n > 0)
	}
}

// Result computes the result of a run that has ended. loads are the workloads in the order of the scenario.
func (m *Measure) Result(w *World, loads []*Workload, why Reason) Result {
	m.update(w)
	out := Result{Seed: w.setup.Seed, Reason: why, Seconds: w.now.Seconds(), Schedulers: w.Tallies(),
		Samples: m.samples}
	var ids []int
	for i, name := range w.ResourceNames() {
		if m.mostCapacity.at(i) > 0 && resource.ID(i) != resource.Ephemeral {
			out.Resources, ids = append(out.Resources, string(name)), append(ids, i)
		}
	}
	var to metrics
	m.podMetrics(&to, w)
	m.unitMetrics(&to, w, loads)
	m.nodeMetrics(&to, w)
	claims, bound := w.claimCounts()
	to.count("claims.pending", claims-bound)
	to.count("claims.bound", bound)
	for k, i := range ids {
		m.resourceMetrics(&to, w, out.Resources[k], i)
	}
	m.schedulerMetrics(&to, out.Schedulers)
	out.Metrics = to.list
	for i := range out.Samples {
		s := &out.Samples[i]
		s.Used, s.Fragments = pick(s.Used, ids), pick(s.Fragments, ids)
	}
	return out
}

func pick(list []float64, ids []int) []float64 {
	out := make([]float64, len(ids))
	for k, i := range ids {
		if i < len(list) {
			out[k] = list[i]
		}
	}
	return out
}

func (m *Measure) podMetrics(to *metrics, w *World) {
	to.count("pods.created", m.created)
	to.count("pods.bound", m.bound)
	to.count("pods.pending", w.pending)
	to.count("pods.running", m.running)
	for _, how := range []End{Succeeded, Failed, Rejected, Evicted, Drained, Lost} {
		to.count("pods."+how.String(), m.ended[how])
	}
	to.maybe("pods.placedRatio", "", float64(m.bound)/float64(max(m.created, 1)), m.created > 0)
	to.spread("timeToBind", m.waits)
}

// unitMetrics are about jobs, gangs and the like, and gangs alone.
func (m *Measure) unitMetrics(to *metrics, w *World, loads []*Workload) {
	var units, started, finished, gaveUp, restarts, gangs, gangsStarted int
	var waits, jcts, gangWaits []time.Duration
	for _, l := range loads {
		for _, u := range l.units {
			units++
			restarts += u.Restarts
			if u.GaveUp {
				gaveUp++
			}
			if l.Kind == Gang {
				gangs++
			}
			if u.Started >= 0 {
				started++
				waits = append(waits, u.Started-u.Created)
				if l.Kind == Gang {
					gangsStarted++
					gangWaits = append(gangWaits, u.Started-u.Created)
				}
			}
			if u.Finished >= 0 {
				finished++
				jcts = append(jcts, u.Finished-u.Created)
			}
		}
	}
	to.count("units.created", units)
	to.count("units.started", started)
	to.count("units.finished", finished)
	to.count("units.gaveUp", gaveUp)
	to.count("units.restarts", restarts)
	to.spread("timeToStart", waits)
	to.spread("completionTime", jcts)
	to.count("gangs.created", gangs)
	to.count("gangs.started", gangsStarted)
	to.add("gangs.partialHold", "pod·s", m.partialTime)
	to.spread("gangs.timeToStart", gangWaits)
	makespan := (m.lastSuccess - m.firstCreated).Seconds()
	least, known := m.makespan.AtLeast(m.mostCapacity)
	known = known && m.lastSuccess >= 0
	to.maybe("makespan", "s", makespan, known)
	to.maybe("makespan.bound", "s", least, known)
}

func (m *Measure) nodeMetrics(to *metrics, w *World) {
	seconds := w.now.Seconds()
	to.count("nodes.end", len(w.order))
	to.count("nodes.used.end", m.nodesUsed)
	to.count("nodes.used.max", max(m.usedMax, m.nodesUsed))
	to.count("nodes.used.max.bound", max(m.fewestMax, m.fewest))
	to.maybe("nodes.used.mean", "", m.nodeTime/seconds, seconds > 0)
	to.maybe("nodes.used.mean.bound", "", m.fewestTime/seconds, seconds > 0)
	to.add("nodeHours", "h", m.nodeTime/3600)
	to.add("nodeHours.bound", "h", m.fewestTime/3600)
	most, least := 0, math.MaxInt
	for _, n := range w.order {
		most, least = max(most, len(n.pods)), min(least, len(n.pods))
	}
	to.maybe("nodes.pods.maxMin", "", float64(most-least), len(w.order) > 0)
}

func (m *Measure) resourceMetrics(to *metrics, w *World, name string, i int) {
	end := "." + name
	capacity, used := m.capacity.at(i), m.used.at(i)
	to.maybe("utilisation.end"+end, "", float64(used)/float64(max(capacity, 1)), capacity > 0)
	grow(&m.usedTime, i+1)
	grow(&m.capacityTime, i+1)
	to.maybe("utilisation.mean"+end, "", m.usedTime[i]/max(m.capacityTime[i], 1e-9), m.capacityTime[i] > 0)
	grow(&m.frag, i+1)
	grow(&m.strand, i+1)
	n := float64(len(m.samples))
	to.maybe("fragmentation.mean"+end, "", m.frag[i]/max(n, 1), n > 0)
	to.maybe("stranded.mean"+end, "", m.strand[i]/max(n, 1), n > 0)
	frag, strand := m.fragments(w)
	grow(&frag, i+1)
	grow(&strand, i+1)
	to.add("fragmentation.end"+end, "", frag[i])
	to.add("stranded.end"+end, "", strand[i])
	var shares []float64
	sum := 0.0
	for _, o := range w.order {
		if c := o.Capacity.at(i); c > 0 {
			share := float64(o.Used.at(i)) / float64(c)
			shares, sum = append(shares, share), sum+share
		}
	}
	if len(shares) > 0 {
		mean, square := sum/float64(len(shares)), 0.0
		for _, x := range shares {
			square += float64((x - mean) * (x - mean))
		}
		to.add("load.maxMin"+end, "", slices.Max(shares)-slices.Min(shares))
		to.add("load.stddev"+end, "", math.Sqrt(square/float64(len(shares))))
	}
	grow(&m.lost, i+1)
	to.add("lostWork"+end, "unit·s", m.lost[i])
}

// schedulerMetrics are the sums over the schedulers, and each one's own.
func (m *Measure) schedulerMetrics(to *metrics, tallies []Tally) {
	var sum Tally
	for _, t := range tallies {
		sum.Attempts += t.Attempts
		sum.Binds += t.Binds
		sum.Conflicts += t.Conflicts
		sum.Failed += t.Failed
		sum.Unknown += t.Unknown
		sum.Overcommits += t.Overcommits
		sum.Turned += t.Turned
		sum.Victims += t.Victims
		sum.Wasted += t.Wasted
		sum.Unsupported += t.Unsupported
		sum.Troubles += t.Troubles
		sum.Busy += t.Busy
	}
	of := func(prefix string, t Tally, waits []time.Duration) {
		to.count(prefix+"attempts", t.Attempts)
		to.count(prefix+"binds", t.Binds)
		to.count(prefix+"conflicts", t.Conflicts)
		to.count(prefix+"overcommits", t.Overcommits)
		to.count(prefix+"kubeletRejections", t.Turned)
		to.count(prefix+"failedBinds", t.Failed)
		to.count(prefix+"unknownBinds", t.Unknown)
		to.count(prefix+"evictions", t.Victims)
		to.count(prefix+"wastedEvictions", t.Wasted)
		to.count(prefix+"unsupported", t.Unsupported)
		to.count(prefix+"troubles", t.Troubles)
		to.add(prefix+"busy", "s", t.Busy.Seconds())
		if waits != nil {
			to.spread(prefix+"timeToBind", waits)
		}
	}
	of("", sum, nil)
	for i, t := range tallies {
		waits := []time.Duration{}
		if i < len(m.bySched) && m.bySched[i] != nil {
			waits = m.bySched[i]
		}
		of("scheduler."+strings.ReplaceAll(t.Name, ".", "-")+".", t, waits)
	}
}
