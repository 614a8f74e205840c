// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"strings"
	"testing"
)

func someRuns() (Options, []Run) {
	o := Options{Nodes: 10, Pods: 100, Schedulers: []string{Kumiki, Null}}
	run := func(name string, round int, perSecond float64) Run {
		return Run{Scheduler: name, Round: round, PodsPerSecond: perSecond, SettleSeconds: 100 / perSecond * 1.25,
			SchedulerCPU: 1, ServersCPU: 2, BenchCPU: 1, Calls: Calls{"POST pods/binding 201": 100}, PeakRSS: 64 << 20}
	}
	// The machine got slower from the first round to the second: the ratios did not change.
	return o, []Run{run(Kumiki, 1, 80), run(Null, 1, 100), run(Kumiki, 2, 40), run(Null, 2, 50), run(Kumiki, 3, 80), run(Null, 3, 80)}
}

func TestSummary(t *testing.T) {
	r := summarize(someRuns())
	if len(r.Rows) != 2 || len(r.Ratios) != 1 {
		t.Fatalf("got %d rows and %d ratios, want 2 and 1", len(r.Rows), len(r.Ratios))
	}
	if got, want := r.Rows[0].PodsPerSecond, (Spread{80, 40, 80}); got != want {
		t.Errorf("kumiki binds %v pods/s, want %v", got, want)
	}
	if got, want := r.Rows[1].SettledPerSecond, (Spread{64, 40, 80}); got != want {
		t.Errorf("null writes %v events/s, want %v", got, want)
	}
	if got, want := r.Ratios[0].PodsPerSecond, (Spread{0.8, 0.8, 1}); got != want {
		t.Errorf("kumiki / null is %v, want %v: rounds are compared, not medians", got, want)
	}
	if got := r.Ratios[0].MachineCPU.Median; got != 1 {
		t.Errorf("both cost the machine the same, the ratio is %g", got)
	}
}

// A run that others took half of the machine from counts as the run that it would have been without them.
func TestOthersAreTakenOut(t *testing.T) {
	o, runs := someRuns()
	for i := range runs {
		if runs[i].Scheduler == Kumiki && runs[i].Round == 2 {
			runs[i].PodsPerSecond, runs[i].Others = 20, 0.5
		}
	}
	r := summarize(o, runs)
	if got, want := r.Rows[0].QuietPerSecond, (Spread{80, 40, 80}); got != want {
		t.Errorf("kumiki would have bound %v pods/s, want %v", got, want)
	}
	if got, want := r.Ratios[0].QuietPerSecond, (Spread{0.8, 0.8, 1}); got != want {
		t.Errorf("kumiki / null is %v, want %v", got, want)
	}
}

func TestNoRatioWithoutNull(t *testing.T) {
	o, runs := someRuns()
	o.Schedulers = []string{Kumiki}
	if r := summarize(o, runs); len(r.Ratios) != 0 || len(r.Rows) != 1 {
		t.Errorf("got %d rows and ratios %v", len(r.Rows), r.Ratios)
	}
}

func TestReportFormats(t *testing.T) {
	r := summarize(someRuns())
	var table, asJSON, asCSV bytes.Buffer
	for format, to := range map[string]*bytes.Buffer{"table": &table, "json": &asJSON, "csv": &asCSV} {
		if err := r.write(to, format); err != nil {
			t.Fatalf("%s: %v", format, err)
		}
	}
	for _, want := range []string{"10 nodes, 100 pods", "80 (40..80)", "64Mi", "kumiki / null: 0.80 (0.80..1.00) pods/s", "null, writes per pod: 1.00 POST pods/binding 201"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("the table does not say %q:\n%s", want, table.String())
		}
	}
	var back Report
	if err := json.Unmarshal(asJSON.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if len(back.Runs) != 6 || back.Rows[0].PodsPerSecond != r.Rows[0].PodsPerSecond || back.Ratios[0].Of != Kumiki {
		t.Errorf("JSON gives back %+v", back)
	}
	rows, err := csv.NewReader(&asCSV).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if len(rows) != 7 || rows[1][0] != Kumiki || rows[1][7] != "80.0000" {
		t.Errorf("CSV gives back %v", rows)
	}
}
