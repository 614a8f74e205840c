// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/command/tape"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/sim"
	"github.com/kumiki-scheduler/kumiki/sim/report"
	"github.com/kumiki-scheduler/kumiki/sim/scenario"
)

// simulation is a call of kumiki simulate.
type simulation struct {
	io       streams
	plugins  app.Plugins
	profiles []string
	seeds    string
	asserts  []string
	format   string
	philly   string
	vc       string
	openb    string
	from     string
	change   string
	model    string
	recorded bool
	shard    string
	to       string
	job      int
	image    string
	claim    string

	told time.Time // of the last line of progress
}

func newSimulateCommand(io streams, plugins app.Plugins) *cobra.Command {
	s := &simulation{io: io, plugins: plugins}
	c := &cobra.Command{
		Use:   "simulate [SCENARIO]",
		Short: "Run schedulers on a simulated cluster in virtual time, and report placements, waits and conflicts",
		Long: `Run the scheduler on a simulated cluster in virtual time, as a scenario file describes it, and
report what it did beside bounds that no scheduler can pass. The same scenario and seed give the same output on
every machine.

Compare configurations with several --profile, each a file or a preset: the differences are paired by seed. Check
results with --assert, or with assertions in the scenario. Exit 1 if an assertion fails, 2 if a scenario or a metric
is misspelled.

With --from, the cluster is that of kumiki capture, of a recording of kumiki scheduler --record (a file, a directory
with its segments, or the name that its segments begin with), or of the bundle of an incident; arrivals and ends are as
recorded, decisions are made anew. With --change, a second run adds the nodes, workloads and events of another file, and
the difference is reported. With --as-recorded, the outcomes of calls and the order of everything are as recorded, the
simulated API server computes what the calls do to pods, and every decision must be the recorded one.`,
		Example: `  kumiki simulate examples/simulate/zone-loss.yaml
  kumiki simulate examples/simulate/zone-loss.yaml --seeds 42-51 --profile default --profile binpack
  kumiki simulate scenario.yaml --assert 'pods.pending == 0' --assert 'timeToBind.p99 < 10s'
  kumiki simulate scenario.yaml -o html > result.html
  kumiki simulate --from monday.tape --change lose-a-zone.yaml
  kumiki simulate --from recordings/ --as-recorded`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, a []string) error {
			switch {
			case s.recorded:
				return s.runRecorded(a)
			case c.Flags().Changed("job"):
				return s.printJob(a)
			}
			return s.run(a)
		},
	}
	f := c.Flags()
	f.StringArrayVar(&s.profiles, "profile", nil,
		"scheduler configuration for all schedulers of the scenario, "+profileUsage+
			"; several are compared with the first")
	f.StringVar(&s.seeds, "seeds", "", "seeds, as 42-51 or 1,2,3 (default: those of the scenario, or 1)")
	f.StringArrayVar(&s.asserts, "assert", nil, "assertion, as 'timeToBind.p99 < 10s'; may be given several times")
	f.StringVarP(&s.format, "output", "o", "table", "output format: "+strings.Join(report.Formats, ", "))
	f.StringVar(&s.philly, "philly", "", "add the jobs of this CSV file in the form of the Philly trace")
	f.StringVar(&s.vc, "vc", "", "with --philly: the jobs of this virtual cluster alone")
	f.StringVar(&s.openb, "openb", "", "add nodes and pods of two CSV files in the form of openb, as NODES,PODS")
	f.StringVar(&s.from, "from", "",
		"simulate the cluster of a capture, a recording, its segments, or the bundle of an incident")
	f.BoolVar(&s.recorded, "as-recorded", false,
		"with --from: order and outcomes of all calls as recorded; exit 1 if a decision differs")
	f.StringVar(&s.change, "change", "", "with --from: a scenario file with what is different in a second run")
	f.StringVar(&s.model, "model", "", "latencies of the simulated cluster, of kumiki simulate fit")
	c.AddCommand(newSizeCommand(io, plugins), newShrinkCommand(io, plugins), newFitCommand(io, plugins),
		newCheckCommand(io, plugins), newMergeCommand(io))
	f.StringVar(&s.shard, "shard", "",
		"make each N-th run only, from I on, as I/N with I from 0; the output is for merge")
	f.StringVar(&s.to, "to", "", "with --shard: file to write")
	f.IntVar(&s.job, "job", 0, "print an Indexed Job with so many shards, and run nothing")
	f.StringVar(&s.image, "image", "", "with --job: image whose entry is kumiki")
	f.StringVar(&s.claim, "claim", "", "with --job: PersistentVolumeClaim for the results")
	return c
}

// variant is a scenario under a configuration, as one column of the report.
type variant struct {
	name   string
	file   *scenario.File
	dir    string // of the scenario file
	config string // overrides those of the scenario; empty for not
}

