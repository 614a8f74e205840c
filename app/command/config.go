// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/printers"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/config"
)

func newConfigCommand(io streams, plugins app.Plugins) *cobra.Command {
	c := &cobra.Command{Use: "config", Short: "Check a configuration file, or show the effective configuration"}
	c.AddCommand(newValidateCommand(io, plugins), newShowCommand(io, plugins), newSchemaCommand(io, plugins),
		newPresetCommand(io))
	return c
}

func newValidateCommand(io streams, plugins app.Plugins) *cobra.Command {
	return &cobra.Command{
		Use:   "validate FILE",
		Short: "Report every problem of a KubeSchedulerConfiguration",
		Long: `Report every problem of a KubeSchedulerConfiguration with its line and its field. A FILE of - is the
standard input. The exit code is 0 for a valid configuration, 1 for an invalid one, 2 for a mistake on the command
line. Warnings are about settings that are valid but may not be intended.`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, a []string) error {
			resolved, err := readConfig(io, plugins, a[0])
			if err != nil {
				return err
			}
			if _, err := plugins.EngineConfig(resolved); err != nil {
				return fmt.Errorf("%s: %w", a[0], err)
			}
			warn(io, resolved)
			_, err = fmt.Fprintf(io.Out, "%s is valid: %d profile(s)\n", a[0], len(resolved.Profiles))
			return err
		},
	}
}

func newShowCommand(io streams, plugins app.Plugins) *cobra.Command {
	var out output
	fastPath := false
	c := &cobra.Command{
		Use:   "show [FILE]",
		Short: "Show a configuration with all defaults filled in and all plugin sets expanded",
		Long: `Show the effective configuration of a file, or the default without a FILE.

As a table: what each plugin of each profile does, and whether it is on the fast path, which caches a plugin's
result for a node until the node changes. A plugin that reads more than one node disables it for the pods that it
does not skip, and for the filters after it; an extender disables it for its pods. If the table shows groups, such
pods are evaluated by groups of nodes that the plugin cannot distinguish, as long as there are few. Nodes with
nominated pods are always evaluated one by one.

As yaml or json: a valid configuration file, also for kube-scheduler. With --fast-path, the table's content instead.`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(_ *cobra.Command, a []string) error {
			resolved := config.Default()
			if len(a) == 1 {
				var err error
				if resolved, err = readConfig(io, plugins, a[0]); err != nil {
					return err
				}
			}
			warn(io, resolved)
			description, err := plugins.Describe(resolved)
			if err != nil {
				return err
			}
			var data any = description
			if !fastPath {
				shown, hidden := resolved.WithoutKeys()
				if hidden {
					fmt.Fprintln(io.Err, "note: private keys that stand in the file are not shown")
				}
				if data, err = shown.Wire(); err != nil {
					return err
				}
			}
			return out.print(io.Out, data, func(wide bool) error {
				return describeConfig(io.Out, resolved, description, wide)
			})
		},
	}
	out.addFlag(c)
	c.Flags().BoolVar(&fastPath, "fast-path", false,
		"with -o yaml or json: print how each plugin decides, instead of a configuration file")
	return c
}

func newSchemaCommand(io streams, plugins app.Plugins) *cobra.Command {
	return &cobra.Command{
		Use:   "schema",
		Short: "Print the JSON schema of configuration files, for editors",
		Args:  args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			schema, err := plugins.Schema()
			if err != nil {
				return err
			}
			_, err = io.Out.Write(schema)
			return err
		},
	}
}

// readConfig reads a file, or the standard input.
func readConfig(s streams, plugins app.Plugins, file string) (config.Resolved, error) {
	if file != "-" {
		return plugins.ReadConfig(file)
	}
	text, err := io.ReadAll(s.In)
	if err != nil {
		return config.Resolved{}, fmt.Errorf("reading the configuration from the standard input: %w", err)
	}
	return plugins.ParseConfig(text)
}

// warn prints settings that are valid but may not be intended.
func warn(io streams, c config.Resolved) {
	for _, w := range c.Warnings {
		fmt.Fprintln(io.Err, "warning: "+w)
	}
}

// describeConfig writes a configuration for display: the settings of all profiles, then one table for each profile.
func describeConfig(w io.Writer, c config.Resolved, d app.Description, wide bool) error {
	processText(w, c)
	for _, p := range d.Profiles {
		fmt.Fprintf(w, "\nprofile %s\n  search    %s\n  fit       %s\n  evictions %s\n\n", p.SchedulerName, p.Search,
			p.Fit, p.Preemption)
		table := printers.GetNewTabWriter(w)
		points := ""
		if wide {
			points = "POINTS\t"
		}
		fmt.Fprintln(table, "  PLUGIN\tWEIGHT\t"+points+"FILTER\tSCORE\tOFF FOR")
		for _, pl := range p.Plugins {
			fmt.Fprintln(table, pluginLine(pl, wide))
		}
		if err := table.Flush(); err != nil {
			return err
		}
		for _, e := range p.Extenders {
			fmt.Fprintf(w, "  extender %s (%s): off for %s: it %s\n", e.URL, strings.Join(e.Verbs, ", "), e.Pods, e.Why)
		}
	}
	return nil
}

func processText(w io.Writer, c config.Resolved) {
	limit := "no limit but binds in flight"
	if c.ClientConnection.QPS > 0 {
		limit = fmt.Sprintf("%g a second, %d at once", c.ClientConnection.QPS, c.ClientConnection.Burst)
	}
	election := "off"
	if l := c.LeaderElection; l.Enabled {
		election = fmt.Sprintf("lease %s/%s: lasts %s, renewed within %s, tried every %s", l.Namespace, l.Name,
			l.LeaseDuration, l.RenewDeadline, l.RetryPeriod)
	}
	cycle := "continuous: pods are tried as soon as something may help them"
	if c.Kumiki.Cycle == config.InSessions {
		cycle = fmt.Sprintf("sessions: all pods are tried against one snapshot, %s after the end of the session before",
			c.Kumiki.SessionPeriod)
	}
	fmt.Fprintf(w, `cycle            %s
backoff          %s to %s
requests         %s
binds in flight  %d
seed             %d
leader election  %s
parallelism      %d (of no effect: the core decides on one goroutine)
`, cycle, c.PodInitialBackoff, c.PodMaxBackoff, limit, c.Kumiki.InFlightBinds, c.Kumiki.Seed, election, c.Parallelism)
}

// pluginLine returns a plugin's row: whether its filter and its score are on the fast path, and if not, for which
// pods and why.
func pluginLine(pl app.PluginDescription, wide bool) string {
	weight, reason := "", pl.Why
	if pl.Weight > 0 {
		weight = fmt.Sprint(pl.Weight)
	}
	state := func(f *app.FastPath) string {
		switch {
		case f == nil:
			return "-"
		case f.On:
			return "on"
		}
		reason = f.Pods + ": " + f.Why
		if f.Groups {
			return "groups"
		}
		return "off"
	}
	points := ""
	if wide {
		names := make([]string, len(pl.Points))
		for i, at := range pl.Points {
			names[i] = string(at)
		}
		points = strings.Join(names, ",") + "\t"
	}
	filter, score := state(pl.Filter), state(pl.Score)
	return fmt.Sprintf("  %s\t%s\t%s%s\t%s\t%s", pl.Name, weight, points, filter, score, reason)
}
