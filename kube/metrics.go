// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"sync"

	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// Metrics are what this package counts. Names, labels and buckets of the scheduler_ ones are upstream's
// (pkg/scheduler/metrics/metrics.go); the kumiki_ ones are ours.
type Metrics struct {
	attempts         *metrics.CounterVec
	attemptDuration  *metrics.HistogramVec
	algorithm        *metrics.Histogram
	pending          *metrics.GaugeVec
	incoming         *metrics.CounterVec
	sli              *metrics.HistogramVec
	podAttempts      *metrics.Histogram
	extensionPoint   *metrics.HistogramVec
	inflightEvents   *metrics.GaugeVec
	cacheSize        *metrics.GaugeVec
	goroutines       *metrics.GaugeVec
	unschedulable    *metrics.GaugeVec
	step             *metrics.HistogramVec
	pluginDuration   *metrics.HistogramVec
	setAside         *metrics.Counter
	troubles         *metrics.Counter
	unknownBinds     *metrics.CounterVec
	eventsDropped    *metrics.Counter
	heartbeat        *metrics.Gauge
	firstDecision    *metrics.Gauge
	conditionPatches *metrics.CounterVec
}

// Registry is what metrics are registered with.
type Registry interface {
	Register(metrics.Registerable) error
}

// NewMetrics makes metrics and registers them. A name that is taken panics: it is a mistake of the program.
func NewMetrics(reg Registry) *Metrics {
	m := &Metrics{}
	m.upstream()
	m.own()
	for _, c := range []metrics.Registerable{
		m.attempts, m.attemptDuration, m.algorithm, m.pending, m.incoming, m.sli, m.podAttempts, m.extensionPoint,
		m.inflightEvents, m.cacheSize, m.goroutines, m.unschedulable, m.step, m.pluginDuration, m.setAside, m.troubles,
		m.unknownBinds, m.eventsDropped, m.heartbeat, m.firstDecision, m.conditionPatches,
	} {
		if err := reg.Register(c); err != nil {
			panic(err)
		}
	}
	return m
}

// ProcessMetrics are the metrics that /metrics of this process serves, made once.
var ProcessMetrics = sync.OnceValue(func() *Metrics { return NewMetrics(processRegistry{}) })

type processRegistry struct{}

// Register adds to the registry behind /metrics.
func (processRegistry) Register(c metrics.Registerable) error { return legacyregistry.Register(c) }

const subsystem = "scheduler"

func counter(sub, name, help string, level metrics.StabilityLevel) *metrics.CounterOpts {
	return &metrics.CounterOpts{Subsystem: sub, Name: name, Help: help, StabilityLevel: level}
}

func gauge(sub, name, help string, level metrics.StabilityLevel) *metrics.GaugeOpts {
	return &metrics.GaugeOpts{Subsystem: sub, Name: name, Help: help, StabilityLevel: level}
}

func histogram(sub, name, help string, level metrics.StabilityLevel, first, factor float64, n int) *metrics.HistogramOpts {
	return &metrics.HistogramOpts{
		Subsystem: sub, Name: name, Help: help, StabilityLevel: level, Buckets: metrics.ExponentialBuckets(first, factor, n),
	}
}

