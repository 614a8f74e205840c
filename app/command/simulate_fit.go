// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/command/tape"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/sim"
	"github.com/kumiki-scheduler/kumiki/sim/fit"
	"github.com/kumiki-scheduler/kumiki/sim/scenario"
)

func newFitCommand(io streams, plugins app.Plugins) *cobra.Command {
	var out output
	var to string
	c := &cobra.Command{
		Use:   "fit RECORDING...",
		Short: "Fit the latencies of the simulated cluster to recordings",
		Long: `Learn from recordings how long decisions, binds, the watch and evictions take, and print how well the
fitted distributions match. With --to, write a model for kumiki simulate --model.

A recording has the times of the turns of the scheduling loop. Record under load: the durations of decisions are taken
from turns with many of them.`,
		Example: `  kumiki simulate fit burst.tape churn.tape --to model.yaml
  kumiki simulate scenario.yaml --model model.yaml`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, a []string) error {
			if to != "" {
				if _, err := os.Lstat(to); err == nil {
					return usageError{fmt.Errorf("fit: %s exists", to)}
				}
			}
			seen, err := observeAll(io, plugins, a)
			if err != nil {
				return usageError{fmt.Errorf("fit: %w", err)}
			}
			m := seen.Fit()
			if len(m.Parts) == 0 {
				return errors.New("fit: the recordings have too few decisions and binds to learn from")
			}
			if to != "" {
				if err := os.WriteFile(to, []byte(modelText(m)), 0o600); err != nil {
					return fmt.Errorf("fit: %w", err)
				}
			}
			return out.print(io.Out, m.Parts, func(bool) error { return showFit(io, m) })
		},
	}
	out.addFlag(c)
	c.Flags().StringVar(&to, "to", "", "file to write the model to; an existing file is not overwritten")
	return c
}

// observeAll replays recordings. The limit on binds in flight is that of the first one.
func observeAll(io streams, plugins app.Plugins, recordings []string) (seen *fit.Observed, err error) {
	note := func(text string) { fmt.Fprintln(io.Err, "note: "+text) }
	for _, from := range recordings {
		names, err := tape.Files(from)
		if err != nil {
			return nil, err
		}
		conf, _, err := tape.Config(names[0], plugins)
		if err != nil {
			return nil, err
		}
		if seen == nil {
			seen = fit.New(conf.Kumiki.InFlightBinds)
		}
		if err := tape.PlayFiles(names, plugins, note, func(_ *engine.Engine, step tape.Step) error {
			seen.Add(step.Event, step.Effects)
			return nil
		}); err != nil {
			return nil, err
		}
		seen.End()
	}
	return seen, nil
}

func showFit(io streams, m *fit.Model) error {
	table := tabwriter.NewWriter(io.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(table, "PART\tSAMPLES\tFITTED\tERROR OF MEDIAN\tERROR OF P99")
	for _, p := range m.Parts {
		fmt.Fprintf(table, "%s\t%d\t%s\t%.0f %%\t%.0f %%\n", p.Name, p.Samples, form(p.Fitted), 100*p.Error, 100*p.Tail)
	}
	return table.Flush()
}

// form is a distribution as scenario files have it, in microseconds.
func form(d sim.Durations) string {
	d.A, d.B = d.A.Round(time.Microsecond), d.B.Round(time.Microsecond)
	for i, step := range d.Steps {
		d.Steps[i] = step.Round(time.Microsecond)
	}
	return d.String()
}

// modelText is a model as a file.
func modelText(m *fit.Model) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Fitted by kumiki simulate fit.\nmodel:\n  nodes: %d\n", m.Nodes)
	if m.InFlight > 0 {
		fmt.Fprintf(&b, "  inFlight: %d\n", m.InFlight)
	}
	var decisions []string
	var slowest time.Duration // for paths that no recording has
	for _, path := range []record.Path{record.Ranked, record.Grouped, record.Scanned} {
		if d, is := m.Decisions[path]; is {
			decisions = append(decisions, fmt.Sprintf("%s: %s", path, d.Round(time.Microsecond)))
			slowest = max(slowest, d)
		}
	}
	if len(decisions) > 0 {
		fmt.Fprintf(&b, "  decision: %s\n", slowest.Round(time.Microsecond))
		fmt.Fprintf(&b, "  decisions: {%s}\n", strings.Join(decisions, ", "))
	}
	if len(m.Loads) > 0 {
		b.WriteString("  loads:\n")
	}
	for _, c := range m.Loads {
		fmt.Fprintf(&b, "  - {sent: %d, latency: %s}\n", c.InFlight, form(c.Latency))
	}
	if m.Answer != nil && !m.Answer.IsZero() {
		fmt.Fprintf(&b, "  answer: %s\n", form(*m.Answer))
	}
	if m.Watch != nil {
		fmt.Fprintf(&b, "  watch: %s\n", form(*m.Watch))
	}
	if m.Sight != nil {
		fmt.Fprintf(&b, "  sight: %s\n", form(*m.Sight))
	}
	if m.Stop != nil {
		fmt.Fprintf(&b, "  stop: %s\n", form(*m.Stop))
	}
	return b.String()
}

