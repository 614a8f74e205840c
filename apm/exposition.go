// SPDX-License-Identifier: Apache-2.0

package apm

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"time"
)

// maxMetricLine bounds one line of /metrics.
const maxMetricLine = 1 << 20

// series is one line of /metrics.
type series struct {
	labels string // between the braces
	value  float64
}

// scrape is one answer of /metrics: name -> its series.
type scrape map[string][]series

// wantedMetrics are the metrics that the analysis uses.
var wantedMetrics = map[string]bool{
	"process_cpu_seconds_total":                                true,
	"process_start_time_seconds":                               true,
	"go_info":                                                  true,
	"scheduler_schedule_attempts_total":                        true,
	"scheduler_scheduling_algorithm_duration_seconds_sum":      true,
	"scheduler_scheduling_algorithm_duration_seconds_count":    true,
	"scheduler_framework_extension_point_duration_seconds_sum": true,
}

// readScrape reads the metrics that the analysis uses from the text format of Prometheus.
func readScrape(r io.Reader) (scrape, error) {
	s := scrape{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxMetricLine)
	for lines.Scan() {
		line := lines.Text()
		name, rest, labels := line, "", ""
		if i := strings.IndexAny(line, "{ "); i >= 0 {
			name, rest = line[:i], line[i:]
		}
		if !wantedMetrics[name] {
			continue
		}
		if strings.HasPrefix(rest, "{") {
			end := strings.LastIndexByte(rest, '}')
			if end < 0 {
				return nil, fmt.Errorf("metric %s: the labels do not end", name)
			}
			labels, rest = rest[1:end], rest[end+1:]
		}
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			return nil, fmt.Errorf("metric %s has no value", name)
		}
		value, err := strconv.ParseFloat(fields[0], 64)
		if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
			return nil, fmt.Errorf("metric %s has the value %q", name, fields[0])
		}
		s[name] = append(s[name], series{labels, value})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	return s, nil
}

// value returns the sum of the series of a metric, and false if there is none.
func (s scrape) value(name string) (sum float64, ok bool) {
	for _, one := range s[name] {
		sum, ok = sum+one.value, true
	}
	return sum, ok
}

// label returns the value of a label of a series, or the empty string.
func (s series) label(name string) string {
	for rest := s.labels; rest != ""; {
		key, quoted, ok := strings.Cut(rest, "=")
		if !ok {
			return ""
		}
		text, err := strconv.QuotedPrefix(quoted)
		if err != nil {
			return ""
		}
		if strings.TrimSpace(key) == name {
			value, _ := strconv.Unquote(text)
			return value
		}
		rest = strings.TrimPrefix(quoted[len(text):], ",")
	}
	return ""
}

// seconds converts a value in seconds. Durations that do not fit are an error of the metrics.
func seconds(v float64) time.Duration {
	return time.Duration(math.Round(min(max(v, -math.MaxInt32), math.MaxInt32) * 1e9))
}

// twoScrapes are the metrics before and after the recording.
type twoScrapes struct{ before, after scrape }

// restarted reports whether the process is not the same in both scrapes.
func (t twoScrapes) restarted() bool {
	a, _ := t.before.value("process_start_time_seconds")
	b, _ := t.after.value("process_start_time_seconds")
	return a != b
}

// delta returns by how much a counter grew, and false if one of the scrapes does not have it or it fell. A counter
// that only the second scrape has grew from 0 if orZero is set.
func (t twoScrapes) delta(name string, orZero bool) (float64, bool) {
	a, hadA := t.before.value(name)
	b, hadB := t.after.value(name)
	if grew := b - a; hadB && (hadA || orZero) && grew >= 0 && !math.IsInf(grew, 1) {
		return grew, true
	}
	return 0, false // also if it is no number
}

// attempts returns the growth of schedule_attempts_total by result, in the order in which the scheduler lists them. It
// returns false if one fell, or grew by more than can be counted.
func (t twoScrapes) attempts() ([]Attempt, bool) {
	const name = "scheduler_schedule_attempts_total"
	var list []Attempt
	var grew []float64     // of each in list
	at := map[string]int{} // result -> index in list
	add := func(all []series, sign float64) {
		for _, s := range all {
			result := s.label("result")
			if _, known := at[result]; !known {
				at[result] = len(list)
				list, grew = append(list, Attempt{Result: result}), append(grew, 0)
			}
			grew[at[result]] += sign * s.value
		}
	}
	add(t.after[name], 1)
	add(t.before[name], -1)
	for i, n := range grew {
		if !(n >= 0 && n < 1<<53) { // also if it is no number
			return nil, false
		}
		list[i].Count = int64(n)
	}
	return list, true
}
