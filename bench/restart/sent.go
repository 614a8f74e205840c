// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"k8s.io/client-go/kubernetes"

	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
)

// Sent is what an API server sent to watching clients, by resource: lists that stream in are watches too.
type Sent map[string]Volume

// Volume is the amount of data sent for one resource: an event for each object of a list, one that ends the list, and
// later changes.
type Volume struct {
	Events int64 `json:"events"`
	Bytes  int64 `json:"bytes"`
}

// parseSent reads the events of watches out of the API server's /metrics.
func parseSent(text string) (Sent, error) {
	sent := Sent{}
	for line := range strings.Lines(text) {
		name, rest, _ := strings.Cut(line, "{")
		if name != "apiserver_watch_events_total" && name != "apiserver_watch_events_sizes_sum" {
			continue
		}
		labels, value, found := strings.Cut(rest, "} ")
		n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if !found || err != nil {
			return nil, fmt.Errorf("metric %q: no number", line)
		}
		of := testbed.MetricLabels(labels)["resource"]
		v := sent[of]
		if name == "apiserver_watch_events_total" {
			v.Events += int64(n)
		} else {
			v.Bytes += int64(n)
		}
		sent[of] = v
	}
	return sent, nil
}

func sentNow(ctx context.Context, client *kubernetes.Clientset) (Sent, error) {
	text, err := client.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("metrics of the API server: %w", err)
	}
	return parseSent(string(text))
}

// since returns the difference to an earlier state.
func (s Sent) since(before Sent) Sent {
	out := Sent{}
	for of, v := range s { // order: into a map
		if more := (Volume{v.Events - before[of].Events, v.Bytes - before[of].Bytes}); more.Events > 0 {
			out[of] = more
		}
	}
	return out
}

// Total is the sum over all resources.
func (s Sent) Total() Volume {
	var sum Volume
	for _, v := range s { // order: a sum
		sum.Events += v.Events
		sum.Bytes += v.Bytes
	}
	return sum
}

// text shows the largest first.
func (s Sent) text(most int) string {
	names := slices.Sorted(maps.Keys(s))
	slices.SortStableFunc(names, func(a, b string) int { return int(s[b].Bytes - s[a].Bytes) })
	var parts []string
	for _, of := range names[:min(most, len(names))] {
		parts = append(parts, fmt.Sprintf("%s %d in %.1f MiB", of, s[of].Events, report.Mebi(s[of].Bytes)))
	}
	return strings.Join(parts, ", ")
}
