// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/scaling"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
	"github.com/kumiki-scheduler/kumiki/bench/usage"
	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

// sweepFlags are the flags of NewSweepCommand.
type sweepFlags struct {
	fileFlags
	set, plot string
}

// sweepFormats are the values of -o.
var sweepFormats = []string{"table", "json", "yaml"}

// NewSweepCommand returns the command that measures a workload with several values of a setting: `kumiki profile
// sweep`.
func NewSweepCommand() *cobra.Command {
	var o testbed.Options
	var f sweepFlags
	cmd := &cobra.Command{
		Use:   "sweep",
		Short: "Measure a workload with several values of a setting, and fit laws of scaling",
		Long: `Measure a workload with several values of a setting: parallelism (goroutines for one decision),
GOMAXPROCS (processors of the scheduler's process) or inFlightBinds (kumiki's concurrent binds). Each run
has a fresh local cluster; the values take turns, so that a change of the machine's speed affects all of
them. The result has throughput, CPU time, latency and conflicts for each value, and fits of Amdahl's law
and of the universal scalability law (USL) to the throughput. A fit that the measurements do not
determine says so.

After an interrupt the result contains the runs that were complete. The exit code is 1 if a run failed or
was not made.`,
		Example: `  kumiki profile sweep --workload spread --match small --set parallelism=1,2,4,8,16 --runs 3
  kumiki profile sweep -f w.yaml --set GOMAXPROCS=1,2 --scheduler kumiki,kube-scheduler --plot gomaxprocs.svg`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usage.Errorf("sweep takes no arguments, got %q", args)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := f.measure(cmd, o)
			if s == nil {
				return err
			}
			if f.plot != "" && len(s.Points) > 0 {
				err = errors.Join(report.ReplaceFile(f.plot, []byte(s.Plot())), err)
			}
			if err := errors.Join(s.Write(cmd.OutOrStdout(), f.format), err); err != nil {
				return err
			}
			if s.Failed > 0 {
				cmd.SilenceUsage = true
				return fmt.Errorf("%d of %d runs failed", s.Failed, s.Runs)
			}
			return nil
		},
	}
	fs := cmd.Flags()
	fs.StringVarP(&f.file, "file", "f", "", "read the workload from this `file`")
	fs.StringVar(&f.name, "workload", "", "run the built-in workload of the case with this `name`")
	fs.StringVar(&f.match, "match", "", "run the workload whose case/workload matches the `regexp`")
	fs.StringVar(&f.set, "set", "", "the setting and its values: "+strings.Join(testbed.SettingNames, ", ")+
		", as in parallelism=1,2,4,8,16")
	fs.StringVar(&f.plot, "plot", "", "write a plot of the throughput to this SVG `file`")
	addFlags(fs, &o, 2, []string{report.Upstream}, 10*time.Minute)
	fs.StringVarP(&f.format, "output", "o", "table", "output format: "+strings.Join(sweepFormats, ", "))
	endsWhenInterrupted(cmd)
	return cmd
}

// Sweep is what was measured.
type Sweep struct {
	Date     string         `json:"date"`
	Workload string         `json:"workload"`
	Setting  string         `json:"setting"`
	Machine  report.Machine `json:"machine"`
	// Runs were to be made, Failed of them did not end well or were not made.
	Runs   int          `json:"runs"`
	Failed int          `json:"failed"`
	Points []SweepPoint `json:"points"`
	Fits   []SweepFits  `json:"fits"`
	Notes  []string     `json:"notes,omitempty"`
}

// SweepPoint has the runs of a scheduler with one value.
type SweepPoint struct {
	Scheduler     string        `json:"scheduler"`
	Value         int           `json:"value"`
	Runs          int           `json:"runs"`
	PodsPerSecond report.Spread `json:"podsPerSecond"`
	// CPUPerPod is the CPU time of the scheduler for a bound pod, in seconds.
	CPUPerPod report.Spread  `json:"cpuSecondsPerPod"`
	P99       report.Seconds `json:"p99Seconds"`
	// Conflicts are the answers 409 for a bound pod. Attempts are those of the scheduler for a bound pod.
	Conflicts float64 `json:"conflictsPerPod"`
	Attempts  float64 `json:"attemptsPerPod"`
	// Others is the share of the machine that other processes used.
	Others float64   `json:"othersShare"`
	Each   []float64 `json:"each"` // pods per second of each run
}

