// SPDX-License-Identifier: Apache-2.0

package report

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

// idleMost is the share of the machine that the null binder may leave idle. When it leaves more, something else than
// the API server held the run up (the creator, a rate, a pause), and a ratio to null says nothing about a scheduler.
const idleMost = 0.05

// othersMost is the share of the machine that others may use while null or a scheduler is measured. What they take is
// missing to the API server first.
const othersMost = 0.05

// Comparison is what all trials gave.
type Comparison struct {
	// Date is that of the first trial, RFC 3339. Topic chooses thresholds.
	Date  string  `json:"date"`
	Go    string  `json:"go"`
	CPUs  int     `json:"cpus"`
	QPS   float32 `json:"qps"`
	Burst int     `json:"burst"`
	Rate  float64 `json:"rate,omitempty"` // pods asked for per second; 0 for as many as the API server takes
	Topic string  `json:"topic,omitempty"`
	// KubeScheduler is the release of the kube-scheduler that was measured, such as 1.37.1. It is empty if none was, and
	// in files that are older than the field: those are of 1.36.3.
	KubeScheduler string `json:"kubeScheduler,omitempty"`

	Machine   Machine        `json:"machine"`
	Limits    GoLimits       `json:"limits"`
	Workloads []WorkloadSize `json:"workloads"`

	Rows   []WorkloadRow `json:"rows"`
	Trials []Trial       `json:"trials"`
}

// WorkloadRow is one scheduler over its rounds of one workload.
type WorkloadRow struct {
	Workload  string `json:"workload"`
	Scheduler string `json:"scheduler"`
	// Rounds came to their end, Failed did not.
	Rounds int `json:"rounds"`
	Failed int `json:"failed"`
	// Counts reports whether ratios to null mean anything here; Why not, when they do not.
	Counts bool   `json:"counts"`
	Why    string `json:"why,omitempty"`

	PodsPerSecond Spread `json:"podsPerSecond"`
	// Latency has the median over the rounds of each percentile, Gangs too.
	Latency  Latency  `json:"latency"`
	Gangs    *Latency `json:"gangs,omitempty"`
	Attempts Spread   `json:"attemptsPerPod"`
	Oversold int      `json:"oversold"`
	CPU      Spread   `json:"cpuSeconds"`
	// MachineCPU is the CPU seconds of scheduler, API server, etcd and this program.
	MachineCPU Spread `json:"machineCPUSeconds"`
	PeakRSS    Spread `json:"peakRSSBytes"`
	SteadyRSS  Spread `json:"steadyRSSBytes"`
	Idle       Spread `json:"idleShare"`
	Others     Spread `json:"othersShare"`
	// Calls per pod, of the last round.
	Calls map[string]float64 `json:"callsPerPod"` // verb, resource and code -> calls
	// OfNull and OfUpstream are PodsPerSecond divided by theirs, round by round; nil when they were not measured.
	OfNull     *Interval `json:"ofNull,omitempty"`
	OfUpstream *Interval `json:"ofUpstream,omitempty"`
	// Threshold is what Selector must reach, Reached what it did; nil without one.
	Threshold *Threshold `json:"threshold,omitempty"`
	// Items have the median over the rounds of each bucket.
	Items []DataItem `json:"items"`
}

// Threshold is a figure that a workload has to reach.
type Threshold struct {
	Metric      string            `json:"metric"`
	Labels      map[string]string `json:"labels,omitempty"` // label -> value that the item has
	Bucket      string            `json:"bucket"`
	Want        float64           `json:"want"`
	ExpectLower bool              `json:"expectLower,omitempty"`
	// Got is nil when nothing was measured, which is a miss.
	Got    *float64 `json:"got"`
	Missed bool     `json:"missed"`
}

// Spec is what a comparison is made of beside its trials.
type Spec struct {
	Plans      []workload.Plan
	Schedulers []string
}

