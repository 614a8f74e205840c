// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/command/ask"
	"github.com/kumiki-scheduler/kumiki/app/command/incidents"
	"github.com/kumiki-scheduler/kumiki/app/command/text"
	"github.com/kumiki-scheduler/kumiki/record"
)

func newIncidentCommand(io streams, plugins app.Plugins) *cobra.Command {
	c := &cobra.Command{
		Use:   "incident",
		Short: "List, fetch and replay what the flight recorder kept of an incident",
		Long: `A running kumiki keeps its last events. When an iteration of the loop is slow, no bind succeeds, a bind
is not answered, the watch is late, a panic is contained, a node is overcommitted or the garbage collector stops the
process, it writes a bundle, which replays on any machine.`,
		Example: `  kumiki incident list
  kumiki incident get 20261124t093000z-no-binds-1
  kumiki incident replay 20261124t093000z-no-binds-1.kumiki`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newIncidentListCommand(io), newIncidentGetCommand(io), newIncidentReplayCommand(io, plugins))
	return c
}

func newIncidentListCommand(io streams) *cobra.Command {
	var find finder
	var out output
	c := &cobra.Command{
		Use:   "list",
		Short: "List the incidents of the running scheduler",
		Long: `List the incidents of the running scheduler, the oldest first. You need get on the nonResourceURL
/debug/kumiki/incidents (the ClusterRole kumiki-incident-reader of deploy/incident-reader.yaml).`,
		Example: `  kumiki incident list
  kumiki incident list -o json`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			var list record.Incidents
			err := askIncidents(c.Context(), &find, "", func(answer reader) error {
				return json.NewDecoder(answer).Decode(&list)
			})
			if err != nil {
				return err
			}
			return out.print(io.Out, list, func(wide bool) error { return text.Incidents(io.Out, list, wide) })
		},
	}
	find.addFlags(c)
	out.addFlag(c)
	return c
}

func newIncidentGetCommand(io streams) *cobra.Command {
	var find finder
	var out output
	var file string
	var now bool
	c := &cobra.Command{
		Use:   "get ID",
		Short: "Fetch the bundle of an incident from the running scheduler",
		Long: `Fetch the bundle of an incident into a file. With --now instead of an ID, the scheduler writes a bundle
of what it keeps at this moment. The bundle has the names of nodes, pods and other objects, and no secrets. You need get
on the nonResourceURL /debug/kumiki/incidents/*.`,
		Example: `  kumiki incident get 20261124t093000z-no-binds-1
  kumiki incident get --now -f now.kumiki`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, a []string) error {
			if now != (len(a) == 0) {
				return usageError{fmt.Errorf("name an incident of kumiki incident list, or --now")}
			}
			id := "new"
			if !now {
				id = a[0]
			}
			return getIncident(c.Context(), io, &find, out, id, file)
		},
	}
	find.addFlags(c)
	out.addFlag(c)
	c.Flags().BoolVar(&now, "now", false, "write a bundle of what the scheduler keeps now")
	c.Flags().StringVarP(&file, "file", "f", "", "file to write (default: ID.kumiki)")
	return c
}

// getIncident fetches a bundle and prints its report.
func getIncident(ctx context.Context, io streams, find *finder, out output, id, name string) error {
	if name == "" {
		name = "kumiki-incident-" + id + ".kumiki"
		if id != "new" {
			name = id + ".kumiki"
		}
	}
	err := askIncidents(ctx, find, "/"+id, func(answer reader) error { return copyToFile(name, answer) })
	if err != nil {
		return err
	}
	in, err := incidents.Read(name)
	if err != nil {
		return err
	}
	fmt.Fprintln(io.Err, name)
	return out.print(io.Out, in, func(bool) error { return text.Incident(io.Out, in) })
}

func copyToFile(name string, from io.Reader) error {
	return writeFile(name, func(file *os.File) error {
		_, err := io.Copy(file, from)
		return err
	})
}

// reader is io.Reader, where io is the name of the streams of a command.
type reader = io.Reader

// askIncidents asks one scheduler after the other for a path below that of incidents.
func askIncidents(ctx context.Context, find *finder, path string, read func(reader) error) error {
	running, err := find.schedulers(ctx, "")
	if err != nil {
		return err
	}
	return running.ask(ctx, func(client *ask.Client) error {
		answer, err := client.Fetch(ctx, incidents.Path+path)
		if err != nil {
			return err
		}
		defer answer.Close()
		return read(answer)
	})
}

func newIncidentReplayCommand(io streams, plugins app.Plugins) *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:   "replay FILE",
		Short: "Replay the bundle of an incident and compare each decision",
		Long: `Replay the bundle of an incident: an engine begins with the state in it and gets the same events. Exit 0
if the digest of every event's effects is the same; else the first difference is named. kumiki replay --step shows each
event.`,
		Example: `  kumiki incident replay 20261124t093000z-no-binds-1.kumiki
  kumiki replay --step 20261124t093000z-no-binds-1.kumiki`,
		Args: args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, a []string) error {
			in, err := incidents.Read(a[0])
			if err != nil {
				return err
			}
			report, err := incidents.Replay(a[0], plugins, in)
			if err != nil {
				return fmt.Errorf("replay %w", err)
			}
			show := func(bool) error { return text.IncidentReplay(io.Out, report) }
			if err := out.print(io.Out, report, show); err != nil {
				return err
			}
			if report.Different > 0 {
				return fmt.Errorf("%d of %d events have other effects than at the time", report.Different,
					report.Events)
			}
			return nil
		},
	}
	out.addFlag(c)
	return c
}
