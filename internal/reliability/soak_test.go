// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"strings"
	"testing"
)

// minutes are looks at a process, heap in MiB.
func minutes(pid int, heaps ...float64) (out []SoakMinute) {
	for i, h := range heaps {
		out = append(out, SoakMinute{Minute: float64(i + 1), PID: pid, HeapMiB: h, Goroutines: 150})
	}
	return out
}

// TestMemoryIsJudged: growth is seen over all leaders and within one, and what a fault hides is left out. It catches:
// comparing the first sample with the last regardless of the leader, a single high sample that decides, growth that
// passes.
func TestMemoryIsJudged(t *testing.T) {
	for name, c := range map[string]struct {
		looks []SoakMinute
		flat  bool
		many  int
	}{
		"steady":                  {minutes(1, 30, 31, 30, 29, 30, 31), true, 6},
		"growing":                 {minutes(1, 30, 33, 36, 40, 44, 48), false, 6},
		"one high look":           {minutes(1, 30, 30, 30, 30, 90, 30, 30, 30, 30), true, 9},
		"growth over all leaders": {append(minutes(1, 30, 31, 32), append(minutes(2, 35, 36, 37), minutes(3, 40, 41, 42)...)...), false, 9},
		"growth within one":       {append(minutes(1, 30, 32, 34, 36, 38, 40, 42, 44, 46), minutes(2, 20, 20, 20, 30, 30, 30)...), false, 15},
		"a look that failed":      {append(append(minutes(1, 30, 30), SoakMinute{}), minutes(1, 30, 30, 30, 30)...), true, 6},
		"too few to say anything": {minutes(1, 30, 30), false, 2},
	} {
		k := &soaking{report: SoakReport{Minutes: c.looks}}
		k.judgeMemory()
		if got := k.report.Memory; got.Flat != c.flat || got.Minutes != c.many {
			t.Errorf("%s: %+v, want flat %v over %d looks", name, got, c.flat, c.many)
		}
	}
}

// TestASoakThatFailedSaysSo: each violated invariant is reported, in the exit code and in the
// text. It catches: a report that holds although pods were lost, an invariant that is not
// printed.
func TestASoakThatFailedSaysSo(t *testing.T) {
	good := SoakReport{Scheduler: Kumiki, Memory: SoakMemory{Flat: true}}
	if !good.Held() {
		t.Error("a good run did not hold")
	}
	for name, spoil := range map[string]func(*SoakReport){
		"lost": func(r *SoakReport) { r.Lost = 1 }, "wrong": func(r *SoakReport) { r.Wrong = []string{"node n: pods ask for more"} },
		"NOT flat": func(r *SoakReport) { r.Memory.Flat = false },
	} {
		r := good
		spoil(&r)
		if r.Held() {
			t.Errorf("%s: it held", name)
		}
		var text strings.Builder
		if err := r.Write(&text, "markdown"); err != nil {
			t.Fatal(err)
		}
		for _, w := range r.Wrong {
			if !strings.Contains(text.String(), w) {
				t.Errorf("%q is not in the text:\n%s", w, text.String())
			}
		}
	}
}

// TestTheWorstRunDecidesACase: a case that broke once broke.
// It catches: the last run winning, deaths and lost binds of one run forgotten.
func TestTheWorstRunDecidesACase(t *testing.T) {
	results := []Result{
		{Case: "B1", What: "huge", Scheduler: Kumiki, Outcome: Broke, Why: "it was placed", Seconds: 1, Deaths: 1, BindsLost: 2},
		{Case: "B1", What: "huge", Scheduler: Kumiki, Run: 1, Outcome: Held, Seconds: 2},
		{Case: "B1", What: "huge", Scheduler: Upstream, Outcome: Held, Seconds: 1},
	}
	for _, format := range []string{"table", "markdown"} {
		var text strings.Builder
		if err := Write(&text, format, results); err != nil {
			t.Fatal(err)
		}
		for _, want := range []string{"broke", "held", "died 1 times, 2 binds lost"} {
			if !strings.Contains(text.String(), want) {
				t.Errorf("%s lacks %q:\n%s", format, want, text.String())
			}
		}
	}
}
