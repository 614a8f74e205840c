// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
	"github.com/kumiki-scheduler/kumiki/bench/workload"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// halfDone is a comparison of two workloads and two schedulers of which half was measured, and the matrix that makes it.
func halfDone(t *testing.T) (*matrix, *report.Comparison) {
	t.Helper()
	c := &report.Comparison{Date: "2026-11-21T05:00:00Z", QPS: 1, Burst: 1, Machine: report.Machine{CPUs: 2}}
	m := &matrix{Options: testbed.Options{QPS: 1, Burst: 1, Rounds: 2, Schedulers: []string{report.Kumiki, report.Null}}, tell: newTeller(io.Discard),
		plans: []workload.Plan{{Name: "a/1"}, {Name: "b/1"}}, kept: &report.Keeper{Path: filepath.Join(t.TempDir(), "deep", "table.json"), Resume: true}}
	if err := m.kept.Begin(c); err != nil {
		t.Fatal(err)
	}
	for _, trial := range []report.Trial{
		{Workload: "a/1", Scheduler: report.Kumiki, Round: 1, PodsPerSecond: 5, TookSeconds: 10},
		{Workload: "a/1", Scheduler: report.Null, Round: 1, Failure: "it ended"},
		{Workload: "b/1", Scheduler: report.Null, Round: 2, PodsPerSecond: 7, TookSeconds: 20},
	} {
		c.Trials = append(c.Trials, trial)
		if err := m.put(c); err != nil {
			t.Fatal(err)
		}
	}
	return m, c
}

// Catches: a report that is whole only at the end, one that an interrupt leaves half written, and a run that is made twice or
// not again after it failed.
func TestWhatWasMeasuredIsKeptAndGoneOnWith(t *testing.T) {
	m, c := halfDone(t)
	kept, err := report.Read(m.kept.Path)
	if err != nil {
		t.Fatal(err)
	}
	if len(kept.Trials) != 3 || len(kept.Rows) != 4 || len(kept.Workloads) != 2 {
		t.Errorf("kept are %d trials, %d rows, %d workloads", len(kept.Trials), len(kept.Rows), len(kept.Workloads))
	}
	next := &report.Comparison{QPS: 1, Burst: 1, Machine: c.Machine}
	if err := m.kept.Begin(next); err != nil {
		t.Fatal(err)
	}
	var missing []string
	for i := range m.plans {
		for _, turn := range m.missing(next, &m.plans[i]) {
			missing = append(missing, m.plans[i].Name+" "+turn.scheduler+" "+string(rune('0'+turn.round)))
		}
	}
	want := "a/1 null 1,a/1 kumiki 2,a/1 null 2,b/1 kumiki 1,b/1 null 1,b/1 kumiki 2"
	if got := strings.Join(missing, ","); got != want {
		t.Errorf("missing are\n%s, want\n%s", got, want)
	}
	if next.Date != "2026-11-21T05:00:00Z" {
		t.Errorf("the date became %s", next.Date)
	}
	m.plans = append(m.plans, workload.Plan{Name: "c/1"})
	if err := m.put(next); err != nil || len(next.Rows) != 4 {
		t.Errorf("rows of a workload whose turn has not come: %v, %d rows", err, len(next.Rows))
	}
	m.kept.Again = regexp.MustCompile("^b/")
	next = &report.Comparison{QPS: 1, Burst: 1, Machine: c.Machine}
	if err := m.kept.Begin(next); err != nil || len(next.Trials) != 1 {
		t.Errorf("b is to be measured again: %v, %+v", err, next.Trials)
	}
	if files, err := os.ReadDir(filepath.Dir(m.kept.Path)); err != nil || len(files) != 1 {
		t.Errorf("beside the report there are %v, %v", files, err)
	}
}

