// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/bench/core"
	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
	"github.com/kumiki-scheduler/kumiki/bench/usage"
	"github.com/kumiki-scheduler/kumiki/bench/workload"
	"github.com/kumiki-scheduler/kumiki/bench/workloads"
)

// fileFlags select the workloads to run.
type fileFlags struct {
	file, name, match, labels string
	topic, format             string
	rate                      float64
	ablate                    []string
	prove                     bool
}

// runsWorkloads makes bench itself a command that runs workloads.
func runsWorkloads(cmd *cobra.Command) {
	var o testbed.Options
	var f fileFlags
	cmd.Long = `Measure schedulers against each other on this machine.

Each scheduler is a process of its own against a fresh local cluster, and the schedulers take turns. The workloads are
built in ('kumiki bench table --labels= --list' lists them), or are read from a file in the format of the
performance-config.yaml of scheduler_perf. The schedulers are

  kumiki               this program
  kube-scheduler       upstream's scheduler; kube-scheduler@100 is the same with percentageOfNodesToScore 100
  null                 a no-op binder: it replays the writes of a recorded run of kube-scheduler, or of kumiki if
                       kube-scheduler is not built or its run failed. It is the upper bound on this machine; ratios
                       to it are valid if it leaves less than 5 % of the machine idle
  create-only          no scheduler: the pods are created and not bound
  PATH                 a program that accepts the flags of kube-scheduler
  NAME@FILE            a scheduler with the settings of a KubeSchedulerConfiguration, except its client connection; the
                       report names it by the file's name without directory and ending
  NAME~PLUGIN          a scheduler whose configuration disables a plugin

A run ends if no pod makes progress for the time of --patience; its remaining pods count as never bound. After an
interrupt the report contains the runs that were complete. The exit code is 1 if a run failed, a threshold was missed,
or not all runs were made.`
	cmd.Example = `  kumiki bench --workload basic --match small --runs 3
  kumiki bench --match '^gangs/' --scheduler kumiki,kube-scheduler,null
  kumiki bench -f performance-config.yaml --labels performance --scheduler kumiki,kube-scheduler@100,null -o html > report.html`
	cmd.Args = cobra.NoArgs
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if f.file == "" && f.name == "" && f.match == "" && f.labels == "" {
			if cmd.Flags().NFlag() > 0 {
				return usage.Errorf("no workloads are selected: give --file, --workload, --match or --labels; " +
					"'kumiki bench table --labels= --list' lists the built-in ones")
			}
			return cmd.Help()
		}
		if f.prove {
			return f.runProof(cmd, o)
		}
		return f.run(cmd, o)
	}
	fs := cmd.Flags()
	fs.BoolVar(&f.prove, "prove", false,
		"profile one scheduler on one workload, change the setting of its bottleneck (inFlightBinds or qps), measure "+
			"again, and compare the gain with what 'kumiki profile why' predicts")
	fs.StringVarP(&f.file, "file", "f", "", "read the workloads from this `file`")
	fs.StringVar(&f.name, "workload", "",
		"run the built-in workloads of the case with this `name` (default: all cases)")
	fs.StringVar(&f.match, "match", "", "run only workloads whose case/workload matches the `regexp`")
	fs.StringVar(&f.labels, "labels", "",
		"run only workloads with these labels, or with - without them, such as performance,-large")
	addFlags(fs, &o, 5, []string{report.Kumiki, report.Upstream, report.Null}, 30*time.Minute)
	fs.Float64Var(&f.rate, "rate", 0,
		"create this many pods per second, even if the API server accepts them more slowly; 0 creates them as fast "+
			"as it accepts them")
	fs.StringVar(&f.topic, "topic", "", "use the thresholds for the topic of this `name`, if a workload has any")
	fs.StringSliceVar(&f.ablate, "ablate", nil,
		"measure kumiki without each of these `plugins` as well, to show their cost")
	addFormat(fs, &f.format)
}

