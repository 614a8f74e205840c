// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// TestSmallRestart starts kumiki twice in a small cluster with bound pods. Catches a start that is measured before the
// lists are in, and one that finds the pod of the start before.
func TestSmallRestart(t *testing.T) {
	const nodes, pods = 5, 40
	r, err := Restart(t.Context(), Options{
		Nodes: nodes, Pods: pods, Rounds: 1, Schedulers: []string{Kumiki}, QPS: defaultQPS, Burst: defaultBurst, Timeout: 3 * time.Minute,
		launch: func(_ context.Context, opts testcluster.Options) (*testcluster.Cluster, error) {
			return testcluster.Start(t, opts), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Starts) != 2 || r.Starts[0].How != FirstStart || r.Starts[1].How != AfterKill {
		t.Fatalf("starts %+v", r.Starts)
	}
	for i, s := range r.Starts {
		if s.ReadySeconds <= 0 || s.BoundSeconds <= 0 || s.PeakRSS < s.FinalRSS || s.FinalRSS == 0 {
			t.Errorf("%s: %+v", s.How, s)
		}
		// The pods of this start and of those before it are sent too, the end of the list, and what happens to the last one.
		if sent := s.Lists["pods"].Events; sent < int64(pods+i+1) || sent > int64(pods+i+6) || s.Lists["nodes"].Events < nodes {
			t.Errorf("%s: the API server sent %v", s.How, s.Lists)
		}
		if s.ReadBytes < s.Lists.total().Bytes {
			t.Errorf("%s: %d bytes read of %d that were sent", s.How, s.ReadBytes, s.Lists.total().Bytes)
		}
	}
}

// TestSmallRestartAgainstAStandIn starts kumiki twice against a stand-in. Catches one that forgets what it has bound, and a
// time after the lists that counts from somewhere else.
func TestSmallRestartAgainstAStandIn(t *testing.T) {
	const nodes, pods = 5, 40
	r, err := RestartFake(t.Context(), Options{
		Nodes: nodes, Pods: pods, Rounds: 1, Schedulers: []string{Kumiki}, QPS: defaultQPS, Burst: defaultBurst, Timeout: 3 * time.Minute,
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Starts) != 2 {
		t.Fatalf("starts %+v", r.Starts)
	}
	for i, s := range r.Starts {
		if s.ReadySeconds <= 0 || s.BoundSeconds <= 0 || s.PeakRSS == 0 || s.AfterListsSeconds <= 0 || s.AfterListsSeconds >= s.BoundSeconds {
			t.Errorf("%s: %+v", s.How, s)
		}
		// The pods of this start and of those before it, the end of the list, and the bind of the last one.
		if sent := s.Lists["pods"].Events; sent < int64(pods+i+2) || sent > int64(pods+i+6) || s.Lists["nodes"].Events != nodes+1 {
			t.Errorf("%s: the stand-in sent %v", s.How, s.Lists)
		}
	}
	if r.Rows[0].AfterLists.Median <= 0 {
		t.Errorf("row %+v", r.Rows[0])
	}
}

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
	if got.total().Events != 103 || got.text(1) != "pods 100 in 2.0 MiB" {
		t.Errorf("total %v, as text %q", got.total(), got.text(1))
	}
	if _, err := parseSent(`apiserver_watch_events_total{resource="pods"} many` + "\n"); err == nil {
		t.Error("a metric without a number was taken")
	}
}

func TestBytesReadOfAProcess(t *testing.T) {
	n, err := parseRead([]byte("rchar: 1234\nwchar: 5\nsyscr: 6\n"))
	if err != nil || n != 1234 {
		t.Errorf("%d, %v", n, err)
	}
	for _, text := range []string{"", "wchar: 5\n", "rchar: x\n"} {
		if _, err := parseRead([]byte(text)); err == nil {
			t.Errorf("%q was taken", text)
		}
	}
}

// TestRestartsAreComparedRoundByRound, and each way of starting by itself. Catches a ratio upside down: above 1 is to mean
// that kumiki needs less.
func TestRestartsAreComparedRoundByRound(t *testing.T) {
	var starts []Start
	for round := 1; round <= 3; round++ {
		for _, name := range []string{Kumiki, Upstream} {
			for _, how := range []string{FirstStart, AfterKill} {
				s := Start{Scheduler: name, Round: round, How: how, ReadySeconds: float64(round), BoundSeconds: float64(round) + 0.5,
					CPU: 1, ReadBytes: 10 << 20, PeakRSS: 100 << 20, FinalRSS: 90 << 20, Lists: Sent{"pods": {50, 1 << 20}}}
				if name == Upstream {
					s.ReadySeconds *= 2
				}
				if how == AfterKill {
					s.PeakRSS *= 2
				}
				starts = append(starts, s)
			}
		}
	}
	r := summarizeStarts(Options{Nodes: 5, Pods: 50, Schedulers: []string{Kumiki, Upstream}}, starts)
	if len(r.Rows) != 4 || r.Rows[0].Ready.Median != 2 || r.Rows[1].Ready.Median != 4 || r.Rows[3].PeakRSS.Median != 200<<20 {
		t.Errorf("rows %+v", r.Rows)
	}
	if len(r.Ratios) != 2 || r.Ratios[0].Ready != (Spread{2, 2, 2}) || r.Ratios[0].CPU.Median != 1 {
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

func TestRestartRefusesWhatItCannotMeasure(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"null":   {[]string{"--schedulers=null"}, "the null binder knows nothing of bound pods"},
		"csv":    {[]string{"-o=csv"}, `output "csv" is unknown`},
		"no pod": {[]string{"--pods=0"}, "must be at least 1"},
	} {
		cmd := NewCommand()
		cmd.SetArgs(append([]string{"restart"}, c.args...))
		cmd.SetOut(io.Discard)
		cmd.SetErr(io.Discard)
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want it to say %q", name, err, c.want)
		}
	}
}