// MakeRows makes the rows of the workloads of a spec that were measured, in their order, schedulers in theirs. Rows
// of other workloads stay.
func (c *Comparison) MakeRows(s Spec) {
	for i := range s.Plans {
		p := &s.Plans[i]
		if !slices.ContainsFunc(c.Trials, func(t Trial) bool { return t.Workload == p.Name }) {
			continue // its turn has not come
		}
		var rows []WorkloadRow
		null := c.TrialsOf(p.Name, Null)
		for _, name := range c.measured(p.Name, s.Schedulers) {
			row := rowOf(p, name, c.TrialsOf(p.Name, name))
			row.Counts, row.Why = counts(null, c.TrialsOf(p.Name, name))
			row.OfNull = paired(row.Scheduler, c.TrialsOf(p.Name, name), Null, null)
			row.OfUpstream = paired(row.Scheduler, c.TrialsOf(p.Name, name), Upstream, c.TrialsOf(p.Name, Upstream))
			if want := p.ThresholdFor(c.Topic); want != 0 && name != Null && name != CreateOnly {
				row.Threshold = thresholdOf(p.Selector, want, row.Items)
			}
			rows = append(rows, row)
		}
		c.Rows = put(c.Rows, rows, func(r *WorkloadRow) bool { return r.Workload == p.Name })
		c.Workloads = put(c.Workloads, []WorkloadSize{SizeOf(p)}, func(w *WorkloadSize) bool { return w.Name == p.Name })
	}
}

// measured are the schedulers, and those that were measured before and are not among them.
func (c *Comparison) measured(workload string, schedulers []string) []string {
	out := slices.Clone(schedulers)
	for i := range c.Trials {
		if t := &c.Trials[i]; t.Workload == workload && !slices.Contains(out, t.Scheduler) {
			out = append(out, t.Scheduler)
		}
	}
	return out
}

// put puts new entries where the first of the old ones is, which all go, or at the end.
func put[T any](list, with []T, old func(*T) bool) []T {
	at := slices.IndexFunc(list, func(x T) bool { return old(&x) })
	if at < 0 {
		at = len(list)
	}
	list = slices.DeleteFunc(list, func(x T) bool { return old(&x) })
	return slices.Insert(list, at, with...)
}

// TrialsOf are the trials of a scheduler, in the order of their rounds.
func (c *Comparison) TrialsOf(workload, scheduler string) []Trial {
	var out []Trial
	for _, t := range c.Trials {
		if t.Workload == workload && t.Scheduler == scheduler {
			out = append(out, t)
		}
	}
	return out
}

// counts reports whether ratios to null count: it left nothing idle, so that the machine was what limits, and others
// took little while it and the scheduler were measured.
func counts(null, of []Trial) (bool, string) {
	idle := Median(Figures(null, func(t *Trial) float64 { return t.Idle }))
	others := func(trials []Trial) float64 {
		return Median(Figures(trials, func(t *Trial) float64 { return t.Others }))
	}
	switch {
	case math.IsNaN(idle) && len(null) > 0 && null[0].Failure != "":
		why, _, _ := strings.Cut(null[0].Failure, "\n")
		return false, "null was not measured: " + why
	case math.IsNaN(idle):
		return false, "null was not measured"
	case idle >= idleMost:
		return false, fmt.Sprintf("null left %.0f%% of the machine idle", 100*idle)
	case others(null) >= othersMost:
		return false, fmt.Sprintf("others took %.0f%% of the machine beside null", 100*others(null))
	case others(of) >= othersMost:
		return false, fmt.Sprintf("others took %.0f%% of the machine", 100*others(of))
	}
	return true, ""
}

// paired divides the rounds that both came through.
func paired(name string, of []Trial, toName string, to []Trial) *Interval {
	if name == toName {
		return nil
	}
	var a, b []float64
	for i := range of {
		for j := range to {
			if of[i].Round == to[j].Round && of[i].Good() && to[j].Good() && to[j].PodsPerSecond > 0 {
				a, b = append(a, of[i].PodsPerSecond), append(b, to[j].PodsPerSecond)
			}
		}
	}
	if len(a) == 0 {
		return nil
	}
	r := pairedRatio(a, b)
	return &r
}

// Figures takes one figure of the trials that are good.
func Figures(trials []Trial, f func(*Trial) float64) []float64 {
	var out []float64
	for i := range trials {
		if trials[i].Good() {
			out = append(out, f(&trials[i]))
		}
	}
	return out
}

