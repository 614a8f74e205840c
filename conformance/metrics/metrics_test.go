// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"strings"
	"testing"
)

func byName(t *testing.T, read func() ([]Metric, error)) map[string]Metric {
	t.Helper()
	all, err := read()
	if err != nil {
		t.Fatal(err)
	}
	m := map[string]Metric{} // name -> metric
	for _, x := range all {
		m[x.Name] = x
	}
	return m
}

// TestEveryMetricOfUpstreamIsHere: dashboards and alerts for kube-scheduler go on to work.
func TestEveryMetricOfUpstreamIsHere(t *testing.T) {
	theirs, ours := byName(t, Upstream), byName(t, Kumiki)
	if len(theirs) < 31 {
		t.Errorf("upstream has only %d metrics", len(theirs))
	}
	for name, want := range theirs {
		if got, there := ours[name]; !there {
			t.Errorf("%s is not here", name)
		} else if got != want {
			t.Errorf("%s differs:\n  here:     %+v\n  upstream: %+v", name, got, want)
		}
	}
	for name := range ours {
		if _, there := theirs[name]; !there && !strings.HasPrefix(name, "kumiki_") {
			t.Errorf("%s looks like upstream's and is not", name)
		}
	}
	for _, d := range Differences {
		if _, there := theirs[d.Name]; !there || d.Why == "" {
			t.Errorf("%s is said to be counted in another way, and upstream does not have it, or there is no reason", d.Name)
		}
	}
}

// TestAChangeOfUpstreamWouldShow: each property of a metric that the comparison claims to see, it sees.
func TestAChangeOfUpstreamWouldShow(t *testing.T) {
	theirs := byName(t, Upstream)
	for name, want := range map[string]Metric{
		"scheduler_pending_pods":                             {Type: "GAUGE", Labels: "queue"},
		"scheduler_queueing_hint_execution_duration_seconds": {Type: "HISTOGRAM", Labels: "event,hint,plugin"},
		"scheduler_schedule_attempts_total":                  {Type: "COUNTER", Labels: "profile,result"},
	} {
		got := theirs[name]
		if got.Type != want.Type || got.Labels != want.Labels || (got.Buckets == "") == (want.Type == "HISTOGRAM") || !strings.HasPrefix(got.Help, "[") {
			t.Errorf("%s: %+v, want %+v with a stability level", name, got, want)
		}
	}
}
