// SPDX-License-Identifier: Apache-2.0

package samples

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// Document is the content of the part.
type Document struct {
	Samples []Sample `json:"samples"`
	// Before and After are what the API server counted; nil without access, for the reason in NoAPI.
	Before Values `json:"apiBefore,omitempty"`
	After  Values `json:"apiAfter,omitempty"`
	NoAPI  string `json:"noApi,omitempty"`
	// NoPods is why samples have no Pods.
	NoPods string `json:"noPods,omitempty"`
}

// Values are series of /metrics: name and labels as in its text -> value.
type Values map[string]float64

// Sample is one moment. Times are in nanoseconds.
type Sample struct {
	At     int64  `json:"at"` // Unix time
	Values Values `json:"values"`
	Pods   *Pods  `json:"pods,omitempty"`
	// Probes are the latencies of empty requests to the API server since the sample before.
	Probes []int64 `json:"probesNs,omitempty"`
}

// Pods is what a watch of all pods without a node showed until a moment.
type Pods struct {
	// Unbound is their number, Nominated the number of those with a nominated node.
	Unbound   int `json:"unbound"`
	Nominated int `json:"nominated"`
	// Created and Left count pods since the start of the recording: those that came, and those that were bound or
	// deleted.
	Created int `json:"created"`
	Left    int `json:"left"`
	// Area is the sum over all pods of the time without a node since the start of the recording.
	Area int64 `json:"areaNs"`
}

// The limits of a reader.
const (
	maxBytes   = 64 << 20
	maxSamples = 20_000
	maxValues  = 4_000
	maxProbes  = 10_000
	maxCount   = 10_000_000
)

// Read reads and checks a part.
func Read(r io.Reader) (*Document, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading samples: %w", err)
	}
	if len(text) > maxBytes {
		return nil, fmt.Errorf("samples have more than %d bytes", maxBytes)
	}
	d := &Document{}
	if err := json.Unmarshal(text, d); err != nil {
		return nil, fmt.Errorf("reading samples: %w", err)
	}
	if err := d.check(); err != nil {
		return nil, fmt.Errorf("samples: %w", err)
	}
	return d, nil
}

func (d *Document) check() error {
	if len(d.Samples) > maxSamples {
		return fmt.Errorf("%d are more than %d", len(d.Samples), maxSamples)
	}
	if len(d.Before) > maxValues || len(d.After) > maxValues {
		return fmt.Errorf("the API server has more than %d values", maxValues)
	}
	for i := range d.Samples {
		s := &d.Samples[i]
		switch {
		case s.At <= 0 || i > 0 && s.At <= d.Samples[i-1].At:
			return fmt.Errorf("sample %d is not after the one before", i)
		case len(s.Values) > maxValues || len(s.Probes) > maxProbes:
			return fmt.Errorf("sample %d has too many values", i)
		}
		for _, p := range s.Probes {
			if p < 0 {
				return fmt.Errorf("sample %d: a request took %d ns", i, p)
			}
		}
		if p := s.Pods; p != nil && (!isCount(p.Unbound) || !isCount(p.Nominated) || !isCount(p.Created) ||
			!isCount(p.Left) || p.Area < 0) {
			return fmt.Errorf("sample %d: numbers of pods %+v", i, *p)
		}
	}
	return nil
}

func isCount(n int) bool { return n >= 0 && n <= maxCount }

// wanted are the metrics that a sample has: name -> what the labels must contain; empty for anything.
var wanted = map[string]string{
	"process_cpu_seconds_total": "", "process_start_time_seconds": "", "go_sched_gomaxprocs_threads": "",
	"go_cpu_classes_gc_total_cpu_seconds_total": "",
	"kumiki_loop_seconds_total":                 "", "kumiki_paused": "", "kumiki_limit": "",
	"leader_election_master_status": "",
	"scheduler_pending_pods":        "", "scheduler_goroutines": "", "scheduler_cache_size": "",
	"scheduler_schedule_attempts_total": "", "scheduler_queue_incoming_pods_total": "",
	"scheduler_pod_scheduled_after_flush_total":                  "",
	"scheduler_scheduling_algorithm_duration_seconds_sum":        "",
	"scheduler_framework_extension_point_duration_seconds_sum":   "",
	"scheduler_framework_extension_point_duration_seconds_count": "",
	"rest_client_rate_limiter_duration_seconds_sum":              `verb="POST"`,
	"rest_client_request_duration_seconds_sum":                   `verb="POST"`,
	"rest_client_request_duration_seconds_count":                 `verb="POST"`,
	"apiserver_request_duration_seconds_sum":                     `subresource="binding"`,
	"apiserver_request_duration_seconds_count":                   `subresource="binding"`,
	"apiserver_flowcontrol_request_wait_duration_seconds_sum":    "",
	"apiserver_flowcontrol_request_wait_duration_seconds_count":  "",
	"etcd_request_duration_seconds_sum":                          `pods`,
	"etcd_request_duration_seconds_count":                        `pods`,
}

// maxLine bounds a line of /metrics.
const maxLine = 1 << 20

// Parse reads the wanted series of the text format of Prometheus.
func Parse(r io.Reader) (Values, error) {
	v := Values{}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		line := lines.Text()
		end := strings.IndexAny(line, "{ ")
		if end <= 0 {
			continue
		}
		labels, is := wanted[line[:end]]
		if !is || !strings.Contains(line, labels) {
			continue
		}
		at := strings.LastIndexByte(line, ' ')
		if close := strings.LastIndexByte(line, '}'); close > at {
			return nil, fmt.Errorf("metric %s has no value", line[:end])
		}
		value, err := strconv.ParseFloat(line[at+1:], 64)
		if err != nil || math.IsNaN(value) || math.IsInf(value, 0) {
			return nil, fmt.Errorf("metric %s has the value %q", line[:end], line[at+1:])
		}
		if len(v) >= maxValues {
			return nil, errors.New("too many series")
		}
		v[line[:at]] = value
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("reading metrics: %w", err)
	}
	return v, nil
}

// Sum returns the sum of the series of a metric whose labels contain all of these texts, as in queue="active".
func (v Values) Sum(name string, labels ...string) (sum float64) {
	for series, value := range v { // order: a sum
		if matches(series, name, labels) {
			sum += value
		}
	}
	return sum
}

// Has reports whether there is a series of the metric.
func (v Values) Has(name string, labels ...string) bool {
	for series := range v { // order: any
		if matches(series, name, labels) {
			return true
		}
	}
	return false
}

func matches(series, name string, labels []string) bool {
	rest, ok := strings.CutPrefix(series, name)
	if !ok || rest != "" && rest[0] != '{' {
		return false
	}
	for _, l := range labels {
		if !strings.Contains(rest, l) {
			return false
		}
	}
	return true
}
