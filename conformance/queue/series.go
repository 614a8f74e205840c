// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
)

// Series are the metrics that count the pods of a queue: name and labels -> value. A series of value 0 is not there.
type Series map[string]float64

// The metrics that are compared: those that change with the steps of a queue. Both schedulers have these names.
const (
	UnschedulablePods = "scheduler_unschedulable_pods"
	PendingPods       = "scheduler_pending_pods"
	QueuedEntities    = "scheduler_queued_entities"
	IncomingPods      = "scheduler_queue_incoming_pods_total"
	IncomingEntities  = "scheduler_queue_incoming_entities_total"
)

// Add adds the values of a metric.
func (s Series) Add(name string, from prometheus.Collector) {
	ch := make(chan prometheus.Metric, 1<<14) // more than any metric has series: Collect would block
	from.Collect(ch)
	close(ch)
	for m := range ch {
		s.add(name, m)
	}
}

// add adds a counter or a gauge.
func (s Series) add(name string, m prometheus.Metric) {
	var value dto.Metric
	if err := m.Write(&value); err != nil {
		panic(fmt.Sprintf("the value of %s: %v", name, err))
	}
	labels := make([]string, 0, len(value.Label))
	for _, l := range value.Label {
		labels = append(labels, l.GetName()+"="+l.GetValue())
	}
	slices.Sort(labels)
	s.set(name+"{"+strings.Join(labels, ",")+"}", value.GetCounter().GetValue()+value.GetGauge().GetValue())
}

func (s Series) set(key string, value float64) {
	if delete(s, key); value != 0 {
		s[key] = value
	}
}

// since returns how the values differ from earlier ones.
func (s Series) since(before Series) Series {
	out := maps.Clone(s)
	for key, value := range before { // order: each stands apart
		out.set(key, s[key]-value)
	}
	return out
}

// listed reports whether a series may differ (conformance/metrics lists it). Of entities that an event makes active,
// upstream counts those that would have waited for their backoff, not those that a plugin of Pending activates. If
// another scheduler binds a waiting pod, upstream lets the new assigned pod wake the waiting one before it removes it.
func listed(key string) bool {
	return strings.HasPrefix(key, IncomingEntities) && strings.Contains(key, "queue=active") ||
		strings.Contains(key, "event=AssignedPodAdd,")
}

// differ returns the first series that differs and may not, or "".
func (s Series) differ(other Series) string {
	all := maps.Clone(s)
	maps.Copy(all, other)
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if s[key] != other[key] && !listed(key) {
			return fmt.Sprintf("%s: upstream %v, kumiki %v", key, s[key], other[key])
		}
	}
	return ""
}

// upstreamSeries reads upstream's metrics, which are global to the process: they count for all queues since its start.
func upstreamSeries() Series {
	s := Series{}
	s.Add(IncomingPods, metrics.SchedulerQueueIncomingPods)
	s.Add(IncomingEntities, metrics.SchedulerQueueIncomingEntities)
	s.Add(QueuedEntities, metrics.QueuedEntities)
	for _, pods := range []any{
		metrics.ActivePods(), metrics.BackoffPods(), metrics.UnschedulablePods(), metrics.GatedPods(),
	} {
		s.add(PendingPods, pods.(prometheus.Metric))
	}
	gates := []string{HoldGate, Outside, "SchedulingGates", "DefaultPreemption"}
	for _, plugin := range slices.Concat(rejectors, gates) {
		s.add(UnschedulablePods, metrics.UnschedulableReason(plugin, oracle.SchedulerName).(prometheus.Metric))
	}
	return s
}