func (s *simulation) run(a []string) error {
	if !slices.Contains(report.Formats, s.format) {
		return usageError{fmt.Errorf("output must be one of %s", strings.Join(report.Formats, ", "))}
	}
	variants, err := s.variants(a)
	if err != nil {
		return usageError{err}
	}
	base := variants[0].file
	if s.model != "" {
		model, err := readModel(s.model)
		if err != nil {
			return usageError{err}
		}
		for _, v := range variants {
			v.file.Model = *model
		}
	}
	if s.seeds == "" {
		s.seeds = base.Seeds
	}
	seeds, err := scenario.Seeds(s.seeds)
	if err != nil {
		return usageError{err}
	}
	checks, err := s.assertions(variants, seeds[0])
	if err != nil {
		return usageError{err}
	}
	part := report.Shard{Of: 1}
	if s.shard != "" {
		if part.Index, part.Of, err = parseShard(s.shard); err == nil {
			part.Input, err = s.digest(a)
		}
		if err != nil {
			return usageError{err}
		}
	} else if s.to != "" {
		return usageError{errors.New("--to needs --shard")}
	}
	var results []sim.Result
	var names []string
	for i, v := range variants {
		names = append(names, v.name)
		for k, seed := range seeds {
			if !part.Has(i*len(seeds) + k) {
				continue
			}
			result, err := s.simulate(v, seed, len(results)+1, len(variants)*len(seeds))
			if err != nil {
				return err
			}
			results = append(results, result)
		}
	}
	failed := []report.Failure{}
	for i := range results {
		for _, check := range checks {
			if err := check.Check(&results[i]); err != nil {
				failed = append(failed, report.Failure{Profile: results[i].Profile, Seed: results[i].Seed,
					What: err.Error()})
			}
		}
	}
	if s.shard != "" {
		part.Scenario, part.Profiles, part.Seeds, part.Results, part.Failed = base.Name, names, seeds, results, failed
		return s.writeShard(&part)
	}
	out := report.New(base.Name, names, seeds, results)
	out.Failed = failed
	return finishReport(s.io, out, s.format)
}

// variants returns the columns of the report.
func (s *simulation) variants(a []string) ([]variant, error) {
	if len(a) == 0 && s.from == "" && s.openb == "" {
		return nil, errors.New("name a scenario file, or use --from or --openb")
	}
	if s.change != "" && (s.from == "" || len(s.profiles) > 1) {
		return nil, errors.New("--change needs --from, and at most one --profile")
	}
	file, dir := &scenario.File{Name: "without a scenario file"}, "."
	if len(a) == 1 {
		var err error
		if file, err = readScenario(a[0]); err != nil {
			return nil, err
		}
		dir = filepath.Dir(a[0])
	}
	for _, why := range file.Skipped {
		fmt.Fprintf(s.io.Err, "note: %s\n", why)
	}
	if err := s.addTraces(file); err != nil {
		return nil, err
	}
	if s.change != "" {
		changed, err := readScenario(s.change)
		if err != nil {
			return nil, err
		}
		changed.Traces = file.Traces
		if changed.Until == 0 {
			changed.Until = file.Until
		}
		config := ""
		if len(s.profiles) == 1 {
			config = s.profiles[0]
		}
		return []variant{{"as captured", file, dir, config}, {"changed", changed, filepath.Dir(s.change), config}}, nil
	}
	if len(s.profiles) == 0 {
		return []variant{{"default", file, dir, ""}}, nil
	}
	var list []variant
	for _, p := range s.profiles {
		name := strings.TrimSuffix(filepath.Base(p), filepath.Ext(p))
		if slices.ContainsFunc(list, func(v variant) bool { return v.name == name }) {
			name = p
		}
		list = append(list, variant{name, file, dir, p})
	}
	return list, nil
}

func readScenario(path string) (*scenario.File, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("simulate: %w", err)
	}
	f, err := scenario.Read(text)
	if err != nil {
		return nil, fmt.Errorf("simulate %s:\n%w", path, err)
	}
	if err := f.OpenTraces(filepath.Dir(path)); err != nil {
		return nil, fmt.Errorf("simulate %s: %w", path, err)
	}
	if f.Name == "" {
		f.Name = strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	}
	return f, nil
}

// addTraces adds what flags name to a scenario.
func (s *simulation) addTraces(f *scenario.File) error {
	if s.philly != "" {
		if err := s.phillyTrace(f); err != nil {
			return fmt.Errorf("--philly %s: %w", s.philly, err)
		}
	}
	if s.openb != "" {
		if err := s.openbTrace(f); err != nil {
			return fmt.Errorf("--openb %s: %w", s.openb, err)
		}
	}
	if s.from == "" {
		return nil
	}
	names, err := tape.Files(s.from)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	c := &scenario.Capture{}
	if err := tape.Events(names, s.plugins, c.Add); err != nil {
		return fmt.Errorf("--from %w", err)
	}
	f.Name = filepath.Base(s.from)
	f.Traces = append(f.Traces, c)
	if f.Until == 0 {
		f.Until = c.Length() + time.Hour
	}
	return nil
}