// upstream makes the metrics that dashboards know.
func (m *Metrics) upstream() {
	m.attempts = metrics.NewCounterVec(counter(subsystem, "schedule_attempts_total",
		"Attempts to schedule pods, by result: scheduled, unschedulable, or error for a problem that is not the pod's.", metrics.STABLE),
		[]string{"result", "profile"})
	m.attemptDuration = metrics.NewHistogramVec(histogram(subsystem, "scheduling_attempt_duration_seconds",
		"Duration of an attempt in seconds, decision and binding.", metrics.STABLE, 0.001, 2, 15), []string{"result", "profile"})
	m.algorithm = metrics.NewHistogram(histogram(subsystem, "scheduling_algorithm_duration_seconds",
		"Duration of a decision in seconds.", metrics.ALPHA, 0.001, 2, 15))
	m.pending = metrics.NewGaugeVec(gauge(subsystem, "pending_pods",
		"Pods that wait, by queue: active, backoff, unschedulable, gated.", metrics.STABLE), []string{"queue"})
	m.incoming = metrics.NewCounterVec(counter(subsystem, "queue_incoming_pods_total",
		"Pods that entered a queue, by queue and by the event that put them there.", metrics.STABLE), []string{"queue", "event"})
	m.sli = metrics.NewHistogramVec(histogram(subsystem, "pod_scheduling_sli_duration_seconds",
		"Seconds from the first attempt at a pod until it is bound, by the number of attempts.", metrics.BETA, 0.01, 2, 20),
		[]string{"attempts"})
	m.podAttempts = metrics.NewHistogram(histogram(subsystem, "pod_scheduling_attempts",
		"Attempts that a bound pod took.", metrics.STABLE, 1, 2, 5))
	m.extensionPoint = metrics.NewHistogramVec(histogram(subsystem, "framework_extension_point_duration_seconds",
		"Seconds at an extension point. Filter covers filters and scores, which are one pass here; it is measured in one of ten decisions.",
		metrics.STABLE, 0.0001, 2, 12), []string{"extension_point", "status", "profile"})
	m.inflightEvents = metrics.NewGaugeVec(gauge(subsystem, "inflight_events",
		"Events kept for pods that are being decided on, all under the label all.", metrics.ALPHA), []string{"event"})
	m.cacheSize = metrics.NewGaugeVec(gauge(subsystem, "cache_size",
		"Nodes, bound pods and assumed pods that the scheduler knows.", metrics.ALPHA), []string{"type"})
	m.goroutines = metrics.NewGaugeVec(gauge(subsystem, "goroutines",
		"Goroutines at work, by operation.", metrics.BETA), []string{"operation"})
	m.unschedulable = metrics.NewGaugeVec(gauge(subsystem, "unschedulable_pods",
		"Pods that wait, by the plugins that rejected them; a pod counts once for each.", metrics.BETA), []string{"plugin", "profile"})
}

// own makes the metrics that only kumiki has.
func (m *Metrics) own() {
	const kumiki = "kumiki"
	m.step = metrics.NewHistogramVec(histogram(kumiki, "step_duration_seconds",
		"Seconds in a step of the scheduling cycle, measured in one of ten cycles.", metrics.ALPHA, 0.000001, 4, 12), []string{"step"})
	m.pluginDuration = metrics.NewHistogramVec(histogram(kumiki, "plugin_duration_seconds",
		"Seconds in the preparing part of a plugin, measured in one of ten cycles.", metrics.ALPHA, 0.000001, 4, 12), []string{"plugin"})
	m.setAside = metrics.NewCounter(counter(kumiki, "pods_set_aside_total",
		"Pods set aside until they change, because handling them panicked.", metrics.ALPHA))
	m.troubles = metrics.NewCounter(counter(kumiki, "troubles_total",
		"Things that should not have happened and were contained.", metrics.ALPHA))
	m.unknownBinds = metrics.NewCounterVec(counter(kumiki, "bind_unknown_outcomes_total",
		"Binds whose answer left the outcome open, by what the API server had when asked again.", metrics.ALPHA), []string{"outcome"})
	m.eventsDropped = metrics.NewCounter(counter(kumiki, "events_dropped_total",
		"Events about pods that were dropped, the oldest first, because the API server did not take them fast enough.", metrics.ALPHA))
	m.heartbeat = metrics.NewGauge(gauge(kumiki, "loop_heartbeat_seconds",
		"Unix time of the scheduling loop's last turn, which comes at least once a second.", metrics.ALPHA))
	m.firstDecision = metrics.NewGauge(gauge(kumiki, "time_to_first_decision_seconds",
		"Seconds from the start of the scheduler to its first decision.", metrics.ALPHA))
	m.conditionPatches = metrics.NewCounterVec(counter(kumiki, "condition_patches_total",
		"Patches of the PodScheduled condition, by result: written, equal (not sent), moot (the pod is bound or gone), refused.", metrics.ALPHA),
		[]string{"result"})
}