func rowOf(p *workload.Plan, name string, trials []Trial) WorkloadRow {
	of := func(f func(*Trial) float64) Spread { return SpreadOf(Figures(trials, f)) }
	row := WorkloadRow{
		Workload: p.Name, Scheduler: name,
		PodsPerSecond: of(func(t *Trial) float64 { return t.PodsPerSecond }),
		Attempts:      of(func(t *Trial) float64 { return float64(t.Attempts) / float64(max(1, t.Pods)) }),
		CPU:           of(func(t *Trial) float64 { return t.SchedulerCPU }),
		MachineCPU:    of(func(t *Trial) float64 { return t.SchedulerCPU + t.ServersCPU + t.BenchCPU }),
		PeakRSS:       of(func(t *Trial) float64 { return float64(t.PeakRSS) }),
		SteadyRSS:     of(func(t *Trial) float64 { return float64(t.SteadyRSS) }),
		Idle:          of(func(t *Trial) float64 { return t.Idle }),
		Others:        of(func(t *Trial) float64 { return t.Others }),
	}
	var pods, gangs []Latency
	var items [][]DataItem
	for i := range trials {
		t := &trials[i]
		row.Oversold += len(t.Oversold)
		if t.Failure != "" {
			row.Failed++
		}
		if t.Latency.Count > 0 { // that of a run which failed counts too: its pods are infinite
			pods = append(pods, t.Latency)
		}
		if t.Gangs != nil {
			gangs = append(gangs, *t.Gangs)
		}
		if !t.Good() {
			continue
		}
		row.Rounds++
		items = append(items, t.Items)
		row.Calls = map[string]float64{}
		for what, n := range t.Calls { // order: into a map
			row.Calls[what] = float64(n) / float64(max(1, t.Pods))
		}
	}
	if name == CreateOnly { // no scheduler ran that has any
		none := SpreadOf(nil)
		row.Attempts, row.CPU, row.PeakRSS, row.SteadyRSS = none, none, none, none
	}
	if name == Null { // it does not try, it plays
		row.Attempts = SpreadOf(nil)
	}
	row.Latency = medianLatency(pods)
	if len(gangs) > 0 {
		g := medianLatency(gangs)
		row.Gangs = &g
	}
	row.Items = medianItems(items)
	return row
}

// medianLatency takes the median of each percentile.
func medianLatency(rounds []Latency) Latency {
	of := func(f func(Latency) Seconds) Seconds {
		var values []float64
		for _, l := range rounds {
			values = append(values, float64(f(l)))
		}
		return Seconds(Median(values))
	}
	count := 0
	for _, l := range rounds {
		count = max(count, l.Count)
	}
	return Latency{Count: count,
		P50: of(func(l Latency) Seconds { return l.P50 }), P90: of(func(l Latency) Seconds { return l.P90 }),
		P95: of(func(l Latency) Seconds { return l.P95 }), P99: of(func(l Latency) Seconds { return l.P99 }),
		P999: of(func(l Latency) Seconds { return l.P999 }), Max: of(func(l Latency) Seconds { return l.Max })}
}

// medianItems takes the median of each bucket over the rounds that have the item.
func medianItems(rounds [][]DataItem) []DataItem {
	var out []DataItem
	for _, items := range rounds {
		for _, item := range items {
			if findExact(out, item.Labels) != nil {
				continue
			}
			all := map[string][]float64{} // bucket -> values over the rounds
			for _, round := range rounds {
				if same := findExact(round, item.Labels); same != nil {
					for bucket, v := range same.Data { // order: into a map
						all[bucket] = append(all[bucket], v)
					}
				}
			}
			data := map[string]float64{}
			for bucket, values := range all { // order: into a map
				data[bucket] = Median(values)
			}
			out = append(out, DataItem{Data: data, Unit: item.Unit, Labels: item.Labels})
		}
	}
	return out
}

func findExact(items []DataItem, labels map[string]string) *DataItem {
	for i := range items {
		if len(items[i].Labels) == len(labels) && FindItem(items[i:i+1], labels["Metric"], labels) != nil {
			return &items[i]
		}
	}
	return nil
}

// thresholdOf compares a figure with what it must reach. To equal it is to miss it, as in scheduler_perf.
func thresholdOf(s workload.MetricSelector, want float64, items []DataItem) *Threshold {
	t := &Threshold{Metric: s.Name, Labels: s.Labels, Bucket: s.Bucket, Want: want, ExpectLower: s.ExpectLower, Missed: true}
	if item := FindItem(items, s.Name, s.Labels); item != nil {
		if got, ok := item.Data[s.Bucket]; ok {
			t.Got = &got
			t.Missed = s.ExpectLower && got >= want || !s.ExpectLower && got <= want
		}
	}
	return t
}

// Verdict is what a comparison ends with: what went wrong, or missed its threshold. The report has said which.
func (c *Comparison) Verdict() error {
	bad, missed := 0, 0
	for i := range c.Trials {
		if !c.Trials[i].Good() {
			bad++
		}
	}
	for i := range c.Rows {
		if t := c.Rows[i].Threshold; t != nil && t.Missed {
			missed++
		}
	}
	var errs []error
	if bad > 0 {
		errs = append(errs, fmt.Errorf("%d runs failed or promised nodes more than they have", bad))
	}
	if missed > 0 {
		errs = append(errs, fmt.Errorf("%d thresholds were missed", missed))
	}
	return errors.Join(errs...)
}