// readModel reads the model of a file.
func readModel(path string) (*scenario.Model, error) {
	f, err := readScenario(path)
	if err != nil {
		return nil, err
	}
	if len(f.Nodes)+len(f.Workloads)+len(f.Events)+len(f.Schedulers) > 0 {
		return nil, fmt.Errorf("simulate %s: a model has the field model alone", path)
	}
	return &f.Model, nil
}

// checking is a call of kumiki simulate check.
type checking struct {
	io         streams
	plugins    app.Plugins
	out        output
	profile    string
	throughput float64 // percent
	p50, p99   float64
}

func newCheckCommand(io streams, plugins app.Plugins) *cobra.Command {
	s := &checking{io: io, plugins: plugins}
	c := &cobra.Command{
		Use:   "check MODEL RECORDING",
		Short: "Compare a simulation under a fitted model with a recording",
		Long: `Simulate a recording, with the arrivals and ends that it has and decisions made anew, under a model of
kumiki simulate fit. Compare throughput and waits with those of the recording: a wait is from the creation of a pod
until the scheduler knows that it is bound. Use a recording that the model was not fitted to. The simulated scheduler
has the configuration of the recording, unless --profile names another.

Exit 1 if a figure is further from the recorded one than allowed.`,
		Example: `  kumiki simulate check model.yaml gangs.tape`,
		Args:    args(cobra.ExactArgs(2)),
		RunE:    func(_ *cobra.Command, a []string) error { return s.run(a[0], a[1]) },
	}
	s.out.addFlag(c)
	f := c.Flags()
	f.StringVar(&s.profile, "profile", "", "scheduler configuration, "+profileUsage)
	f.Float64Var(&s.throughput, "throughput", 10, "allowed error of the throughput, in percent")
	f.Float64Var(&s.p50, "p50", 15, "allowed error of the median wait, in percent")
	f.Float64Var(&s.p99, "p99", 30, "allowed error of the 99th percentile of waits, in percent")
	return c
}

// checkReport is the output of kumiki simulate check.
type checkReport struct {
	Recorded  fit.Figures `json:"recorded"`
	Simulated fit.Figures `json:"simulated"`
	Rows      []checkRow  `json:"rows"`
}

// checkRow is one figure. Error and Allowed are shares.
type checkRow struct {
	Name      string  `json:"name"`
	Recorded  float64 `json:"recorded"`
	Simulated float64 `json:"simulated"`
	Error     float64 `json:"error"`
	Allowed   float64 `json:"allowed"`
}

// observing is a scheduler whose events are observed.
type observing struct {
	sim.Stepper
	seen *fit.Observed
}

func (o *observing) Step(ev engine.Event) []engine.Effect {
	effects := o.Stepper.Step(ev)
	o.seen.Add(ev, effects)
	return effects
}

