// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"bytes"
	"os"
	"strings"
	"testing"
	"time"
)

// run is what each style makes of a scenario.
func run(t *testing.T, scenario string) map[string]Result {
	t.Helper()
	out := map[string]Result{} // style -> result
	for _, s := range Scenarios() {
		if s.Name != scenario {
			continue
		}
		for _, style := range Styles() {
			out[style.Name] = Simulate(s, style)
		}
	}
	if len(out) == 0 {
		t.Fatalf("no scenario %q", scenario)
	}
	return out
}

const ours = "transaction (kumiki)"

// TestKnownFailuresShow: each workload shows the failure that docs/gangs-compared.md describes, in the styles that
// have it and in no other.
func TestKnownFailuresShow(t *testing.T) {
	r := run(t, "interleaving")
	if got := r["coscheduling"].Idle; got < 200*time.Second {
		t.Errorf("two gangs that hold parts of each other's capacity: %v", got)
	}
	if r[ours].Ran != 2 || r[ours].Idle > time.Second {
		t.Errorf("the same decided as a whole: %+v", r[ours])
	}

	r = run(t, "lost wake-up")
	if got := r["coscheduling"].MeanWait; got < 5*time.Minute {
		t.Errorf("the third of a gang wakes no pod: %v", got)
	}
	if r["pfnet"].Ran != 0 {
		t.Errorf("pfnet-like: a gang goes though no other pod comes: %+v", r["pfnet"])
	}
	for _, name := range []string{"improvedCoscheduling", ours} {
		if r[name].Idle > time.Second {
			t.Errorf("%s: capacity stays idle: %+v", name, r[name])
		}
	}

	r = run(t, "head of line")
	if co, un := r["coscheduling"], r["transaction, nothing held"]; co.Attempts < 50*un.Attempts || co.Idle < 30*time.Second || un.Idle > time.Second {
		t.Errorf("a gang that never leaves the head of the queue: %+v; decided as a whole: %+v", co, un)
	}

	r = run(t, "starvation")
	if co := r["coscheduling"]; co.Held < 400*time.Second || co.MeanWait < 30*time.Second {
		t.Errorf("capacity reserved for a missing pod: %+v", co)
	}
	if got := r["transaction, nothing held"]; got.MeanWait > 5*time.Second {
		t.Errorf("small pods wait though nothing is held: %+v", got)
	}

	for _, name := range []string{"transaction, ends stated", "EASY backfill", "conservative backfill"} {
		if got := r[name]; got.MeanWait > 3*time.Second || got.Last > 81*time.Second {
			t.Errorf("%s: pods that end before the gang can start wait: %+v", name, got)
		}
	}

	r = run(t, "large among small")
	if r[ours].MeanWait > 30*time.Second || r["improvedCoscheduling"].MeanWait < 60*time.Second {
		t.Errorf("a large gang: %+v; where nothing is held for it: %+v", r[ours], r["improvedCoscheduling"])
	}

	if r = run(t, "quiet cluster"); r["pfnet"].Ran != 0 || r[ours].Ran != 1 || r["coscheduling"].Ran != 1 {
		t.Errorf("one gang in an empty cluster: %+v", r)
	}
}

// TestTableStandsInTheDocs: docs/gangs-compared.md shows what `kumiki bench gangs` prints, and a run gives the same
// each time.
func TestTableStandsInTheDocs(t *testing.T) {
	var table bytes.Buffer
	var results []Result
	for _, s := range Scenarios() {
		for _, style := range Styles() {
			results = append(results, Simulate(s, style))
		}
	}
	Table(&table, results)
	page, err := os.ReadFile("../../docs/gangs-compared.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), table.String()) {
		t.Errorf("docs/gangs-compared.md does not hold this table, as `kumiki bench gangs` prints it:\n%s", table.String())
	}
}

// TestTally counts by hand: a batch of two that waits 3 s, for 2 of which the capacity was there, while one slot was
// held.
func TestTally(t *testing.T) {
	s := Scenario{Name: "s", Nodes: 1, Cores: 2, Batches: []Batch{{Name: "a", Pods: 2, At: time.Second}, {Name: "old", Pods: 1, Aside: true}}}
	n := NewTally(s, "x")
	n.Came(1)
	n.Bound(1)
	n.At(time.Second)
	n.Came(0)
	n.Came(0)
	n.Holding(1)
	n.At(2 * time.Second)
	n.Ended(1)
	n.At(4 * time.Second)
	if n.Bound(0) || !n.Bound(0) || !n.Done() {
		t.Error("a batch runs with the last of its pods")
	}
	want := Result{Scenario: "s", Style: "x", Ran: 1, All: 1, Last: 4 * time.Second, MeanWait: 3 * time.Second, Idle: 2 * time.Second, Held: 3 * time.Second, Attempts: 7}
	if got := n.Result(7); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
