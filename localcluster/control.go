// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/localcluster/roles"
	"github.com/kumiki-scheduler/kumiki/localcluster/supervise"
)

// clusterFlag picks the running cluster that a sub-command talks to.
type clusterFlag struct{ dataDir string }

func (f *clusterFlag) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.dataDir, "data-dir", os.Getenv(dataDirEnv),
		"data `directory` of the cluster (env "+dataDirEnv+"); not needed when one cluster runs in a temporary one")
}

func (f *clusterFlag) resolve() (string, error) {
	if f.dataDir != "" {
		return f.dataDir, nil
	}
	return supervise.Find()
}

func verbCommand(verb supervise.Verb, short string) *cobra.Command {
	var f clusterFlag
	cmd := &cobra.Command{
		Use:       string(verb) + " ROLE",
		Short:     short,
		Long:      short + ".\n\nRoles are " + strings.Join(roles.All(), ", ") + ".",
		ValidArgs: roles.All(),
		Args:      cobra.MatchAll(cobra.ExactArgs(1), cobra.OnlyValidArgs),
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := f.resolve()
			if err != nil {
				return err
			}
			reply, err := supervise.Call(dir, verb, args[0])
			if err != nil {
				return failed(err)
			}
			for _, c := range reply.Children {
				if c.Role == args[0] {
					fmt.Fprintf(os.Stderr, "%s (pid %d) is %s\n", c.Role, c.PID, c.Phase)
				}
			}
			return nil
		},
	}
	f.add(cmd)
	return quiet(cmd)
}

// failed keeps ErrNoCluster's own exit code and gives the others exitFailed.
func failed(err error) error {
	if errors.Is(err, supervise.ErrNoCluster) {
		return coded(exitNoCluster, err)
	}
	return coded(exitFailed, err)
}

func statusCommand() *cobra.Command {
	var f clusterFlag
	var output string
	cmd := &cobra.Command{
		Use:   "status",
		Short: "Show the child processes of a running cluster",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if output != "table" && output != "json" {
				return coded(exitUsage, fmt.Errorf("output %q: unknown; known are table and json", output))
			}
			dir, err := f.resolve()
			if err != nil {
				return err
			}
			reply, err := supervise.Call(dir, supervise.Status, "")
			if err != nil {
				return failed(err)
			}
			if output == "json" {
				return json.NewEncoder(os.Stdout).Encode(reply)
			}
			fmt.Printf("%s  %s  pid %d\n", reply.DataDir, reply.Server, reply.PID)
			w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
			fmt.Fprintln(w, "ROLE\tPID\tPHASE\tEXIT")
			for _, c := range reply.Children {
				fmt.Fprintf(w, "%s\t%d\t%s\t%s\n", c.Role, c.PID, c.Phase, c.Exit)
			}
			return w.Flush()
		},
	}
	f.add(cmd)
	cmd.Flags().StringVarP(&output, "output", "o", "table", "table or json")
	return quiet(cmd)
}
