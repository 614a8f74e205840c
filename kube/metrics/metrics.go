// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"time"

	"k8s.io/component-base/metrics"

	"github.com/kumiki-scheduler/kumiki/record"
)

// Metrics are what this package counts. The scheduler_ ones are upstream's to the letter (pkg/scheduler/metrics);
// the kumiki_ ones are ours. conformance/metrics compares the former and lists what is counted differently.
type Metrics struct {
	all    []metrics.Registerable
	timing timings

	attempts        *metrics.CounterVec
	attemptDuration *metrics.HistogramVec
	algorithm       *metrics.Histogram
	eventHandling   *metrics.HistogramVec
	pending         *metrics.GaugeVec
	sli             *metrics.HistogramVec
	podAttempts     *metrics.Histogram
	afterFlush      *metrics.Counter
	extensionPoint  *metrics.HistogramVec
	pluginDuration  *metrics.HistogramVec
	evaluations     *metrics.CounterVec
	hints           *metrics.HistogramVec
	incoming        *metrics.CounterVec
	Goroutines      *metrics.GaugeVec
	cacheSize       *metrics.GaugeVec
	unschedulable   *metrics.GaugeVec
	inflightEvents  *metrics.GaugeVec
	ClaimCreates    *metrics.CounterVec
	victims         *metrics.Histogram
	preemptions     *metrics.Counter
	EvictionTime    *metrics.HistogramVec
	Evictions       *metrics.CounterVec

	step             *metrics.HistogramVec
	loopSeconds      *metrics.CounterVec
	setAside         *metrics.Counter
	setAsideNow      *metrics.Gauge
	troubles         *metrics.Counter
	UnknownBinds     *metrics.CounterVec
	PluginFailures   *metrics.CounterVec
	EventsDropped    *metrics.Counter
	Heartbeat        *metrics.Gauge
	firstDecision    *metrics.Gauge
	ConditionPatches *metrics.CounterVec
	evictionsWasted  *metrics.Counter
	evictedForGangs  *metrics.Counter
	victimsUnproved  *metrics.Counter
	victimsStuck     *metrics.Counter
	preemptionPauses *metrics.Counter
	GangStatuses     *metrics.CounterVec
	Ungrouped        *metrics.Counter
	PodsLent         *metrics.Counter
	Proposals        *metrics.CounterVec
	gangsPart        *metrics.Histogram
	gangsPartNow     *metrics.Gauge
	gangsPartLongest *metrics.Gauge
	gangsWaiting     *metrics.GaugeVec
	gangHold         *metrics.HistogramVec
	backfilled       *metrics.CounterVec
	gangHeldPods     *metrics.Gauge
	oversold         *metrics.Gauge
	oversells        *metrics.Counter
	queuedEntities   *metrics.GaugeVec
	incomingEntities *metrics.CounterVec
	staleness        *metrics.GaugeVec
	WatchGaps        *metrics.CounterVec
	rechecked        *metrics.Counter
	paths            *metrics.CounterVec
	conflicts        *metrics.CounterVec
	paused           *metrics.Gauge
	limit            *metrics.GaugeVec
	RecordingsEnded  *metrics.CounterVec
	Incidents        *metrics.CounterVec
	Takeover         *metrics.Gauge
	work             *metrics.CounterVec
	uselessWakeUps   *metrics.CounterVec
	engineSteps      *metrics.CounterVec
	cpu              *metrics.CounterVec
}

// The first parts of names.
const (
	subsystem       = "scheduler"
	volumeSubsystem = "scheduler_volume"
	deviceSubsystem = "dynamic_resource_allocation"
	kumiki          = "kumiki"
)

// what is a metric's name, for what, and how much one may rely on it.
type what struct {
	subsystem, name, help string
	level                 metrics.StabilityLevel
	deprecated            string // the release since when it is deprecated; empty if it is not
}

// buckets are n bounds, each factor times the one before.
type buckets struct {
	first, factor float64
	n             int
}

func (m *Metrics) counter(w what) *metrics.Counter {
	c := metrics.NewCounter(&metrics.CounterOpts{Subsystem: w.subsystem, Name: w.name, Help: w.help,
		StabilityLevel: w.level})
	m.all = append(m.all, c)
	return c
}

func (m *Metrics) counters(w what, labels ...string) *metrics.CounterVec {
	c := metrics.NewCounterVec(&metrics.CounterOpts{Subsystem: w.subsystem, Name: w.name, Help: w.help,
		StabilityLevel: w.level}, labels)
	m.all = append(m.all, c)
	return c
}

func (m *Metrics) gauge(w what) *metrics.Gauge {
	g := metrics.NewGauge(&metrics.GaugeOpts{Subsystem: w.subsystem, Name: w.name, Help: w.help,
		StabilityLevel: w.level})
	m.all = append(m.all, g)
	return g
}

func (m *Metrics) gauges(w what, labels ...string) *metrics.GaugeVec {
	g := metrics.NewGaugeVec(&metrics.GaugeOpts{Subsystem: w.subsystem, Name: w.name, Help: w.help,
		StabilityLevel: w.level}, labels)
	m.all = append(m.all, g)
	return g
}

func (w what) histogram(b buckets) *metrics.HistogramOpts {
	return &metrics.HistogramOpts{Subsystem: w.subsystem, Name: w.name, Help: w.help, StabilityLevel: w.level,
		DeprecatedVersion: w.deprecated, Buckets: metrics.ExponentialBuckets(b.first, b.factor, b.n)}
}

func (m *Metrics) histogram(w what, b buckets) *metrics.Histogram {
	h := metrics.NewHistogram(w.histogram(b))
	m.all = append(m.all, h)
	return h
}

func (m *Metrics) histograms(w what, b buckets, labels ...string) *metrics.HistogramVec {
	h := metrics.NewHistogramVec(w.histogram(b), labels)
	m.all = append(m.all, h)
	return h
}

// The status labels of upstream's framework (kube-scheduler/framework, Code).
const (
	statusSuccess      = "Success"
	statusError        = "Error"
	statusRejected     = "Unschedulable"
	statusUnresolvable = "UnschedulableAndUnresolvable"
)

// Passed counts an extension point of a pod, which took this long and ended with this error.
func (m *Metrics) Passed(point, profile string, err error, took time.Duration) {
	m.extensionPoint.WithLabelValues(point, statusLabel(err), profile).Observe(took.Seconds())
}

func statusLabel(err error) string {
	if err != nil {
		return statusError
	}
	return statusSuccess
}

// SetPaused reports whether this process leads and is paused.
func (m *Metrics) SetPaused(paused bool) {
	if paused {
		m.paused.Set(1)
	} else {
		m.paused.Set(0)
	}
}

// The names of limits, which are those of the causes of package bottleneck.
const (
	InFlightLimit     = "in-flight-limit"
	DecidedAheadLimit = "decided-ahead-limit"
	SessionPeriod     = "session-period"
)

// SetLimit sets the value of a limit.
func (m *Metrics) SetLimit(name string, value float64) { m.limit.WithLabelValues(name).Set(value) }

func seconds(t record.Time) float64 { return float64(t) / float64(record.Second) }
