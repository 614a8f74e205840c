// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	compbasemetrics "k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/legacyregistry"
)

// eventMetric is the metric by which tests of the queue see that an event was handled.
const eventMetric = "scheduler_event_handling_duration_seconds"

// handled shows eventMetric of the newest scheduler in the registry of the process, which upstream's metrics are in.
// It declares no metric, because upstream's of the same name, which counts nothing here, is in the registry too.
type handled struct {
	mu     sync.Mutex
	from   compbasemetrics.KubeRegistry
	before map[string]uint64 // event -> its samples when the metric was last reset
}

var shown = sync.OnceValue(func() *handled {
	h := &handled{before: map[string]uint64{}}
	legacyregistry.RawMustRegister(h)
	return h
})

// showEvents shows the events of a new scheduler's registry.
func showEvents(from compbasemetrics.KubeRegistry) {
	h := shown()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.from = from
	clear(h.before)
}

// counts returns the samples of each event.
func (h *handled) counts() map[string]*dto.Histogram {
	out := map[string]*dto.Histogram{}
	families, err := h.from.Gather()
	if err != nil {
		return out
	}
	for _, family := range families {
		if family.GetName() != eventMetric {
			continue
		}
		for _, m := range family.GetMetric() {
			out[m.GetLabel()[0].GetValue()] = m.GetHistogram()
		}
	}
	return out
}

// Reset starts from zero again, as legacyregistry.Reset does for each metric.
func (h *handled) Reset() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for event, m := range h.counts() { // order: each event sets its own
		h.before[event] = m.GetSampleCount()
	}
}

// Describe implements prometheus.Collector.
func (*handled) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (h *handled) Collect(out chan<- prometheus.Metric) {
	h.mu.Lock()
	defer h.mu.Unlock()
	desc := prometheus.NewDesc(eventMetric, "[ALPHA] Event handling latency in seconds.", []string{"event"}, nil)
	out <- prometheus.MustNewConstHistogram(desc, 0, 0, nil, "none") // a metric that is not there is an error for tests
	for event, m := range h.counts() {                               // order: the registry sorts them
		out <- prometheus.MustNewConstHistogram(desc, m.GetSampleCount()-h.before[event], 0, nil, event)
	}
}
