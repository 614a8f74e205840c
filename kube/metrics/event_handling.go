// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"slices"
	"time"

	"k8s.io/component-base/metrics"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// The changes of a pod, as upstream labels them.
var (
	pendingSet   = plugin.Event{Resource: plugin.UnscheduledPod, Action: plugin.Add}
	pendingReset = plugin.Event{Resource: plugin.UnscheduledPod, Action: plugin.Update}
	pendingGone  = plugin.Event{Resource: plugin.UnscheduledPod, Action: plugin.Delete}
	boundSet     = plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Add}
	boundReset   = plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Update}
)

// eventHandling measures how long the engine takes for what a watch brought.
type eventHandling struct {
	m         *Metrics
	durations map[plugin.Event]metrics.ObserverMetric // label -> its durations, looked up once
}

func newEventHandling(m *Metrics) eventHandling {
	return eventHandling{m, map[plugin.Event]metrics.ObserverMetric{}}
}

// observe counts one event under all labels that the engine made of it. waited and waits report whether the pod of the
// event was in the queue before the step, and is in it now.
func (h *eventHandling) observe(ev engine.Event, took time.Duration, waited, waits bool, labels []plugin.Event) {
	switch ev := ev.(type) {
	case engine.NodeSet, engine.NodeGone, engine.ObjectSet, engine.ObjectGone:
	case engine.PodSet:
		switch {
		case ev.Pod.NodeName != "" && !slices.Contains(labels, boundSet):
			h.observeAs(boundReset, took)
		case ev.Pod.NodeName != "":
		case waited:
			h.observeAs(pendingReset, took)
		case waits:
			h.observeAs(pendingSet, took)
		}
	case engine.PodGone:
		if waited {
			h.observeAs(pendingGone, took)
		}
	default:
		return
	}
	for _, label := range labels {
		if label.Resource == plugin.TargetPod {
			label.Resource = plugin.UnscheduledPod // upstream's handlers look at it from outside
		}
		if label != pendingReset {
			h.observeAs(label, took)
		}
	}
}

func (h *eventHandling) observeAs(label plugin.Event, took time.Duration) {
	to := h.durations[label]
	if to == nil {
		to = h.m.eventHandling.WithLabelValues(label.String())
		h.durations[label] = to
	}
	to.Observe(took.Seconds())
}

// forget drops the metrics that were looked up, so that those that were reset by DELETE /metrics appear again.
func (h *eventHandling) forget() { clear(h.durations) }
