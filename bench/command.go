// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/bench/core"
	"github.com/kumiki-scheduler/kumiki/bench/noop"
	"github.com/kumiki-scheduler/kumiki/bench/restart"
	"github.com/kumiki-scheduler/kumiki/bench/wire"
)

// NewCommand returns the command `kumiki bench`.
func NewCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Measure schedulers against each other on this machine",
	}
	runsWorkloads(cmd)
	cmd.AddCommand(basicCommand(), tableCommand(), restart.NewCommand(), restart.NewWaitingCommand(), compareCommand(),
		noop.NewCommand(), gangsCommand(), core.NewCommand(), instancesCommand())
	cmd.AddCommand(wire.NewCommands()...)
	endsWhenInterrupted(cmd)
	return cmd
}