func (s *simulation) phillyTrace(f *scenario.File) error {
	in, err := os.Open(s.philly)
	if err != nil {
		return err
	}
	defer in.Close()
	rows, err := scenario.ReadPhilly(in, s.vc)
	if err != nil {
		return err
	}
	s.addRows(f, s.philly, rows)
	return nil
}

func (s *simulation) openbTrace(f *scenario.File) error {
	nodes, pods, is := strings.Cut(s.openb, ",")
	if !is {
		return errors.New("name two files, as NODES,PODS")
	}
	n, err := os.Open(nodes)
	if err != nil {
		return err
	}
	defer n.Close()
	p, err := os.Open(pods)
	if err != nil {
		return err
	}
	defer p.Close()
	rows, err := scenario.ReadOpenb(n, p)
	if err != nil {
		return err
	}
	s.addRows(f, pods, rows)
	return nil
}

// addRows adds a trace, and says which rows it lacks.
func (s *simulation) addRows(f *scenario.File, path string, rows *scenario.Rows) {
	for _, why := range rows.SortedSkips() {
		fmt.Fprintf(s.io.Err, "note: %s is without %s\n", path, why)
	}
	f.Traces = append(f.Traces, rows)
	if f.Until == 0 {
		f.Until = 2*rows.Length() + time.Hour
	}
}

// assertions parses the assertions, and returns an error if one names a metric that the runs do not have.
func (s *simulation) assertions(variants []variant, seed uint64) (list []scenario.Assertion, err error) {
	texts := slices.Concat(variants[len(variants)-1].file.Assertions, s.asserts)
	for _, text := range texts {
		a, err := scenario.ParseAssertion(text)
		if err != nil {
			return nil, err
		}
		list = append(list, a)
	}
	for _, v := range variants { // also without assertions: a mistake in a configuration is found here
		run, err := s.start(v, seed)
		if err != nil {
			return nil, err
		}
		names := run.Names()
		for _, a := range list {
			for _, name := range a.Unknown(names) {
				if near := scenario.Closest(name, names); near != "" {
					return nil, fmt.Errorf("assertion %q: there is no metric %s; did you mean %s?", a.Text, name, near)
				}
				return nil, fmt.Errorf("assertion %q: there is no metric %s", a.Text, name)
			}
		}
	}
	return list, nil
}

// simulate makes one run.
func (s *simulation) simulate(v variant, seed uint64, number, of int) (sim.Result, error) {
	run, err := s.start(v, seed)
	if err != nil {
		return sim.Result{}, err
	}
	limit := v.file.Limit()
	result := run.Finish(func(now time.Duration) {
		if time.Since(s.told) < 2*time.Second {
			return
		}
		s.told = time.Now()
		fmt.Fprintf(s.io.Err, "run %d of %d (%s, seed %d): %s of at most %s of virtual time\n", number, of, v.name,
			seed, now.Round(time.Second), limit)
	})
	result.Profile = v.name
	return result, nil
}

// start makes the schedulers of a run, and what they run on.
func (s *simulation) start(v variant, seed uint64) (*scenario.Run, error) {
	entries := v.file.Schedulers
	if len(entries) == 0 {
		entries = []scenario.Scheduler{{Name: "kumiki"}}
	}
	configs := make([]config.Resolved, len(entries))
	served := map[string]bool{} // scheduler name -> some scheduler has a profile of it
	for i, e := range entries {
		c, err := s.configuration(v, e)
		if err != nil {
			return nil, err
		}
		configs[i] = c
		for _, p := range c.Profiles {
			served[p.SchedulerName] = true
		}
	}
	var list []sim.Scheduler
	for i, e := range entries {
		c := configs[i]
		c.Profiles = slices.Clone(c.Profiles)
		for _, name := range v.file.SchedulerNames() {
			if !served[name] {
				alias := c.Profiles[0]
				alias.SchedulerName = name
				c.Profiles = append(c.Profiles, alias)
			}
		}
		copies := max(e.Copies, 1)
		for k := range copies {
			made, err := s.plugins.EngineConfig(c)
			if err != nil {
				return nil, fmt.Errorf("scheduler %s: %w", e.Name, err)
			}
			made.UnschedulableTimeout = record.Time(app.DefaultOptions().UnschedulableTimeout)
			made.Seed += seed + uint64(k)<<32
			one := sim.Scheduler{Name: e.Name, Make: func() sim.Stepper { return engine.New(made) }}
			if copies > 1 {
				one.Name = fmt.Sprintf("%s-%d", e.Name, k)
			}
			if e.Split {
				one.Copy, one.Copies = k, copies
			}
			list = append(list, one)
		}
	}
	return v.file.Start(seed, list)
}

// configuration reads the configuration of a scheduler.
func (s *simulation) configuration(v variant, e scenario.Scheduler) (config.Resolved, error) {
	if v.config != "" || e.Config == "" {
		return profileConfig(s.plugins, v.config)
	}
	path := e.Config
	if !filepath.IsAbs(path) {
		path = filepath.Join(v.dir, path)
	}
	return simulatedConfig(s.plugins, path)
}
