// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
)

// Seconds is a time that may be infinite: that of a pod which was never bound. JSON has no infinity, so it reads "inf".
type Seconds float64

// MarshalJSON writes a number, "inf", or null for a time that nothing was measured for.
func (s Seconds) MarshalJSON() ([]byte, error) {
	switch f := float64(s); {
	case math.IsInf(f, 1):
		return []byte(`"inf"`), nil
	case math.IsNaN(f):
		return []byte("null"), nil
	default:
		return json.Marshal(f)
	}
}

// UnmarshalJSON reads what MarshalJSON writes.
func (s *Seconds) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case `"inf"`:
		*s = Seconds(math.Inf(1))
		return nil
	case "null":
		*s = Seconds(math.NaN())
		return nil
	}
	f, err := strconv.ParseFloat(string(text), 64)
	if err != nil {
		return fmt.Errorf("a time in seconds must be a number, %q or null, not %s", "inf", text)
	}
	*s = Seconds(f)
	return nil
}

// Text shows a time for people.
func (s Seconds) Text() string {
	switch f := float64(s); {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsNaN(f):
		return "-"
	case f < 0.1:
		return fmt.Sprintf("%.1fms", 1000*f)
	default:
		return fmt.Sprintf("%.2fs", f)
	}
}

// Latency is how long pods, or gangs, took from the create call to the last bind. Those that were never bound count as
// infinite, so that a scheduler that gives up the hard ones does not look fast.
type Latency struct {
	Count int     `json:"count"`
	P50   Seconds `json:"p50"`
	P90   Seconds `json:"p90"`
	P95   Seconds `json:"p95"`
	P99   Seconds `json:"p99"`
	P999  Seconds `json:"p99.9"`
	Max   Seconds `json:"max"`
}

// LatencyOf sorts the seconds and takes the percentiles.
func LatencyOf(seconds []float64) Latency {
	sorted := slices.Sorted(slices.Values(seconds))
	at := func(q float64) Seconds { return Seconds(NearestRank(sorted, q)) }
	return Latency{Count: len(sorted), P50: at(0.5), P90: at(0.9), P95: at(0.95), P99: at(0.99), P999: at(0.999), Max: at(1)}
}

// Quantile says that a share of the pods took no longer than that.
type Quantile struct {
	Share   float64 `json:"share"`
	Seconds Seconds `json:"seconds"`
}

// spectrumShares get closer to 1 as a logarithm does, so that the slow end has as many as the middle.
var spectrumShares = []float64{0.01, 0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9998, 0.9999}

// SpectrumOf has as many shares as there are pods to distinguish them.
func SpectrumOf(seconds []float64) []Quantile {
	sorted := slices.Sorted(slices.Values(seconds))
	var out []Quantile
	for _, share := range spectrumShares {
		if (1-share)*float64(len(sorted)) >= 1-1e-9 {
			out = append(out, Quantile{share, Seconds(NearestRank(sorted, share))})
		}
	}
	if len(sorted) > 0 {
		out = append(out, Quantile{1, Seconds(NearestRank(sorted, 1))})
	}
	return out
}

// Moment is one second of a trial.
type Moment struct {
	// At is the seconds from the start of measuring to the end of this one.
	At int `json:"at"`
	// Asked and Bound are how many pods were in this second.
	Asked int `json:"asked"`
	Bound int `json:"bound"`
	// Slowest is the longest that a pod which was asked for in this second took; null when none was.
	Slowest Seconds `json:"slowest"`
	// RSS and CPU are the bytes and the share of one CPU of the scheduler; 0 when it was not looked at.
	RSS int64   `json:"rss"`
	CPU float64 `json:"cpu"`
}

// Trial is what one run of one scheduler through one workload gave. All of it is about the pods that the workload
// collects metrics of, from the moment it begins to.
type Trial struct {
	Workload  string `json:"workload"`
	Scheduler string `json:"scheduler"`
	Round     int    `json:"round"`
	// Failure is why the run did not finish; empty for one that did.
	Failure string `json:"failure,omitempty"`
	// Date is when it was over, RFC 3339; TookSeconds is all of it, with the start of the cluster.
	Date        string  `json:"date,omitempty"`
	TookSeconds float64 `json:"tookSeconds,omitempty"`

	// Pods were asked for, Bound were bound; the others count as infinite, unless they were deleted before.
	Pods  int `json:"pods"`
	Bound int `json:"bound"`
	// BindSeconds is from the first create until the last bind was seen, SettleSeconds until the last event could be
	// read.
	BindSeconds   Seconds `json:"bindSeconds"`
	SettleSeconds Seconds `json:"settleSeconds"`
	// PodsPerSecond is Bound / BindSeconds; for create-only it is the creates.
	PodsPerSecond float64  `json:"podsPerSecond"`
	Latency       Latency  `json:"latency"`
	Gangs         *Latency `json:"gangs,omitempty"` // from the first create of a gang until all of it is bound
	Timeline      []Moment `json:"timeline"`
	// Spectrum is the whole distribution of the latencies, in the order of the shares; empty when nothing was measured.
	Spectrum []Quantile `json:"spectrum,omitempty"`

	// Attempts are the scheduler's own count of what it tried; 0 if it does not publish one.
	Attempts int64 `json:"attempts"`
	Events   int64 `json:"events"`
	// CPU seconds from the start of measuring until settled.
	SchedulerCPU float64 `json:"schedulerCPUSeconds"`
	ServersCPU   float64 `json:"serversCPUSeconds"`
	BenchCPU     float64 `json:"benchCPUSeconds"`
	// PeakRSS is the high-water mark of the process, SteadyRSS what it has when all is settled; bytes.
	PeakRSS   int64 `json:"peakRSSBytes"`
	SteadyRSS int64 `json:"steadyRSSBytes"`
	// Idle is the share of the machine that did nothing, Others what was used by others than those that are measured.
	Idle   float64 `json:"idleShare"`
	Others float64 `json:"othersShare"`
	// Calls are the writes that the API server answered, those of the workload included.
	Calls Calls `json:"calls"`
	// Oversold must be empty.
	Oversold []string `json:"oversold,omitempty"`
	// Items are the throughput and the histograms as scheduler_perf reports them.
	Items []DataItem `json:"items"`
}

// Good reports whether the figures of a trial may be compared.
func (t *Trial) Good() bool { return t.Failure == "" && len(t.Oversold) == 0 }

// DataItem is a figure with its buckets, as perf-dash reads it (scheduler_perf, util.go).
type DataItem struct {
	Data   map[string]float64 `json:"data"` // Average, Perc50 and so on -> value
	Unit   string             `json:"unit"`
	Labels map[string]string  `json:"labels,omitempty"` // Name, Metric and what the metric is split by -> value
}

// find is the first item that a selector means; nil when there is none.
func FindItem(items []DataItem, name string, labels map[string]string) *DataItem {
	for i := range items {
		match := items[i].Labels["Metric"] == name
		for label, want := range labels { // order: all must hold
			match = match && items[i].Labels[label] == want
		}
		if match {
			return &items[i]
		}
	}
	return nil
}