// Catches: runs of two machines, of two releases of kube-scheduler, or with two limits, that become one report, and a report of hours that is overwritten.
func TestReportsOfAnotherKindAreNotGoneOnWith(t *testing.T) {
	m, c := halfDone(t)
	for _, other := range []*report.Comparison{{QPS: 2, Burst: 1, Machine: c.Machine}, {QPS: 1, Burst: 1, Machine: report.Machine{CPUs: 4}}, {QPS: 1, Burst: 1, Machine: c.Machine, Rate: 3}, {QPS: 1, Burst: 1, Machine: c.Machine, Limits: report.GoLimits{Procs: 1}}} {
		if err := m.kept.Begin(other); err == nil || !strings.Contains(err.Error(), "cannot be gone on with") {
			t.Errorf("gone on with %+v: %v", other, err)
		}
	}
	c.Trials = append(c.Trials, report.Trial{Workload: "a/1", Scheduler: report.Upstream, Round: 1, PodsPerSecond: 5})
	if err := m.put(c); err != nil {
		t.Fatal(err)
	}
	next := report.Comparison{QPS: 1, Burst: 1, Machine: c.Machine, KubeScheduler: "1.37.1"}
	if err := m.kept.Begin(&next); err == nil || !strings.Contains(err.Error(), "kube-scheduler 1.36.3, and this is 1.37.1") {
		t.Errorf("a report of 1.36.3 is continued with 1.37.1: %v", err)
	}
	if next.KubeScheduler = "1.36.3"; m.kept.Begin(&next) != nil {
		t.Error("a report is not continued with the same release of kube-scheduler")
	}
	m.kept.Resume = false
	if err := m.kept.Begin(&report.Comparison{}); err != nil {
		t.Fatal(err)
	}
	if old, err := report.Read(m.kept.Path + ".old"); err != nil || len(old.Trials) != 4 {
		t.Errorf("what was there before: %v, %v", old, err)
	}
}

// Catches: a second round of one workload before the first of the others, a failure that ends the run for those after it, one
// that is not kept, null that plays nothing without a word, and what null plays recorded again for each round.
func TestEveryWorkloadHasItsTurnBeforeTheSecondRound(t *testing.T) {
	launched := 0
	m := &matrix{Options: testbed.Options{Rounds: 2, Schedulers: []string{report.Kumiki, report.Null}, UpstreamBinary: "/no/kube-scheduler", Timeout: time.Minute,
		Launch: func(context.Context, testcluster.Options) (*testcluster.Cluster, error) {
			launched++
			return nil, errors.New("no capacity")
		}}, tell: newTeller(io.Discard), plans: []workload.Plan{{Name: "a/1"}, {Name: "b/1"}}, kept: &report.Keeper{Path: filepath.Join(t.TempDir(), "table.json")}}
	c, err := m.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, trial := range c.Trials {
		order = append(order, fmt.Sprintf("%s %s %d", trial.Workload, trial.Scheduler, trial.Round))
		if !strings.Contains(trial.Failure, "no capacity") {
			t.Errorf("%s says %q", order[len(order)-1], trial.Failure)
		}
	}
	want := "a/1 kumiki 1,a/1 null 1,b/1 kumiki 1,b/1 null 1,a/1 kumiki 2,a/1 null 2,b/1 kumiki 2,b/1 null 2"
	if got := strings.Join(order, ","); got != want {
		t.Errorf("the order is\n%s, want\n%s", got, want)
	}
	if launched != 6 {
		t.Errorf("%d clusters were started, want one for each run of kumiki and one for each workload's recording", launched)
	}
	if kept, err := report.Read(m.kept.Path); err != nil || len(kept.Trials) != 8 || kept.Verdict() == nil {
		t.Errorf("kept are %v, %v", kept, err)
	}
	if left, err := filepath.Glob(filepath.Join(m.dir, "*")); err != nil || len(left) != 0 {
		t.Errorf("left behind are %v, %v", left, err)
	}
	m.UpstreamBinary, m.dir, launched = os.Args[0], t.TempDir(), 0
	if play := m.record(t.Context(), &m.plans[0]); launched != 2 || !strings.Contains(play.cannot, "the run of kumiki") {
		t.Errorf("%d runs were tried when kube-scheduler's is no good: %+v", launched, play)
	}
}

