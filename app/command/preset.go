// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kumiki-scheduler/kumiki/config"
)

func newPresetCommand(io streams) *cobra.Command {
	return &cobra.Command{
		Use:   "preset [NAME]",
		Short: "List the configuration files that come with kumiki, or print one",
		Long: `List the configuration files that come with kumiki, or print one. They differ from the default profile
in how nodes are ranked; comments in them say what each weight does.`,
		Example: `  kumiki config preset
  kumiki config preset binpack > binpack.yaml
  kumiki scheduler --config binpack.yaml`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, a []string) error {
			if len(a) == 1 {
				text, err := config.Preset(a[0])
				if err != nil {
					return usageError{err}
				}
				_, err = io.Out.Write(text)
				return err
			}
			table := printers.GetNewTabWriter(io.Out)
			fmt.Fprintln(table, "NAME\tPURPOSE")
			for _, name := range config.Presets() {
				title, err := config.PresetTitle(name)
				if err != nil {
					return err
				}
				fmt.Fprintf(table, "%s\t%s\n", name, title)
			}
			return table.Flush()
		},
	}
}
