// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/bench/report"
)

// interruptedError is the error of a measurement that a signal ended. It is not context.Canceled, which commands
// treat as success: an interrupted scheduler ended as intended, an interrupted measurement did not.
type interruptedError struct{ what string }

func (e interruptedError) Error() string { return e.what }

// endsWhenInterrupted makes a command and its subcommands report an interruption as an error. The no-op binder is
// excluded: it runs until it is stopped.
func endsWhenInterrupted(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		endsWhenInterrupted(sub)
	}
	run := cmd.RunE
	if run == nil || cmd.Name() == report.Null {
		return
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := run(cmd, args)
		if cmd.Context().Err() == nil || err == nil || errors.As(err, new(interruptedError)) {
			return err
		}
		return interruptedError{"interrupted"}
	}
}
