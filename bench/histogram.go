// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

// usualMetrics are the histograms of a scheduler that scheduler_perf collects for workloads that name none
// (scheduler_perf.go, defaultMetricsCollectorConfig), with the labels by which they are split; any
// value counts. scheduler_perf also lists scheduler_pod_scheduling_duration_seconds, which kube-scheduler replaced by
// scheduler_pod_scheduling_sli_duration_seconds.
var usualMetrics = []workload.Metric{
	{Name: "scheduler_framework_extension_point_duration_seconds", Labels: []workload.MetricLabel{{Label: "extension_point"}}},
	{Name: "scheduler_scheduling_attempt_duration_seconds", Labels: []workload.MetricLabel{{Label: "result"}}},
	{Name: "scheduler_pod_scheduling_sli_duration_seconds"},
	{Name: "scheduler_plugin_execution_duration_seconds", Labels: []workload.MetricLabel{{Label: "plugin"}, {Label: "extension_point"}}},
	{Name: "scheduler_queueing_hint_execution_duration_seconds", Labels: []workload.MetricLabel{{Label: "plugin"}, {Label: "event"}}},
	{Name: "scheduler_event_handling_duration_seconds", Labels: []workload.MetricLabel{{Label: "event"}}},
	{Name: "scheduler_podgroup_scheduling_attempt_duration_seconds", Labels: []workload.MetricLabel{{Label: "result"}}},
	{Name: "scheduler_podgroup_scheduling_algorithm_duration_seconds"},
}

// attemptsMetric counts the attempts of a scheduler.
const attemptsMetric = "scheduler_schedule_attempts_total"

// series is one line of a histogram or counter: its labels, without le, as written there.
type series struct {
	labels  map[string]string   // label -> value
	buckets map[float64]float64 // upper bound -> how many lie at or below it
	sum     float64
	count   float64 // that of a counter too
}

// scraped has the metrics of a scheduler: metric -> labels as text -> series.
type scraped map[string]map[string]*series

// parseMetrics reads the series of the wanted metrics from the text of /metrics.
func parseMetrics(text string, wanted []workload.Metric) (scraped, error) {
	out := scraped{attemptsMetric: {}}
	for _, m := range wanted {
		out[m.Name] = map[string]*series{}
	}
	for row := range strings.Lines(text) {
		if strings.HasPrefix(row, "#") {
			continue
		}
		end := strings.IndexAny(row, "{ ")
		if end < 0 {
			continue
		}
		name, what := metricOf(row[:end], out)
		if name == "" {
			continue
		}
		at := strings.LastIndexByte(strings.TrimSpace(row), ' ')
		value, err := strconv.ParseFloat(strings.TrimSpace(row)[at+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("metric %q: %w", row, err)
		}
		labels := testbed.MetricLabels(row[end:at])
		le := labels["le"]
		delete(labels, "le")
		key := fmt.Sprint(labels) // fmt sorts the keys
		s := out[name][key]
		if s == nil {
			s = &series{labels: labels, buckets: map[float64]float64{}}
			out[name][key] = s
		}
		switch what {
		case "_bucket":
			bound, err := strconv.ParseFloat(le, 64)
			if err != nil {
				return nil, fmt.Errorf("bucket of %q: %w", row, err)
			}
			s.buckets[bound] = value
		case "_sum":
			s.sum = value
		default:
			s.count = value
		}
	}
	return out, nil
}

// metricOf returns the wanted metric to which a name of the text belongs, and which part of the metric the name is.
func metricOf(name string, wanted scraped) (metric, part string) {
	if _, ok := wanted[name]; ok {
		return name, ""
	}
	for _, part := range []string{"_bucket", "_sum", "_count"} {
		if base, cut := strings.CutSuffix(name, part); cut {
			if _, ok := wanted[base]; ok {
				return base, part
			}
		}
	}
	return "", ""
}

// add adds the difference between two scrapes.
func (s scraped) add(before, after scraped) {
	for metric, all := range after { // order: sums
		if s[metric] == nil {
			s[metric] = map[string]*series{}
		}
		for key, now := range all { // order: sums
			was := before[metric][key]
			if was == nil {
				was = &series{}
			}
			into := s[metric][key]
			if into == nil {
				into = &series{labels: now.labels, buckets: map[float64]float64{}}
				s[metric][key] = into
			}
			into.sum += now.sum - was.sum
			into.count += now.count - was.count
			for bound, n := range now.buckets { // order: sums
				into.buckets[bound] += n - was.buckets[bound]
			}
		}
	}
}

// attempts returns the number of attempts of the scheduler.
func (s scraped) attempts() int64 {
	n := 0.0
	for _, one := range s[attemptsMetric] { // order: a sum
		n += one.count
	}
	return int64(n)
}

// items returns the histograms as scheduler_perf reports them, in milliseconds: one for each combination of the
// values of a metric's labels that has samples. A counter, which a workload can name too, has no buckets and no item.
func (s scraped) items(metrics []workload.Metric) []report.DataItem {
	var out []report.DataItem
	for _, m := range metrics {
		groups := map[string]*series{} // values of the labels -> sum of the series that have them
		for _, key := range slices.Sorted(maps.Keys(s[m.Name])) {
			one := s[m.Name][key]
			values, wanted := map[string]string{}, true // label -> value
			for _, l := range m.Labels {
				v := one.labels[l.Label]
				wanted = wanted && (len(l.Values) == 0 || slices.Contains(l.Values, v))
				values[l.Label] = v
			}
			if !wanted {
				continue
			}
			g := groups[fmt.Sprint(values)]
			if g == nil {
				g = &series{labels: values, buckets: map[float64]float64{}}
				groups[fmt.Sprint(values)] = g
			}
			g.sum += one.sum
			g.count += one.count
			for bound, n := range one.buckets { // order: sums
				g.buckets[bound] += n
			}
		}
		for _, key := range slices.Sorted(maps.Keys(groups)) {
			if g := groups[key]; g.count > 0 && len(g.buckets) > 0 {
				g.labels["Metric"] = m.Name
				out = append(out, report.DataItem{Unit: "ms", Labels: g.labels, Data: map[string]float64{
					"Average": 1000 * g.sum / g.count, "Perc50": 1000 * g.quantile(0.5), "Perc90": 1000 * g.quantile(0.9),
					"Perc95": 1000 * g.quantile(0.95), "Perc99": 1000 * g.quantile(0.99)}})
			}
		}
	}
	return out
}

// quantile is Prometheus's histogram_quantile: it assumes that the samples of a bucket are distributed evenly, and
// that those above the highest bound are equal to it.
func (s *series) quantile(q float64) float64 {
	bounds := slices.Sorted(maps.Keys(s.buckets))
	rank, below, from := q*s.count, 0.0, 0.0
	for _, bound := range bounds {
		n := s.buckets[bound]
		if n >= rank && n > below {
			if math.IsInf(bound, 1) {
				return from
			}
			return from + (bound-from)*(rank-below)/(n-below)
		}
		if !math.IsInf(bound, 1) {
			from = bound
		}
		below = n
	}
	return from
}

// scrape reads the metrics of a scheduler. A scheduler that serves none has none.
func scrape(ctx context.Context, s *testbed.Scheduler, wanted []workload.Metric) (scraped, error) {
	if s == nil || s.Port == 0 {
		return scraped{}, nil
	}
	var text bytes.Buffer
	if err := s.Get(ctx, "/metrics", &text); err != nil {
		return nil, err
	}
	return parseMetrics(text.String(), wanted)
}
