// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/bench/core"
)

// NewCommand is `kumiki bench`.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure schedulers against each other on this machine",
	}
	runsWorkloads(cmd)
	cmd.AddCommand(basicCommand(), tableCommand(), restartCommand(), waitingCommand(), compareCommand(), nullCommand(), gangsCommand(), core.NewCommand())
	endsWhenInterrupted(cmd)
	return cmd
}
