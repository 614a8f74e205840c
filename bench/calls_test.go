// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"maps"
	"strings"
	"testing"
)

const someMetrics = `# HELP apiserver_request_total [STABLE] Counter of apiserver requests.
# TYPE apiserver_request_total counter
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="binding",verb="POST",version="v1"} 10
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="pods",scope="resource",subresource="",verb="POST",version="v1"} 1.2e+01
apiserver_request_total{code="201",component="apiserver",dry_run="",group="events.k8s.io",resource="events",scope="resource",subresource="",verb="POST",version="v1"} 9
apiserver_request_total{code="201",component="apiserver",dry_run="",group="",resource="events",scope="resource",subresource="",verb="POST",version="v1"} 1
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="nodes",scope="cluster",subresource="",verb="LIST",version="v1"} 4
apiserver_request_total{code="200",component="apiserver",dry_run="",group="",resource="pods",scope="cluster",subresource="",verb="LIST",version="v1"} 4
apiserver_request_total{code="200",component="apiserver",dry_run="",group="resource.k8s.io",resource="resourceclaims",scope="resource",subresource="status",verb="PUT",version="v1"} 3
apiserver_request_total_of_others{resource="pods"} 5
`

func TestParseCalls(t *testing.T) {
	got, err := parseCalls(someMetrics)
	if err != nil {
		t.Fatal(err)
	}
	// Events of both groups are one thing to the API server's store.
	want := Calls{"POST pods/binding 201": 10, "POST pods 201": 12, "POST events 201": 10, "LIST pods 200": 4, "PUT resourceclaims/status 200": 3}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, err := parseCalls(`apiserver_request_total{resource="pods"} many`); err == nil {
		t.Error("no error for a metric that is not a number")
	}
}

func TestCallsOfARun(t *testing.T) {
	before := Calls{"POST pods 201": 5, "LIST pods 200": 1}
	after := Calls{"POST pods 201": 105, "LIST pods 200": 70, "POST pods/binding 201": 99, "POST pods/binding 409": 1, "PATCH pods/status 200": 0}
	got := after.since(before)
	if want := (Calls{"POST pods 201": 100, "POST pods/binding 201": 99, "POST pods/binding 409": 1}); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// Catches: a family in which kumiki leaves a write out, or makes one more, and the report does not say so; noise that it does
// say; writes that were refused and made again counted twice.
func TestWritesThatDifferAreSaid(t *testing.T) {
	upstream := map[string]float64{"POST pods/binding 201": 1, "POST pods/binding 429": 0.7, "POST events 201": 1.02, "PUT resourceclaims 200": 1, "PATCH pods/status 200": 4}
	kumiki := map[string]float64{"POST pods/binding 201": 1, "POST events 201": 1, "PATCH resourceclaims 200": 1, "PATCH pods/status 200": 4.15}
	got := strings.Join(callsDiffer(kumiki, upstream), ", ")
	if want := "1.00 PATCH resourceclaims instead of 0.00, 0.00 PUT resourceclaims instead of 1.00"; got != want {
		t.Errorf("it says %q, want %q", got, want)
	}
	rows := []WorkloadRow{{Scheduler: Kumiki, Calls: kumiki}, {Scheduler: Upstream, Calls: upstream}, {Scheduler: CreateOnly, Calls: map[string]float64{"POST pods 201": 1}}}
	var said []string
	for _, line := range remarks(rows) {
		if strings.Contains(line, "otherwise") {
			said = append(said, line)
		}
	}
	if len(said) != 1 || !strings.HasPrefix(said[0], "kumiki writes otherwise than kube-scheduler, per pod: 1.00 PATCH") {
		t.Errorf("the report says %q", said)
	}
}
