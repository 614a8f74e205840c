// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"slices"
	"time"

	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

// run makes all trials that an earlier run has not saved: a round of every workload before the second round of any,
// so that an interrupted run has results of each. The schedulers take turns within a round of a workload, so that a
// slower machine affects all of them. If ctx ends, run returns and keeps the complete trials.
func (m *matrix) run(ctx context.Context) (*report.Comparison, error) {
	c := &report.Comparison{Date: time.Now().UTC().Format(time.RFC3339), Go: runtime.Version(), CPUs: runtime.NumCPU(), QPS: m.QPS, Burst: m.Burst,
		Rate: m.rate, Topic: m.topic, KubeScheduler: m.UpstreamRelease, Limits: report.DefaultGoLimits()}
	var err error
	if c.Machine, err = report.ThisMachine(); err != nil {
		return nil, err
	}
	if err := m.kept.Begin(c); err != nil {
		return nil, err
	}
	if m.dir, err = os.MkdirTemp("", "kumiki-bench-"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(m.dir)
	f := m.forecast(c)
	if m.kept != nil {
		m.tell.line("%s", f.text(c))
	}
	m.played = map[string]played{}
	for round := 1; round <= m.Rounds; round++ {
		for i := range m.plans {
			if err := m.round(ctx, c, f, &m.plans[i], round); err != nil {
				return m.unfinished(ctx, c, f, err)
			}
		}
	}
	return c, m.put(c)
}

// unfinished returns the result after an error: after an interrupt, the complete trials, if there are any.
func (m *matrix) unfinished(ctx context.Context, c *report.Comparison, f *forecast, err error) (*report.Comparison, error) {
	if ctx.Err() == nil {
		return nil, err
	}
	left, _ := f.left(c)
	over := interruptedError{fmt.Sprintf("interrupted: %d of %d runs were over", f.all()-left, f.all())}
	if len(c.Trials) == 0 {
		return nil, over
	}
	c.MakeRows(report.Spec{Plans: m.plans, Schedulers: m.Schedulers})
	return c, over
}

// played is the recording that null replays for a workload, or the reason why there is none.
type played struct{ file, cannot string }

// round makes the trials of one round of a workload. The run that null replays is recorded when it is first needed.
func (m *matrix) round(ctx context.Context, c *report.Comparison, f *forecast, p *workload.Plan, round int) error {
	turns := slices.DeleteFunc(m.missing(c, p), func(t turn) bool { return t.round != round })
	play, known := m.played[p.Name]
	if !known && slices.ContainsFunc(turns, func(t turn) bool { return t.scheduler == report.Null }) {
		if play = m.record(ctx, p); ctx.Err() != nil {
			return context.Cause(ctx)
		}
		m.played[p.Name] = play
	}
	for _, next := range turns {
		t := report.Trial{Workload: p.Name, Scheduler: next.scheduler, Round: next.round, Failure: play.cannot}
		if next.scheduler != report.Null || play.cannot == "" {
			began := time.Now()
			t = m.trial(ctx, p, next.scheduler, next.round, play.file, nil)
			t.TookSeconds = time.Since(began).Seconds()
		}
		t.Date = time.Now().UTC().Format(time.RFC3339)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		m.printTrial(&t)
		c.Trials = append(c.Trials, t)
		if m.kept == nil {
			continue
		}
		if err := m.put(c); err != nil {
			return err
		}
		m.tell.line("%s", f.text(c))
	}
	return nil
}

// printTrial prints the result of a trial.
func (m *matrix) printTrial(t *report.Trial) {
	if t.Failure != "" {
		m.tell.line("%s, %s, round %d: %s", t.Workload, t.Scheduler, t.Round, t.Failure)
		return
	}
	m.tell.line("%s, %s, round %d: %d of %d pods, %.0f pods/s, p99 %s, idle %.0f%%, others %.0f%%", t.Workload, t.Scheduler, t.Round,
		t.Bound, t.Pods, t.PodsPerSecond, t.Latency.P99.Text(), 100*t.Idle, 100*t.Others)
}

// put computes the rows of the existing trials, and saves the report.
func (m *matrix) put(c *report.Comparison) error {
	c.MakeRows(report.Spec{Plans: m.plans, Schedulers: m.Schedulers})
	return m.kept.Put(c)
}

// turn is a trial to be made.
type turn struct {
	scheduler string
	round     int
}

// missing returns the trials of a workload that were not made yet, round by round.
func (m *matrix) missing(c *report.Comparison, p *workload.Plan) []turn {
	var out []turn
	for round := 1; round <= m.Rounds; round++ {
		for _, name := range m.Schedulers {
			if !slices.ContainsFunc(c.TrialsOf(p.Name, name), func(t report.Trial) bool { return t.Round == round }) {
				out = append(out, turn{name, round})
			}
		}
	}
	return out
}

// forecast estimates how long the missing trials will take.
type forecast struct {
	m     *matrix
	began time.Time
	had   int // trials that were kept from before
}

func (m *matrix) forecast(c *report.Comparison) *forecast {
	return &forecast{m: m, began: time.Now(), had: len(c.Trials)}
}

// Estimates before the first trial on this machine: the start of a cluster, then nodes and pods per second.
const (
	guessStart = 9 * time.Second
	guessNodes = 1000
	guessPods  = 250
)

func guess(p *workload.Plan) float64 {
	s := report.SizeOf(p)
	return guessStart.Seconds() + float64(s.Nodes)/guessNodes + float64(s.Pods)/guessPods
}

// left returns the number of missing trials, and an estimate of their seconds: as long as those of the same workload
// and scheduler, otherwise the estimate times the error factor of earlier estimates.
func (f *forecast) left(c *report.Comparison) (trials int, seconds float64) {
	took, guessed := 0.0, 0.0
	for i := range f.m.plans {
		p := &f.m.plans[i]
		for _, t := range c.Trials {
			if t.Workload == p.Name && t.TookSeconds > 0 {
				took, guessed = took+t.TookSeconds, guessed+guess(p)
			}
		}
	}
	off := 1.0
	if guessed > 0 {
		off = took / guessed
	}
	for i := range f.m.plans {
		p := &f.m.plans[i]
		turns := f.m.missing(c, p)
		_, recorded := f.m.played[p.Name] // a run that is recorded for null comes first
		plays := false
		for _, next := range turns {
			one := report.Median(report.Figures(c.TrialsOf(p.Name, next.scheduler), func(t *report.Trial) float64 { return t.TookSeconds }))
			if !(one > 0) {
				one = off * guess(p)
			}
			trials++
			seconds += one
			plays = plays || next.scheduler == report.Null
		}
		if plays && !recorded {
			seconds += off * guess(p)
		}
	}
	return trials, seconds
}

// all returns the total number of trials.
func (f *forecast) all() int {
	all := 0
	for i := range f.m.plans {
		all += len(f.m.missing(&report.Comparison{}, &f.m.plans[i]))
	}
	return all
}

// text returns the progress.
func (f *forecast) text(c *report.Comparison) string {
	trials, seconds := f.left(c)
	all := f.all()
	done := fmt.Sprintf("%d of %d runs are over", all-trials, all)
	if len(c.Trials) > f.had {
		done += " after " + minutes(time.Since(f.began).Seconds())
	}
	if trials == 0 {
		return done
	}
	return done + ", about " + minutes(seconds) + " to go"
}

func minutes(seconds float64) string {
	if m := int(seconds/60 + 0.5); m >= 60 {
		return fmt.Sprintf("%d h %02d min", m/60, m%60)
	} else if m > 1 {
		return fmt.Sprintf("%d min", m)
	}
	return fmt.Sprintf("%.0f s", seconds)
}