func (f *fileFlags) run(cmd *cobra.Command, o testbed.Options) error {
	if err := knownFormat(f.format); err != nil {
		return err
	}
	if f.rate < 0 {
		return usage.Errorf("rate %g: it must not be below 0", f.rate)
	}
	if err := ablate(&o, f.ablate); err != nil {
		return err
	}
	plans, err := f.plans()
	if err != nil {
		return err
	}
	o.Progress = cmd.ErrOrStderr()
	m := &matrix{Options: o, plans: plans, rate: f.rate, topic: f.topic, tell: newTeller(o.Progress)}
	if topics := topicsBeside(plans, f.topic); len(topics) > 0 {
		m.tell.line("some workloads have thresholds for other topics only, which are not checked: "+
			"give --topic with one of %s", strings.Join(topics, ", "))
	}
	return m.report(cmd, f.format)
}

// topicsBeside returns the topics, sorted, of thresholds that no run checks: those of workloads that have some, but
// none for this topic.
func topicsBeside(plans []workload.Plan, topic string) []string {
	var out []string
	for i := range plans {
		if p := &plans[i]; p.ThresholdFor(topic) == 0 {
			out = slices.AppendSeq(out, maps.Keys(p.TopicThresholds))
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// report measures and writes the results, after an interrupt too.
func (m *matrix) report(cmd *cobra.Command, format string) error {
	c, err := m.start(cmd.Context())
	if c == nil {
		return err
	}
	if err := errors.Join(c.Write(cmd.OutOrStdout(), format), err); err != nil {
		return err
	}
	return c.Verdict()
}

// plans reads the selected workloads.
func (f *fileFlags) plans() ([]workload.Plan, error) {
	if f.file != "" && f.name != "" {
		return nil, usage.Errorf("--file and --workload: give one of them")
	}
	match, err := regexp.Compile(f.match)
	if err != nil {
		return nil, usage.Errorf("--match: %w", err)
	}
	var files []*workload.File
	switch {
	case f.file != "":
		file, err := workload.Load(f.file)
		if err != nil {
			return nil, usage.Wrap(err)
		}
		files = []*workload.File{file}
	case f.name != "":
		c, err := workloads.Case(f.name)
		if err != nil {
			return nil, usage.Wrap(err)
		}
		files = []*workload.File{{Cases: []*workload.Case{c}}}
	default:
		if files, err = workloads.Files(); err != nil {
			return nil, err
		}
	}
	return chosenOf(files, match, f.labels)
}

// chosenOf returns the plans of files that match and have the labels, in the order of the files. It is an error if
// there is none.
func chosenOf(files []*workload.File, match *regexp.Regexp, labels string) ([]workload.Plan, error) {
	var plans []workload.Plan
	var others []string
	for _, file := range files {
		some, err := file.Plans(match, labels)
		if err != nil {
			return nil, usage.Wrap(err)
		}
		plans = append(plans, some...)
		for _, c := range file.Cases {
			for _, w := range c.Workloads {
				others = append(others, c.Name+"/"+w.Name)
			}
		}
	}
	if len(plans) > 0 {
		return plans, nil
	}
	const some = 20 // of hundreds
	if len(others) > some {
		others = append(others[:some], "and so on")
	}
	return nil, usage.Errorf("no workload matches %q and has the labels %q; there are %s", match, labels,
		strings.Join(others, ", "))
}

// ablate adds kumiki without each of the plugins to the measured schedulers, and kumiki itself if it is missing.
func ablate(o *testbed.Options, plugins []string) error {
	if err := core.CheckAblatable(plugins); err != nil {
		return err
	}
	add := func(name string) {
		for _, s := range o.Schedulers {
			if s == name {
				return
			}
		}
		o.Schedulers = append(o.Schedulers, name)
	}
	if len(plugins) > 0 {
		add(report.Kumiki)
	}
	for _, p := range plugins {
		add(report.Kumiki + "~" + p)
	}
	return nil
}
