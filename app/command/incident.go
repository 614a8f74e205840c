// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"

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
		Long: `A running kumiki keeps its last events. When the API server does not answer, the lease is lost, an
iteration of the loop is slow, no bind succeeds, a bind is not answered, the watch is late, a panic is contained, a node
is overcommitted or the garbage collector stops the process, it writes a bundle, which replays on any machine.`,
		Example: `  kumiki incident list
  kumiki incident get 20261124t093000z-no-binds-1
  kumiki incident replay 20261124t093000z-no-binds-1.kumiki`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newIncidentListCommand(io), newIncidentGetCommand(io, plugins), newIncidentReplayCommand(io, plugins),
		newIncidentAnonymizeCommand(io, plugins))
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

func newIncidentGetCommand(io streams, plugins app.Plugins) *cobra.Command {
	var find finder
	var out output
	var file string
	var now, anonymous bool
	c := &cobra.Command{
		Use:   "get ID",
		Short: "Fetch the bundle of an incident from the running scheduler",
		Long: `Fetch the bundle of an incident into a file. With --now instead of an ID, the scheduler writes a bundle
of what it keeps at this moment. The bundle has the names of nodes, pods and other objects, and no secrets; with
--anonymous it has pseudonyms (see kumiki incident anonymize). You need get on the nonResourceURL
/debug/kumiki/incidents/*.`,
		Example: `  kumiki incident get 20261124t093000z-no-binds-1
  kumiki incident get --now -f now.kumiki
  kumiki incident get 20261124t093000z-no-binds-1 --anonymous`,
		Args: args(cobra.MaximumNArgs(1)),
		RunE: func(c *cobra.Command, a []string) error {
			if now != (len(a) == 0) {
				return usageError{fmt.Errorf("name an incident of kumiki incident list, or --now")}
			}
			id := "new"
			if !now {
				id = a[0]
			}
			name := file
			if name == "" {
				if name = id + ".kumiki"; now {
					name = "kumiki-incident-new.kumiki"
				}
			}
			if err := getIncident(c.Context(), &find, id, name, anonymous, plugins); err != nil {
				return err
			}
			return showIncident(io, out, name)
		},
	}
	find.addFlags(c)
	out.addFlag(c)
	c.Flags().BoolVar(&anonymous, "anonymous", false, "replace names by pseudonyms")
	c.Flags().BoolVar(&now, "now", false, "write a bundle of what the scheduler keeps now")
	c.Flags().StringVarP(&file, "file", "f", "", "file to write (default: ID.kumiki)")
	return c
}

// getIncident fetches a bundle into a file.
func getIncident(ctx context.Context, find *finder, id, name string, anonymous bool, plugins app.Plugins) error {
	to := name
	if anonymous {
		dir, err := os.MkdirTemp("", "kumiki-incident-*")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		to = filepath.Join(dir, "names.kumiki")
	}
	err := askIncidents(ctx, find, "/"+id, func(answer reader) error { return copyToFile(to, answer) })
	if err != nil || !anonymous {
		return err
	}
	return anonymize(to, name, plugins)
}

// showIncident prints the report of a bundle.
func showIncident(io streams, out output, name string) error {
	in, err := incidents.Read(name)
	if err != nil {
		return err
	}
	fmt.Fprintln(io.Err, name)
	return out.print(io.Out, in, func(bool) error { return text.Incident(io.Out, in) })
}

// anonymize writes a bundle with pseudonyms.
func anonymize(from, to string, plugins app.Plugins) error {
	return writeFile(to, func(file *os.File) error { return incidents.Anonymize(from, plugins, file) })
}

func newIncidentAnonymizeCommand(io streams, plugins app.Plugins) *cobra.Command {
	var out output
	var file string
	c := &cobra.Command{
		Use:   "anonymize FILE",
		Short: "Replace the names in the bundle of an incident by pseudonyms",
		Long: `Replace the names of namespaces and objects, label keys and values, taints, images and addresses in the
bundle of an incident by pseudonyms: equal names by equal ones, in the same order. The bundle is replayed with and
without them, and nothing is written if a decision differs. The trace, the metrics and the stacks are left out. Not
replaced are UIDs, times, amounts, numbers, the names of Kubernetes, of profiles, plugins, resources, device drivers and
their attributes, and CEL expressions. Look through the file before you send it to somebody else.`,
		Example: `  kumiki incident anonymize 20261124t093000z-no-binds-1.kumiki -f anonymous.kumiki`,
		Args:    args(cobra.ExactArgs(1)),
		RunE: func(_ *cobra.Command, a []string) error {
			to := file
			if to == "" {
				to = "anonymous-" + filepath.Base(a[0])
			}
			if err := anonymize(a[0], to, plugins); err != nil {
				return err
			}
			return showIncident(io, out, to)
		},
	}
	out.addFlag(c)
	c.Flags().StringVarP(&file, "file", "f", "", "file to write (default: anonymous-FILE)")
	return c
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
