// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/kumiki-scheduler/kumiki/bench/report"
)

// label finds one label of a metric.
var label = regexp.MustCompile(`([a-z_]+)="([^"]*)"`)

// MetricLabels returns the labels of a series, which text has in Prometheus's text format: label -> value.
func MetricLabels(text string) map[string]string {
	labels := map[string]string{}
	for _, m := range label.FindAllStringSubmatch(text, -1) {
		labels[m[1]] = m[2]
	}
	return labels
}

// writtenBySchedulers: resource -> its calls count. The API server also talks to itself, about others.
var writtenBySchedulers = map[string]bool{"pods": true, "events": true, "resourceclaims": true, "podgroups": true,
	"persistentvolumes": true, "persistentvolumeclaims": true}

// parseCalls reads the requests that ended out of the API server's /metrics, about what schedulers write.
func parseCalls(text string) (report.Calls, error) {
	calls := report.Calls{}
	for line := range strings.Lines(text) {
		rest, ours := strings.CutPrefix(line, "apiserver_request_total{")
		if !ours {
			continue
		}
		labels, value, found := strings.Cut(rest, "} ")
		if !found {
			return nil, fmt.Errorf("metric without a value: %q", line)
		}
		of := MetricLabels(labels)
		if !writtenBySchedulers[of["resource"]] {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
		if err != nil {
			return nil, fmt.Errorf("metric %q: %w", line, err)
		}
		what := of["resource"]
		if of["subresource"] != "" {
			what += "/" + of["subresource"]
		}
		calls[of["verb"]+" "+what+" "+of["code"]] += int64(n)
	}
	return calls, nil
}

// ReadCalls asks the API server what it was asked so far.
func ReadCalls(ctx context.Context, client *kubernetes.Clientset) (report.Calls, error) {
	text, err := client.RESTClient().Get().AbsPath("/metrics").DoRaw(ctx)
	if err != nil {
		return nil, fmt.Errorf("metrics of the API server: %w", err)
	}
	return parseCalls(string(text))
}

// CountEvents asks for one event and how many more there are, which costs the API server little.
func CountEvents(ctx context.Context, client kubernetes.Interface) (int64, error) {
	list, err := client.EventsV1().Events(metav1.NamespaceAll).List(ctx, metav1.ListOptions{Limit: 1})
	if err != nil {
		return 0, fmt.Errorf("count events: %w", err)
	}
	n := int64(len(list.Items))
	if list.RemainingItemCount != nil {
		n += *list.RemainingItemCount
	}
	return n, nil
}