func (s *checking) run(model, from string) error {
	m, err := readModel(model)
	if err != nil {
		return usageError{err}
	}
	then, err := observeAll(s.io, s.plugins, []string{from})
	if err != nil {
		return usageError{fmt.Errorf("check: %w", err)}
	}
	conf, plugins, c, err := s.read(from)
	if err != nil {
		return usageError{fmt.Errorf("check: %w", err)}
	}
	if n := m.Nodes; n != nil && *n > 0 && (then.Nodes > 2**n || 2*then.Nodes < *n) {
		fmt.Fprintf(s.io.Err, "warning: the model was fitted to %d nodes, the recording has %d\n", *n, then.Nodes)
	}
	made, err := stepper(plugins, conf, c.SchedulerNames())
	if err != nil {
		return usageError{fmt.Errorf("check: %w", err)}
	}
	var assumed time.Duration
	if m.Sight != nil {
		assumed = m.Sight.Median()
	}
	arrivals := then.Arrivals(assumed)
	c.Arrive = func(p *cluster.Pod, seen record.Time) record.Time { return arrivals.Created(p.Created, seen) }
	limit := sim.DefaultModel().InFlight
	if m.InFlight != nil {
		limit = *m.InFlight
	}
	now := fit.New(limit)
	f := &scenario.File{Name: "check", Model: *m, Until: c.Length() + time.Hour, Traces: []scenario.Trace{c}}
	observed := func() sim.Stepper { return &observing{made(), now} }
	run, err := f.Start(1, []sim.Scheduler{{Name: "kumiki", Make: observed}})
	if err != nil {
		return fmt.Errorf("check: %w", err)
	}
	run.Finish(nil)
	return s.compare(then.Figures(assumed), now.Figures(assumed))
}

// read returns the configuration of the simulated scheduler, which is that of the recording unless another was named,
// and what happened in the recording.
func (s *checking) read(from string) (conf config.Resolved, plugins app.Plugins, c *scenario.Capture, err error) {
	names, err := tape.Files(from)
	if err == nil {
		conf, plugins, err = tape.Config(names[0], s.plugins)
	}
	if err == nil && s.profile != "" {
		plugins = s.plugins
		conf, err = profileConfig(s.plugins, s.profile)
	}
	if err != nil {
		return conf, plugins, nil, err
	}
	c = &scenario.Capture{}
	return conf, plugins, c, tape.Events(names, s.plugins, c.Add)
}

// compare prints both, and returns an error if they are too different.
func (s *checking) compare(then, now fit.Figures) error {
	r := checkReport{Recorded: then, Simulated: now}
	if then.Pods == 0 {
		return errors.New("check: no pod was bound in the recording")
	}
	var far []string
	for _, row := range []checkRow{
		{Name: "bound pods per second", Recorded: then.Throughput, Simulated: now.Throughput,
			Allowed: s.throughput / 100},
		{Name: "wait, p50 (s)", Recorded: then.P50.Seconds(), Simulated: now.P50.Seconds(), Allowed: s.p50 / 100},
		{Name: "wait, p99 (s)", Recorded: then.P99.Seconds(), Simulated: now.P99.Seconds(), Allowed: s.p99 / 100},
	} {
		if row.Error = fit.Deviation(row.Simulated, row.Recorded); row.Error > row.Allowed {
			far = append(far, row.Name)
		}
		r.Rows = append(r.Rows, row)
	}
	err := s.out.print(s.io.Out, r, func(bool) error {
		table := tabwriter.NewWriter(s.io.Out, 0, 8, 2, ' ', 0)
		fmt.Fprintln(table, "FIGURE\tRECORDED\tSIMULATED\tERROR\tALLOWED")
		fmt.Fprintf(table, "pods\t%d\t%d\t\t\n", then.Pods, now.Pods)
		for _, row := range r.Rows {
			fmt.Fprintf(table, "%s\t%.4g\t%.4g\t%.0f %%\t%.0f %%\n", row.Name, row.Recorded, row.Simulated,
				100*row.Error, 100*row.Allowed)
		}
		return table.Flush()
	})
	if err == nil && len(far) > 0 {
		err = fmt.Errorf("check: too far from the recording: %s", strings.Join(far, ", "))
	}
	return err
}
