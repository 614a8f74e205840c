// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/config"
)

func newConfigCommand(io streams) *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Check a configuration file, or show what it comes to"}
	validate := &cobra.Command{
		Use:   "validate FILE",
		Short: "Tell everything that is wrong with a KubeSchedulerConfiguration; exit 0 when nothing is",
		Args:  args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, a []string) error {
			resolved, err := config.Read(a[0])
			if err != nil {
				return err
			}
			warn(io, resolved)
			_, err = fmt.Fprintf(io.Out, "%s is valid: %d profile(s)\n", a[0], len(resolved.Profiles))
			return err
		},
	}
	show := &cobra.Command{
		Use:   "show [FILE]",
		Short: "Print a configuration with all defaults filled in and all plugin sets expanded, as a file that can be used",
		Args:  args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, a []string) error {
			resolved := config.Default()
			if len(a) == 1 {
				var err error
				if resolved, err = config.Read(a[0]); err != nil {
					return err
				}
			}
			warn(io, resolved)
			wire, err := resolved.Wire()
			if err != nil {
				return err
			}
			text, err := yaml.Marshal(wire)
			if err != nil {
				return fmt.Errorf("writing the configuration: %w", err)
			}
			_, err = io.Out.Write(text)
			return err
		},
	}
	c.AddCommand(validate, show)
	return c
}

// warn tells what works but may not be meant.
func warn(io streams, c config.Resolved) {
	for _, w := range c.Warnings {
		fmt.Fprintln(io.Err, "warning: "+w)
	}
}
