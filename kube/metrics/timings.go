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
	from atomic.Pointer[timing.Recorder]
}

// scraped is a metric of timings.
type scraped struct {
	of      *timings
	what    what
	kind    string // counter, histogram
	desc    *prometheus.Desc
	collect func(*timing.Recorder, chan<- prometheus.Metric, *prometheus.Desc)
}

var _ metrics.Registerable = (*scraped)(nil)

func (t *timings) metric(kind string, w what, labels []string,
	collect func(*timing.Recorder, chan<- prometheus.Metric, *prometheus.Desc)) *scraped {
	s := &scraped{of: t, what: w, kind: kind, collect: collect}
	s.desc = prometheus.NewDesc(s.FQName(), "["+string(w.level)+"] "+w.help, labels, nil)
	return s
}

// ShowTiming makes the metrics show what a recorder has.
func (m *Metrics) ShowTiming(r *timing.Recorder) { m.timing.from.Store(r) }

func (m *Metrics) timings(a func(name, help string) what) {
	t := &m.timing
	m.all = append(m.all,
		t.metric("histogram", a("phase_seconds",
			"Seconds that pods were in a phase between their first observation and their observation as bound, by "+
				"phase."), []string{"phase"}, collectPhases),
		t.metric("histogram", a("watch_lag_seconds",
			"Seconds from the answer to a bind by this scheduler until its watch showed the pod bound; 0 if the watch "+
				"was faster."), nil, collectLag),
		t.metric("counter", a("spans_lost_total",
			"Number of phases of pods that were overwritten in the bounded record behind /kumiki/v1/timing. They are "+
				"counted in kumiki_phase_seconds."), nil, collectLost))
}

func collectPhases(r *timing.Recorder, to chan<- prometheus.Metric, desc *prometheus.Desc) {
	phases, _, _ := r.Histograms()
	for p := range phases {
		to <- constHistogram(desc, &phases[p], record.Phase(p).String())
	}
}

func collectLag(r *timing.Recorder, to chan<- prometheus.Metric, desc *prometheus.Desc) {
	_, lag, _ := r.Histograms()
	to <- constHistogram(desc, &lag)
}

func collectLost(r *timing.Recorder, to chan<- prometheus.Metric, desc *prometheus.Desc) {
	_, _, lost := r.Histograms()
	to <- prometheus.MustNewConstMetric(desc, prometheus.CounterValue, float64(lost))
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

// Describe sends the description.
func (s *scraped) Describe(to chan<- *prometheus.Desc) { to <- s.desc }

// Collect sends the values; none without a recorder.
func (s *scraped) Collect(to chan<- prometheus.Metric) {
	if r := s.of.from.Load(); r != nil {
		s.collect(r, to, s.desc)
	}
}

// Create reports whether the metric is shown in a version: always.
func (s *scraped) Create(*semver.Version) bool { return true }

// ClearState does nothing.
func (s *scraped) ClearState() {}

// FQName returns the name of the metric.
func (s *scraped) FQName() string { return s.what.subsystem + "_" + s.what.name }

// Kind returns the type of the metric.
func (s *scraped) Kind() string { return s.kind }