// Catches: a forecast that forgets the run that is recorded for null, or that takes what was measured for what is missing.
func TestTheForecastIsOfWhatIsMissing(t *testing.T) {
	m, c := halfDone(t)
	f := m.forecast(c)
	trials, seconds := f.left(c)
	// Guessed are 9 s for each, what was measured took 15: a null 2, kumiki 2; b kumiki 1, null 1, kumiki 2, where known as
	// long as before, and for each a run that null plays.
	if trials != 5 || seconds != 15+10+15+20+15+2*15 {
		t.Errorf("%d trials in %g s", trials, seconds)
	}
	if got, want := f.text(c), "3 of 8 runs are over, about 2 min to go"; got != want {
		t.Errorf("printed %q, want %q", got, want)
	}
	all, seconds := f.left(&report.Comparison{})
	if all != 8 || seconds != 9*(8+2) {
		t.Errorf("from nothing: %d trials in %g s, want 8 and two runs that are recorded", all, seconds)
	}
}

// Catches: a table that takes the rest of the document with it, or is put nowhere without a word.
func TestTheTableIsPutBetweenItsMarkers(t *testing.T) {
	file := filepath.Join(t.TempDir(), "README.md")
	text := "# Before\n" + tableBegins + "old\n" + tableEnds + "after\n"
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	f := tableFlags{into: file}
	for range 2 {
		if err := f.show(io.Discard, someReport(t)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	if err := someReport(t).Markdown(&table); err != nil {
		t.Fatal(err)
	}
	if want := "# Before\n" + tableBegins + table.String() + tableEnds + "after\n"; string(got) != want {
		t.Errorf("the document is\n%s", got)
	}
	if err := os.WriteFile(file, []byte("no table\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := f.show(io.Discard, someReport(t)); err == nil || !strings.Contains(err.Error(), "bench table begins") {
		t.Errorf("without markers: %v", err)
	}
}

// Catches: an interrupt after which what was measured is lost, and one that ends like a run that is complete.
func TestAnInterruptLeavesWhatWasOver(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	launched := 0
	m := &matrix{Options: testbed.Options{Rounds: 2, Schedulers: []string{report.Kumiki}, QPS: 1, Burst: 1, Timeout: time.Minute,
		Launch: func(context.Context, testcluster.Options) (*testcluster.Cluster, error) {
			if launched++; launched == 3 {
				interrupt()
			}
			return nil, errors.New("no capacity")
		}}, tell: newTeller(io.Discard), plans: []workload.Plan{{Name: "a/1"}, {Name: "b/1"}}}
	var out bytes.Buffer
	cmd := &cobra.Command{RunE: func(cmd *cobra.Command, _ []string) error { return m.report(cmd, "csv") }}
	cmd.SetArgs(nil)
	cmd.SetOut(&out)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	endsWhenInterrupted(cmd)
	err := cmd.ExecuteContext(ctx)
	if err == nil || errors.Is(err, context.Canceled) || err.Error() != "interrupted: 2 of 4 runs were over" {
		t.Errorf("it ends with %v", err)
	}
	if lines := strings.Split(strings.TrimSpace(out.String()), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[1], "a/1,kumiki,1,no capacity,0,0,,,,,") || !strings.HasPrefix(lines[2], "b/1,kumiki,1") {
		t.Errorf("the report is\n%s", out.String())
	}
}

// Catches: a command that a signal ends in the middle of its work and that reports success; a no-op binder that does
// not exit with success when it is stopped.
func TestACommandThatIsInterruptedSaysSo(t *testing.T) {
	ctx, interrupt := context.WithCancel(t.Context())
	interrupt()
	for name, want := range map[string]string{"restart": "interrupted", report.Null: context.Canceled.Error()} {
		cmd := &cobra.Command{Use: name, RunE: func(cmd *cobra.Command, _ []string) error { return context.Cause(cmd.Context()) }}
		cmd.SetArgs(nil)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		root := cmd
		endsWhenInterrupted(root)
		if err := root.ExecuteContext(ctx); err == nil || err.Error() != want {
			t.Errorf("%s ends with %v, want %s", name, err, want)
		}
	}
}
