// SPDX-License-Identifier: Apache-2.0

package testbed

import (
	"maps"
	"testing"

	"github.com/kumiki-scheduler/kumiki/bench/report"
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
	want := report.Calls{"POST pods/binding 201": 10, "POST pods 201": 12, "POST events 201": 10, "LIST pods 200": 4, "PUT resourceclaims/status 200": 3}
	if !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, err := parseCalls(`apiserver_request_total{resource="pods"} many`); err == nil {
		t.Error("no error for a metric that is not a number")
	}
}
