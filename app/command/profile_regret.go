// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/command/regret"
	"github.com/kumiki-scheduler/kumiki/app/command/tape"
	"github.com/kumiki-scheduler/kumiki/app/command/text"
	"github.com/kumiki-scheduler/kumiki/core/engine"
)

func newProfileRegretCommand(io streams, plugins app.Plugins) *cobra.Command {
	every := 1
	var out output
	c := &cobra.Command{
		Use:   "regret FILE...",
		Short: "Show by how much chosen nodes scored below the best ones, by cause",
		Long: `Replay a recording of kumiki scheduler --record, or a bundle of an incident, and compare the node of each
decision with the best node of a search over all nodes, on the newest state: that of the decision, with what the
watch brought before the outcome of the bind. The parts of the difference are by cause: the search did not consider
all nodes (window), something comes before scores (preferred), the draw among equal nodes (tie), and changes that
the decision did not know (staleness). Conflicts are decisions whose bind was refused or whose node did not fit any
more. At most ` + fmt.Sprint(regret.AtOnce) + ` decisions are compared at the same time; the others are counted as
not compared.`,
		Example: `  kumiki profile regret scheduling.tape
  kumiki profile regret --every 100 recordings/
  kumiki profile regret incident.kumiki -o json`,
		Args: args(cobra.MinimumNArgs(1)),
		RunE: func(_ *cobra.Command, a []string) error {
			if every < 1 {
				return usageError{fmt.Errorf("--every must be at least 1, got %d", every)}
			}
			var names []string
			for _, name := range a {
				files, err := tape.Files(name)
				if err != nil {
					return fmt.Errorf("regret: %w", err)
				}
				names = append(names, files...)
			}
			judge := regret.New(every)
			note := func(text string) { fmt.Fprintln(io.Err, "note: "+text) }
			err := tape.PlayFiles(names, plugins, note, func(e *engine.Engine, s tape.Step) error {
				judge.Step(e, s.NewConfig, s.Event, s.Effects)
				return nil
			})
			if err != nil {
				return fmt.Errorf("regret: replay %w", err)
			}
			r := judge.Report()
			return out.print(io.Out, r, func(bool) error { return text.Regret(io.Out, r) })
		},
	}
	c.Flags().IntVar(&every, "every", every, "compare one in so many decisions")
	out.addFlag(c)
	return c
}
