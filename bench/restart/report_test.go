// SPDX-License-Identifier: Apache-2.0

package restart

import (
	"bytes"
	"strings"
	"testing"

	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
)

func TestWhatWasSentIsReadByResource(t *testing.T) {
	before, err := parseSent(`apiserver_watch_events_total{group="",resource="pods",version="v1"} 5
apiserver_watch_events_sizes_sum{group="",resource="pods",version="v1"} 500
`)
	if err != nil {
		t.Fatal(err)
	}
	after, err := parseSent(`# HELP apiserver_watch_events_total Number of events
apiserver_watch_events_total{group="",resource="pods",version="v1"} 105
apiserver_watch_events_sizes_sum{group="",resource="pods",version="v1"} 2.097652e+06
apiserver_watch_events_sizes_bucket{group="",resource="pods",version="v1",le="1024"} 105
apiserver_watch_events_total{group="apps",resource="replicasets",version="v1"} 0
apiserver_watch_events_total{group="",resource="nodes",version="v1"} 3
apiserver_watch_events_sizes_sum{group="",resource="nodes",version="v1"} 300
`)
	if err != nil {
		t.Fatal(err)
	}
	got := after.since(before)
	if len(got) != 2 || got["pods"] != (Volume{100, 2097152}) {
		t.Errorf("sent %v", got)
	}
	if got.Total().Events != 103 || got.text(1) != "pods 100 in 2.0 MiB" {
		t.Errorf("total %v, as text %q", got.Total(), got.text(1))
	}
	if _, err := parseSent(`apiserver_watch_events_total{resource="pods"} many` + "\n"); err == nil {
		t.Error("a metric without a number was taken")
	}
}

// TestRestartsAreComparedRoundByRound, and each way of starting by itself. Catches a ratio upside down: above 1 is to
// mean that kumiki needs less.
func TestRestartsAreComparedRoundByRound(t *testing.T) {
	var starts []Start
	for round := 1; round <= 3; round++ {
		for _, name := range []string{report.Kumiki, report.Upstream} {
			for _, how := range []string{FirstStart, AfterKill} {
				s := Start{Scheduler: name, Round: round, How: how, ReadySeconds: float64(round), BoundSeconds: float64(round) + 0.5,
					CPU: 1, ReadBytes: 10 << 20, PeakRSS: 100 << 20, FinalRSS: 90 << 20, Lists: Sent{"pods": {50, 1 << 20}}}
				if name == report.Upstream {
					s.ReadySeconds *= 2
				}
				if how == AfterKill {
					s.PeakRSS *= 2
				}
				starts = append(starts, s)
			}
		}
	}
	r := summarizeStarts(testbed.Options{Nodes: 5, Pods: 50, Schedulers: []string{report.Kumiki, report.Upstream}}, starts)
	if len(r.Rows) != 4 || r.Rows[0].Ready.Median != 2 || r.Rows[1].Ready.Median != 4 || r.Rows[3].PeakRSS.Median != 200<<20 {
		t.Errorf("rows %+v", r.Rows)
	}
	if len(r.Ratios) != 2 || r.Ratios[0].Ready != (report.Spread{Median: 2, Min: 2, Max: 2}) || r.Ratios[0].CPU.Median != 1 {
		t.Errorf("ratios %+v", r.Ratios)
	}
	var table, raw bytes.Buffer
	if err := r.write(&table, "table"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"kumiki    first start", "kube-scheduler  after kill -9", "pods 50 in 1.0 MiB", "kube-scheduler / kumiki, first start: 2.00 to ready"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("%q is not in\n%s", want, table.String())
		}
	}
	if err := r.write(&raw, "json"); err != nil || !strings.Contains(raw.String(), `"how": "after kill -9"`) {
		t.Errorf("%v: %s", err, raw.String())
	}
}
