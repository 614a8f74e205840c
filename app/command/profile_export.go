// SPDX-License-Identifier: Apache-2.0

package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/apm"
	"github.com/kumiki-scheduler/kumiki/apm/bundle"
	"github.com/kumiki-scheduler/kumiki/apm/timeline"
)

// exportFormats are the values of --format.
var exportFormats = []string{"perfetto", "otlp", "pprof", "speedscope"}

func newProfileExportCommand(io streams) *cobra.Command {
	var format, to string
	c := &cobra.Command{
		Use:   "export FILE",
		Short: "Convert a profile to the format of another tool",
		Long: `Convert a recorded profile to the format of another tool.

  perfetto     a trace for https://ui.perfetto.dev: the goroutines of each lane over time with their states, and the
               pods, with their phases where kumiki reports them
  otlp         the same as traces of OpenTelemetry, in OTLP's JSON encoding; a goroutine or a pod is one trace
  pprof        for go tool pprof, with the sample types cpu, runnable and blocked, and labels lane and goroutine
  speedscope   a JSON file for https://www.speedscope.app, one profile per lane`,
		Example: `  kumiki profile export slow.kumiki --format perfetto -f slow.perfetto-trace
  kumiki profile export slow.kumiki --format pprof -f slow.pb.gz
  kumiki profile export slow.kumiki --format speedscope -f slow.speedscope.json`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, a []string) error {
			if !slices.Contains(exportFormats, format) {
				return usageError{fmt.Errorf("--format must be one of %s, got %q", strings.Join(exportFormats, ", "),
					format)}
			}
			if to == "" {
				return usageError{errors.New("--file must name the file to write")}
			}
			return exportProfile(io, a[0], format, to)
		},
	}
	c.Flags().StringVar(&format, "format", "", "format: "+strings.Join(exportFormats, ", "))
	c.Flags().StringVarP(&to, "file", "f", "", "file to write")
	c.RegisterFlagCompletionFunc("format", cobra.FixedCompletions(exportFormats, cobra.ShellCompDirectiveNoFileComp))
	c.ValidArgsFunction = completeBundle
	return c
}

func exportProfile(s streams, from, format, to string) error {
	b, err := bundle.Open(from)
	if err != nil {
		return err
	}
	defer b.Close()
	content, err := writerOf(s, b, format)
	if err != nil {
		return fmt.Errorf("analyzing %s: %w", from, err)
	}
	if err := writeFile(to, func(file *os.File) error { return content(file) }); err != nil {
		return err
	}
	_, err = fmt.Fprintln(s.Out, to)
	return err
}

// writerOf returns what writes a bundle in a format.
func writerOf(s streams, b *bundle.Reader, format string) (func(io.Writer) error, error) {
	if format == "pprof" || format == "speedscope" {
		x, err := apm.ReadStacks(b)
		if err != nil {
			return nil, err
		}
		if format == "pprof" {
			return x.WritePprof, nil
		}
		return x.WriteSpeedscope, nil
	}
	tl, err := apm.ReadTimeline(b)
	if err != nil {
		return nil, err
	}
	if tl.Dropped > 0 {
		fmt.Fprintf(s.Err, "%d of %d spans are left out: a trace has at most %d, and at most 1,000 pods at the same "+
			"time\n", tl.Dropped, tl.Dropped+tl.Len(), timeline.MaxSpans)
	}
	if format == "otlp" {
		return tl.WriteOTLP, nil
	}
	return tl.WritePerfetto, nil
}