// SweepFits are the fits of a scheduler.
type SweepFits struct {
	Scheduler string      `json:"scheduler"`
	Amdahl    scaling.Fit `json:"amdahl"`
	USL       scaling.Fit `json:"usl"`
}

// sweepTurn is a run to be made.
type sweepTurn struct {
	round     int
	setting   testbed.Setting
	scheduler string
}

func (f *sweepFlags) measure(cmd *cobra.Command, o testbed.Options) (*Sweep, error) {
	if !slices.Contains(sweepFormats, f.format) {
		return nil, usage.Errorf("output %q is unknown; there are %s", f.format, strings.Join(sweepFormats, ", "))
	}
	settings, err := testbed.ParseSettings(f.set)
	if err != nil {
		return nil, err
	}
	if f.file == "" && f.name == "" && f.match == "" {
		return nil, usage.Errorf("no workload is selected: give --file, --workload or --match")
	}
	plans, err := f.plans()
	if err != nil {
		return nil, err
	}
	if len(plans) != 1 {
		return nil, usage.Errorf("sweep takes one workload, and %d are selected, among them %s and %s: give --match",
			len(plans), plans[0].Name, plans[1].Name)
	}
	for _, name := range o.Schedulers {
		if base, _, _ := strings.Cut(name, "@"); base != report.Upstream && base != report.Kumiki {
			return nil, usage.Errorf("scheduler %q has no such setting; there are %s and %s", name, report.Kumiki,
				report.Upstream)
		}
		if settings[0].Name == testbed.InFlight && name != report.Kumiki {
			return nil, usage.Errorf("%s is a setting of %s alone, not of %s", testbed.InFlight, report.Kumiki, name)
		}
	}
	if o.Rounds < 1 {
		return nil, usage.Errorf("runs must be at least 1, not %d", o.Rounds)
	}
	o.Progress = cmd.ErrOrStderr()
	return sweep(cmd.Context(), o, &plans[0], settings)
}

// sweep makes all runs: in each round every value, so that the machine's speed affects all of them alike.
func sweep(ctx context.Context, o testbed.Options, p *workload.Plan, settings []testbed.Setting) (*Sweep, error) {
	s := &Sweep{Date: time.Now().UTC().Format(time.RFC3339), Workload: p.Name, Setting: settings[0].Name}
	var err error
	if s.Machine, err = report.ThisMachine(); err != nil {
		return nil, err
	}
	var turns []sweepTurn
	for round := 1; round <= o.Rounds; round++ {
		for _, setting := range settings {
			for _, name := range o.Schedulers {
				turns = append(turns, sweepTurn{round, setting, name})
			}
		}
	}
	s.Runs = len(turns)
	tell, began := newTeller(o.Progress), time.Now()
	var trials []report.Trial
	for i, turn := range turns {
		one := o
		one.Rounds, one.Schedulers, one.Set = 1, []string{turn.scheduler}, turn.setting
		if o.Bundles != "" {
			one.Bundles = filepath.Join(o.Bundles, fmt.Sprintf("%s-%d_round-%d", turn.setting.Name, turn.setting.Value,
				turn.round))
		}
		m := &matrix{Options: one, plans: []workload.Plan{*p}, tell: tell}
		c, err := m.start(ctx)
		if ctx.Err() != nil {
			s.fill(turns, trials)
			return s, interruptedError{fmt.Sprintf("interrupted: %d of %d runs were over", len(trials), len(turns))}
		}
		if err != nil {
			return nil, err
		}
		trials = append(trials, c.Trials...)
		took := time.Since(began)
		tell.line("run %d of %d: %s=%d, %s, round %d; about %s to go", i+1, len(turns), turn.setting.Name,
			turn.setting.Value, turn.scheduler, turn.round,
			minutes(took.Seconds()/float64(i+1)*float64(len(turns)-i-1)))
	}
	s.fill(turns, trials)
	return s, nil
}

