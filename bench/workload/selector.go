// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"slices"
	"strings"
)

// Throughput is the metric that is measured in any case: pods that got a node, each second.
const Throughput = "SchedulingThroughput"

// buckets are the figures of a metric that a threshold can be about.
var buckets = []string{"Average", "Perc50", "Perc90", "Perc95", "Perc99"}

// defaultMetrics are collected when a case names none (upstream: scheduler_perf.go, defaultMetricsCollectorConfig).
var defaultMetrics = []string{
	"scheduler_framework_extension_point_duration_seconds",
	"scheduler_scheduling_attempt_duration_seconds",
	"scheduler_pod_scheduling_duration_seconds",
	"scheduler_plugin_execution_duration_seconds",
	"scheduler_queueing_hint_execution_duration_seconds",
	"scheduler_event_handling_duration_seconds",
	"scheduler_podgroup_scheduling_attempt_duration_seconds",
	"scheduler_podgroup_scheduling_algorithm_duration_seconds",
}

// selector reads which figure a threshold is about; collected are the metrics of the case.
func (m *mapping) selector(name string, collected []Metric) *MetricSelector {
	f := m.get(name)
	if f == nil {
		return nil
	}
	s := m.in.mapping(f.value, name)
	s.need("name")
	s.need("dataBucket")
	out := &MetricSelector{
		Name:        s.text("name"),
		Labels:      s.textMap("labels"),
		Bucket:      s.text("dataBucket"),
		ExpectLower: s.flag("expectLower"),
	}
	if out.Bucket != "" && !slices.Contains(buckets, out.Bucket) {
		m.in.mistake(s.get("dataBucket").line, "%s: dataBucket is one of %s", name, strings.Join(buckets, ", "))
	}
	if out.Name != "" && !isCollected(out, collected) {
		m.in.mistake(s.get("name").line, "%s: %s with these labels is not collected", name, out.Name)
	}
	s.done()
	return out
}

func isCollected(s *MetricSelector, collected []Metric) bool {
	if s.Name == Throughput {
		return true
	}
	if len(collected) == 0 {
		return slices.Contains(defaultMetrics, s.Name)
	}
	for _, metric := range collected {
		if metric.Name == s.Name && hasLabels(metric, s.Labels) {
			return true
		}
	}
	return false
}

func hasLabels(metric Metric, labels map[string]string) bool {
	for name, value := range labels {
		if !slices.ContainsFunc(metric.Labels, func(l MetricLabel) bool {
			return l.Label == name && slices.Contains(l.Values, value)
		}) {
			return false
		}
	}
	return true
}

// metrics reads which histograms are collected.
func (m *mapping) metrics(name string) []Metric {
	f := m.get(name)
	if f == nil {
		return nil
	}
	config := m.in.mapping(f.value, name)
	config.need("metrics")
	var out []Metric
	if metrics := config.get("metrics"); metrics != nil {
		for _, entry := range m.in.mapping(metrics.value, name+": metrics").fields {
			metric := Metric{Name: entry.name}
			for _, node := range target(entry.value).Content {
				label := m.in.mapping(node, "metric "+entry.name)
				label.need("label")
				metric.Labels = append(metric.Labels, MetricLabel{Label: label.text("label"), Values: label.texts("values")})
				label.done()
			}
			out = append(out, metric)
		}
	}
	config.done()
	return out
}

// Enabled reports whether a filter accepts the labels. A filter is a comma-separated list of labels that must be
// present (optionally with a leading +) or, with a leading -, must be absent. An empty filter accepts everything.
func Enabled(filter string, labels ...string) bool {
	for _, want := range strings.Split(filter, ",") {
		want = strings.TrimSpace(want)
		name, unwanted := strings.CutPrefix(want, "-")
		name = strings.TrimPrefix(name, "+")
		if name != "" && slices.Contains(labels, name) == unwanted {
			return false
		}
	}
	return true
}
