// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/restart"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// TestSmallRestart starts kumiki twice in a small cluster with bound pods. Catches a start that is measured before the
// lists are in, and one that finds the pod of the start before.
func TestSmallRestart(t *testing.T) {
	const nodes, pods = 5, 40
	r, err := restart.Run(t.Context(), testbed.Options{
		Nodes: nodes, Pods: pods, Rounds: 1, Schedulers: []string{report.Kumiki}, QPS: testbed.DefaultQPS, Burst: testbed.DefaultBurst, Timeout: 3 * time.Minute,
		Launch: func(_ context.Context, opts testcluster.Options) (*testcluster.Cluster, error) {
			return testcluster.Start(t, opts), nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Starts) != 2 || r.Starts[0].How != restart.FirstStart || r.Starts[1].How != restart.AfterKill {
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
		if s.ReadBytes < s.Lists.Total().Bytes {
			t.Errorf("%s: %d bytes read of %d that were sent", s.How, s.ReadBytes, s.Lists.Total().Bytes)
		}
	}
}

// TestSmallRestartAgainstAStandIn starts kumiki twice against a stand-in. Catches one that forgets what it has bound, and a
// time after the lists that counts from somewhere else.
func TestSmallRestartAgainstAStandIn(t *testing.T) {
	const nodes, pods = 5, 40
	r, err := restart.RunStandin(t.Context(), testbed.Options{
		Nodes: nodes, Pods: pods, Rounds: 1, Schedulers: []string{report.Kumiki}, QPS: testbed.DefaultQPS, Burst: testbed.DefaultBurst, Timeout: 3 * time.Minute,
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

func TestRestartRefusesWhatItCannotMeasure(t *testing.T) {
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"null":   {[]string{"--scheduler=null"}, "the null binder knows nothing of bound pods"},
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

// TestSmallClusterThatChanges: pods that fit nowhere wait, nodes change in every way there is, pods that fit are bound.
// Catches changes that are not told, and pods that are counted as bound and are not.
func TestSmallClusterThatChanges(t *testing.T) {
	const rate = 100
	o := restart.WaitingOptions{Waiting: 20, Rate: rate, Kinds: []string{"heartbeat", "label", "room"}, Length: time.Second}
	o.Options = testbed.Options{Nodes: 5, Pods: 10, Rounds: 1, Schedulers: []string{report.Kumiki}, QPS: testbed.DefaultQPS, Burst: testbed.DefaultBurst, Timeout: 3 * time.Minute,
		Progress: t.Output()}
	r, err := restart.RunWaiting(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Waited) != 3 {
		t.Fatalf("%+v", r)
	}
	for i, row := range r.Waited {
		if row.Scheduler != report.Kumiki || row.Change != o.Kinds[i] || row.Rate < rate/10 || row.Rate > 1.1*rate || row.PeakRSS == 0 {
			t.Errorf("%+v", row)
		}
		if row.Probes == 0 || row.Bound != row.Probes || row.P50 <= 0 || row.Max < row.P50 {
			t.Errorf("pods that fit: %+v", row)
		}
	}
	var table bytes.Buffer
	if err := r.Write(&table, "table"); err != nil || !strings.Contains(table.String(), "heartbeat") {
		t.Errorf("%v: %s", err, table.String())
	}
}
