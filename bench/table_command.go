// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/testbed"
	"github.com/kumiki-scheduler/kumiki/bench/usage"
	"github.com/kumiki-scheduler/kumiki/bench/workload"
	"github.com/kumiki-scheduler/kumiki/bench/workloads"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// tableLabel marks the workloads of the comparison table: at least one size of each family, with runs of about half a
// minute on two CPUs.
const tableLabel = "table"

// tableFlags select the content of the comparison table.
type tableFlags struct {
	match, labels, format string
	to, into, again       string
	resume, list          bool
}

func tableCommand() *cobra.Command {
	var o testbed.Options
	var f tableFlags
	cmd := &cobra.Command{
		Use:   "table [REPORT.json]",
		Short: "Measure the comparison table: every family of workloads with all schedulers",
		Long: `Measure the comparison table: every family of workloads with kumiki, kube-scheduler, the no-op binder
(null), and without a scheduler (create-only).

This takes hours. Each complete run is saved in the report at once. After an interrupt, --resume continues and repeats
the runs that failed. A page with plots is written beside the report. With a report as argument, show that report, or
put it --into a Markdown file, without measuring.`,
		Example: `  kumiki bench table --list
  kumiki bench table --match 'spread' --runs 1
  kumiki bench table --resume --again '^affinity/'
  kumiki bench table out/bench/table.json --into docs/bench/table.md`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := knownFormat(f.format); err != nil {
				return err
			}
			if len(args) == 1 {
				c, err := report.Read(args[0])
				if err != nil {
					return err
				}
				return f.show(cmd.OutOrStdout(), c)
			}
			return f.measure(cmd, o)
		},
	}
	fs := cmd.Flags()
	fs.StringVar(&f.match, "match", "", "run only workloads whose case/workload matches the `regexp`")
	fs.StringVar(&f.labels, "labels", tableLabel, "run only workloads with these labels")
	fs.BoolVar(&f.list, "list", false, "list the workloads and their maximum duration, without measuring")
	fs.StringVar(&f.to, "to", "out/bench/table.json", "write the report to this `file`; the page is written beside it")
	fs.BoolVar(&f.resume, "resume", false, "continue with the existing report")
	fs.StringVar(&f.again, "again", "", "with --resume: repeat the workloads whose case/workload matches the `regexp`")
	addFormat(fs, &f.format)
	fs.StringVar(&f.into, "into", "", "with a report: put the table into this Markdown `file`, between its markers")
	addFlags(fs, &o, 3, []string{report.Kumiki, report.Upstream, report.Upstream + "@100", report.Null,
		report.CreateOnly}, 10*time.Minute)
	return cmd
}

// show writes an existing report.
func (f *tableFlags) show(w io.Writer, c *report.Comparison) error {
	if f.into == "" {
		return c.Write(w, f.format)
	}
	text, err := os.ReadFile(f.into)
	if err != nil {
		return err
	}
	var table bytes.Buffer
	if err := c.Markdown(&table); err != nil {
		return err
	}
	if text, err = between(text, table.Bytes()); err != nil {
		return fmt.Errorf("%s: %w", f.into, err)
	}
	return report.ReplaceFile(f.into, text)
}

// The lines that enclose the table in a Markdown file.
const tableBegins, tableEnds = "<!-- bench table begins -->\n", "<!-- bench table ends -->\n"

// between replaces the table in a text.
func between(text, table []byte) ([]byte, error) {
	before, rest, begins := bytes.Cut(text, []byte(tableBegins))
	_, after, ends := bytes.Cut(rest, []byte(tableEnds))
	if !begins || !ends {
		return nil, fmt.Errorf("no lines %q and %q, between which the table would stand",
			strings.TrimSpace(tableBegins), strings.TrimSpace(tableEnds))
	}
	return slices.Concat(before, []byte(tableBegins), table, []byte(tableEnds), after), nil
}

func (f *tableFlags) measure(cmd *cobra.Command, o testbed.Options) error {
	if f.into != "" {
		return usage.Errorf("--into needs a report")
	}
	k := &report.Keeper{Path: f.to, Resume: f.resume}
	match, err := regexp.Compile(f.match)
	if err != nil {
		return usage.Errorf("--match: %w", err)
	}
	if f.again != "" {
		if !f.resume {
			return usage.Errorf("--again: of a table that is made anew, all is measured anyway; it goes with --resume")
		}
		if k.Again, err = regexp.Compile(f.again); err != nil {
			return usage.Errorf("--again: %w", err)
		}
	}
	plans, err := embedded(match, f.labels)
	if err != nil {
		return err
	}
	o.Progress = cmd.ErrOrStderr()
	m := &matrix{Options: o, plans: plans, tell: newTeller(o.Progress), kept: k}
	if f.list {
		return m.list(cmd.OutOrStdout())
	}
	c, err := m.start(cmd.Context())
	if interrupted := new(interruptedError); errors.As(err, interrupted) {
		return interruptedError{fmt.Sprintf("%v; they are in %s, and --resume goes on with it", err, f.to)}
	}
	if err != nil {
		return err
	}
	var page bytes.Buffer
	if err := c.Write(&page, "html"); err != nil {
		return err
	}
	beside := strings.TrimSuffix(f.to, ".json") + ".html"
	if err := report.ReplaceFile(beside, page.Bytes()); err != nil {
		return err
	}
	m.tell.line("see %s and %s", f.to, beside)
	if err := c.Write(cmd.OutOrStdout(), f.format); err != nil {
		return err
	}
	return c.Verdict()
}

// embedded returns the plans of the built-in workloads that match and have the labels, in the order of their files.
func embedded(match *regexp.Regexp, labels string) ([]workload.Plan, error) {
	files, err := workloads.Files()
	if err != nil {
		return nil, err
	}
	return chosenOf(files, match, labels)
}

// list shows what would be measured.
func (m *matrix) list(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "WORKLOAD\tUPSTREAM'S\tNODES\tPODS\tSEED")
	for i := range m.plans {
		s := report.SizeOf(&m.plans[i])
		fmt.Fprintf(t, "%s\t%s\t%d\t%d\t%s\n", s.Name, dashed(s.Upstream), s.Nodes, s.Pods, s.SeedText())
	}
	if err := t.Flush(); err != nil {
		return err
	}
	c := &report.Comparison{}
	_, err := fmt.Fprintln(w, m.forecast(c).text(c))
	return err
}

func dashed(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// start checks the options and runs.
func (m *matrix) start(ctx context.Context) (*report.Comparison, error) {
	m.Nodes, m.Pods = 1, 1 // the workload says how many
	if m.ProfileDir != "" && m.ProfileSeconds < 1 {
		return nil, usage.Errorf("profile-seconds must be at least 1, not %d", m.ProfileSeconds)
	}
	if err := m.Complete(); err != nil {
		return nil, err
	}
	if m.Launch == nil {
		m.Launch = testcluster.Launch
	}
	return m.run(ctx)
}
