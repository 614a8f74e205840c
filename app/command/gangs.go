// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/app/command/ask"
	"github.com/kumiki-scheduler/kumiki/app/command/text"
	"github.com/kumiki-scheduler/kumiki/record"
)

func newGangsCommand(io streams) *cobra.Command {
	var find finder
	var out output
	var scope scope
	c := &cobra.Command{
		Use:   "gangs",
		Short: "List gangs: what they need, what they have, and why they wait; -w follows their moves",
		Long: `List the gangs that the scheduler knows: those with pods that wait or have a node, and those that
an object declares. The list shows why the last attempt at a gang failed; kumiki why gang/NAME also
evaluates the present state.`,
		Example: `  kumiki gangs
  kumiki gangs -A -o wide
  kumiki gangs -w -n ml`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			namespace, err := scope.namespace(&find)
			if err != nil {
				return err
			}
			if err := showGangs(c.Context(), io, &find, out, namespace, scope); err != nil || !scope.watch {
				return err
			}
			return followQueue(c.Context(), io, &find, out, func(m record.QueueMove) bool {
				return m.Gang != "" && (namespace == "" || m.Pod.Namespace == namespace)
			}, namespace)
		},
	}
	find.addFlags(c)
	out.addFlag(c)
	scope.addFlags(c, "gangs", "gangs")
	return c
}

func showGangs(ctx context.Context, io streams, find *finder, out output, namespace string, s scope) error {
	var list record.GangList
	err := askFirst(ctx, io, find, "list of gangs", func(client *ask.Client) (err error) {
		list, err = client.Gangs(ctx, namespace)
		return err
	})
	if err != nil {
		return err
	}
	list.Gangs = slices.DeleteFunc(list.Gangs, func(e record.GangEntry) bool {
		return namespace != "" && !strings.HasPrefix(e.Name, namespace+"/")
	})
	return s.print(io, out, list, func(wide bool) error { return text.Gangs(io.Out, list, wide) })
}
