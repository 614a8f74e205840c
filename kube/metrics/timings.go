// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"sync/atomic"

	"github.com/blang/semver/v4"
	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/component-base/metrics"

	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/timing"
)

// timings are the metrics of a timing.Recorder, read when they are scraped: the recorder counts a phase in some
// nanoseconds, an observation of a Prometheus histogram would take longer than the rest of the recording.
type timings struct {
	from                atomic.Pointer[timing.Recorder]
	phase, lag, dropped *prometheus.Desc
}

var _ metrics.Registerable = (*timings)(nil)

func newTimings() *timings {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc(kumiki+"_"+name, "["+string(metrics.ALPHA)+"] "+help, labels, nil)
	}
	return &timings{
		phase: desc("phase_seconds", "Seconds that pods were in a phase between their first observation and their "+
			"observation as bound, by phase.", "phase"),
		lag: desc("watch_lag_seconds", "Seconds from the answer to a bind by this scheduler until its watch showed "+
			"the pod bound; 0 if the watch was faster."),
		dropped: desc("spans_lost_total", "Number of phases of pods that were overwritten in the bounded record that "+
			"/kumiki/v1/timing shows; they are counted in kumiki_phase_seconds."),
	}
}

// ShowTiming makes the metrics show what a recorder has.
func (m *Metrics) ShowTiming(r *timing.Recorder) { m.timing.from.Store(r) }

// Describe sends the descriptions.
func (t *timings) Describe(to chan<- *prometheus.Desc) {
	to <- t.phase
	to <- t.lag
	to <- t.dropped
}

// Collect sends the values; none without a recorder.
func (t *timings) Collect(to chan<- prometheus.Metric) {
	r := t.from.Load()
	if r == nil {
		return
	}
	phases, lag, lost := r.Histograms()
	for p := range phases {
		to <- constHistogram(t.phase, &phases[p], record.Phase(p).String())
	}
	to <- constHistogram(t.lag, &lag)
	to <- prometheus.MustNewConstMetric(t.dropped, prometheus.CounterValue, float64(lost))
}

func constHistogram(desc *prometheus.Desc, h *record.Histogram, labels ...string) prometheus.Metric {
	buckets := make(map[float64]uint64, len(h.Bounds)) // upper bound in seconds -> durations up to it
	upTo := uint64(0)
	for i, bound := range h.Bounds {
		upTo += h.Counts[i]
		buckets[seconds(bound)] = upTo
	}
	return prometheus.MustNewConstHistogram(desc, h.Count, seconds(h.Sum), buckets, labels...)
}

// Create reports whether the metrics are shown in a version: always.
func (t *timings) Create(*semver.Version) bool { return true }

// ClearState does nothing.
func (t *timings) ClearState() {}

// FQName returns the name of the first of the metrics.
func (t *timings) FQName() string { return kumiki + "_phase_seconds" }