// fill computes the points and the fits of the trials that were made: the first ones of the turns.
func (s *Sweep) fill(turns []sweepTurn, trials []report.Trial) {
	s.Failed = len(turns) - len(trials)
	type key struct {
		scheduler string
		value     int
	}
	var keys []key
	good := map[key][]report.Trial{} // scheduler and value -> its runs
	for i := range turns {
		k := key{turns[i].scheduler, turns[i].setting.Value}
		if !slices.Contains(keys, k) {
			keys = append(keys, k)
		}
		if i >= len(trials) {
			continue
		}
		if t := &trials[i]; t.Good() && t.Bound > 0 {
			good[k] = append(good[k], *t)
			continue
		}
		s.Failed++
		s.Notes = append(s.Notes, fmt.Sprintf("%s, %s=%d, round %d failed: %s%s", k.scheduler, s.Setting, k.value,
			turns[i].round, trials[i].Failure, strings.Join(trials[i].Oversold, "; ")))
	}
	slices.SortStableFunc(keys, func(a, b key) int { return a.value - b.value })
	fits := map[string][]scaling.Point{} // scheduler -> measurements
	var schedulers []string
	for _, name := range schedulersOf(turns) {
		schedulers = append(schedulers, name)
		for _, k := range keys {
			if k.scheduler != name || len(good[k]) == 0 {
				continue
			}
			p := pointOf(k.scheduler, k.value, good[k])
			s.Points = append(s.Points, p)
			for _, x := range p.Each {
				fits[name] = append(fits[name], scaling.Point{N: float64(k.value), X: x})
			}
		}
	}
	for _, name := range schedulers {
		s.Fits = append(s.Fits, SweepFits{name, scaling.Of(scaling.Amdahl, fits[name]),
			scaling.Of(scaling.USL, fits[name])})
	}
	s.addNotes(schedulers)
}

// schedulersOf returns the schedulers in their order.
func schedulersOf(turns []sweepTurn) (list []string) {
	for _, t := range turns {
		if !slices.Contains(list, t.scheduler) {
			list = append(list, t.scheduler)
		}
	}
	return list
}

// pointOf summarizes the runs with one value.
func pointOf(scheduler string, value int, trials []report.Trial) SweepPoint {
	perPod := func(f func(*report.Trial) float64) []float64 {
		return report.Figures(trials, func(t *report.Trial) float64 { return f(t) / float64(t.Bound) })
	}
	each := report.Figures(trials, func(t *report.Trial) float64 { return t.PodsPerSecond })
	return SweepPoint{Scheduler: scheduler, Value: value, Runs: len(trials), PodsPerSecond: report.SpreadOf(each),
		CPUPerPod: report.SpreadOf(perPod(func(t *report.Trial) float64 { return t.SchedulerCPU })),
		P99: report.Seconds(report.Median(report.Figures(trials, func(t *report.Trial) float64 {
			return float64(t.Latency.P99)
		}))),
		Conflicts: report.Median(perPod(conflicts)),
		Attempts:  report.Median(perPod(func(t *report.Trial) float64 { return float64(t.Attempts) })),
		Others:    report.Median(report.Figures(trials, func(t *report.Trial) float64 { return t.Others })),
		Each:      each}
}

// conflicts returns the number of calls that the API server answered with 409.
func conflicts(t *report.Trial) float64 {
	n := int64(0)
	for call, times := range t.Calls { // order: a sum
		if strings.HasSuffix(call, " 409") {
			n += times
		}
	}
	return float64(n)
}

// crowded is the share of the machine used by others from which on it is noted.
const crowded = 0.05

// addNotes adds what a reader must know.
func (s *Sweep) addNotes(schedulers []string) {
	if s.Setting == testbed.Parallelism && slices.ContainsFunc(schedulers, func(name string) bool {
		return strings.HasPrefix(name, report.Kumiki)
	}) {
		s.Notes = append(s.Notes, "kumiki decides on one goroutine and accepts parallelism without effect: its "+
			"differences are those of the machine")
	}
	most, largest := 0.0, 0
	for _, p := range s.Points {
		most, largest = max(most, p.Others), max(largest, p.Value)
	}
	if most > crowded {
		s.Notes = append(s.Notes, fmt.Sprintf("other processes used up to %.0f %% of the machine: compare values of "+
			"this sweep with each other only", 100*most))
	}
	if s.Setting != testbed.InFlight && largest > s.Machine.CPUs {
		s.Notes = append(s.Notes, fmt.Sprintf("the machine has %d CPUs: larger values cannot execute at the same time",
			s.Machine.CPUs))
	}
}
