// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/command/text"
	"github.com/kumiki-scheduler/kumiki/app/command/wiring"
	"github.com/kumiki-scheduler/kumiki/record"
)

// shadowFlags make the scheduler follow another one.
type shadowFlags struct{ app.ShadowOptions }

func (f *shadowFlags) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.Scheduler, "shadow", "",
		"Compare the binds of the scheduler with this name with kumiki's own choices, instead of scheduling. The "+
			"profile of that name is used, or else the first one. Nothing is written; rights to list and watch "+
			"suffice.")
	fs.StringVar(&f.ReportFile, "shadow-report", "",
		"With --shadow: write the report to this file as JSON, for kumiki shadow show.")
	fs.DurationVar(&f.For, "shadow-for", 0, "With --shadow: end after this time and print the report; 0 means never.")
}

// check checks the flags against --record.
func (f *shadowFlags) check(recordTo string) error {
	switch {
	case f.Scheduler != "" && recordTo != "":
		return usageError{errors.New("--record records decisions, and a shadow makes none; kumiki capture saves a " +
			"cluster snapshot")}
	case f.Scheduler == "" && (f.ReportFile != "" || f.For != 0):
		return usageError{errors.New("--shadow-report and --shadow-for need --shadow=SCHEDULER, the scheduler to " +
			"follow")}
	case f.For < 0:
		return usageError{fmt.Errorf("--shadow-for must not be negative, got %s", f.For)}
	}
	return nil
}

// follow runs the shadow and prints its last report.
func (f *shadowFlags) follow(ctx context.Context, io streams, o app.Options) error {
	so := f.ShadowOptions
	wiring.Shadow(&o, &so)
	s, err := app.NewShadow(ctx, o, so)
	if err != nil {
		return err
	}
	report, err := s.Run(ctx)
	if report.Scheduler == "" {
		return err // it has not begun
	}
	// In one write: what still ends writes to the log meanwhile, and the two may share a terminal.
	var page bytes.Buffer
	if err := text.Shadow(&page, report, false); err != nil {
		return err
	}
	_, failed := page.WriteTo(io.Out)
	return errors.Join(failed, err)
}

func newShadowCommand(io streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "shadow",
		Short: "Show the report of a shadow instance on another scheduler",
		Args:  args(cobra.NoArgs),
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newShadowShowCommand(io))
	return c
}

func newShadowShowCommand(io streams) *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:   "show FILE",
		Short: "Show a report of kumiki scheduler --shadow-report",
		Long: `Show a report that kumiki scheduler --shadow=SCHEDULER --shadow-report=FILE writes; FILE may be - for
standard input. The report compares the choices of a scheduler that runs the cluster with kumiki's.`,
		Example: `  kumiki scheduler --shadow=default-scheduler --shadow-report=report.json --shadow-for=1h
  kumiki shadow show report.json
  kubectl -n kube-system exec deploy/kumiki-shadow -- /kumiki shadow show /report/report.json`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, a []string) error {
			report, err := readReport(io, a[0])
			if err != nil {
				return err
			}
			return out.print(io.Out, report, func(wide bool) error { return text.Shadow(io.Out, report, wide) })
		},
	}
	out.addFlag(c)
	return c
}

func readReport(io streams, file string) (r record.ShadowReport, err error) {
	from := io.In
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return r, fmt.Errorf("reading the report: %w", err)
		}
		defer f.Close()
		from = f
	}
	if err := json.NewDecoder(from).Decode(&r); err != nil {
		return r, fmt.Errorf("reading the report %s: %w", file, err)
	}
	if r.Scheduler == "" {
		return r, fmt.Errorf("reading the report %s: it is no report of a shadow", file)
	}
	return r, nil
}
