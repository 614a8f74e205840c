// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/bench/report"
	"github.com/kumiki-scheduler/kumiki/bench/usage"
)

// errWorse is the error of a comparison that found a loss; the table shows which.
var errWorse = errors.New("something was lost or a threshold missed")

func compareCommand() *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:   "compare A.json B.json",
		Short: "Compare two reports of bench -o json",
		Long: `Compare two reports of bench -o json, and show what B gained or lost against A.

The figures are medians of B divided by those of A, with the 95 % confidence interval of the ratio. If both reports have
a valid no-op binder (null), speed is pods/s divided by that of null in the same round, so that it does not depend on
the machine or the time. The exit code is 1 if a scheduler lost more than 5 % with its whole interval, or missed a threshold
in B.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usage.Errorf("compare takes two reports, not %d", len(args))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if format != "table" && format != "json" {
				return usage.Errorf("output %q is unknown; there are table, json", format)
			}
			var reports [2]*report.Comparison
			for i, path := range args {
				var err error
				if reports[i], err = report.Read(path); err != nil {
					return usage.Wrap(err) // and no loss, which is what 1 means
				}
			}
			changes := report.Compare(reports[0], reports[1])
			if len(changes) == 0 {
				return usage.Errorf("%s and %s have no workload with the same scheduler in common", args[0], args[1])
			}
			write := report.WriteChanges
			if format == "json" {
				write = func(w io.Writer, c []report.Change) error { return report.WriteJSON(w, c) }
			}
			if err := write(cmd.OutOrStdout(), changes); err != nil {
				return err
			}
			for _, c := range changes {
				if c.Lost || c.Missed {
					cmd.SilenceUsage = true
					return errWorse
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "table", "output format: table or json")
	return cmd
}
