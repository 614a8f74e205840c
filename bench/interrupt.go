// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/bench/report"
)

// interruptedError is what a measurement that a signal cut short ends with. It is no context.Canceled, which programs take
// for a good end: that of a scheduler is one, that of a measurement is not.
type interruptedError struct{ what string }

func (e interruptedError) Error() string { return e.what }

// endsWhenInterrupted makes a command and those below it say that they were interrupted. The null binder stays: it works until
// it is told to stop.
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
