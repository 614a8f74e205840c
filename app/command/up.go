// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/kumiki-scheduler/kumiki/app/command/up"
)

func newUpCommand(io streams) *cobra.Command {
	o := up.Options{Out: io.Out, Err: io.Err, Self: os.Args[0], Version: version}
	c := &cobra.Command{
		Use:   "up",
		Short: "Start a local cluster with fake nodes, run kumiki in it, and schedule a workload",
		Example: `  kumiki up
  kumiki up --nodes 1000
  kumiki up -f manifests.yaml
  kumiki up --gangs
  kumiki up --kubernetes 1.36
  kumiki up --once    # check and exit: 0 if every pod that can run does`,
		Args: args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			least := 1
			if o.File == "" && !o.Gangs {
				least = up.MinNodes
			}
			if o.Nodes < least {
				return usageError{fmt.Errorf("--nodes must be at least %d, got %d", least, o.Nodes)}
			}
			if !slices.Contains(up.Releases, o.Kubernetes) {
				return usageError{fmt.Errorf("--kubernetes must be one of %s, got %q",
					strings.Join(up.Releases, ", "), o.Kubernetes)}
			}
			if f, ok := io.Err.(*os.File); ok {
				o.Live = term.IsTerminal(int(f.Fd()))
			}
			return up.Run(c.Context(), o)
		},
	}
	c.Flags().IntVar(&o.Nodes, "nodes", 100, "number of nodes")
	c.Flags().StringVar(&o.Kubernetes, "kubernetes", up.Releases[0], "release of the control plane: "+
		strings.Join(up.Releases, ", ")+"; the first time, its parts are built, which takes some minutes")
	c.Flags().StringVar(&o.BinaryDir, "localcluster-dir", "",
		"directory of kumiki-localcluster; default: built in the source tree, or beside this program, or in PATH")
	c.Flags().StringVarP(&o.File, "filename", "f", "", "manifests to apply instead of the demo workload")
	c.Flags().BoolVar(&o.Gangs, "gangs", false,
		"serve all APIs that declare gangs, enable all declarations, and apply an example of each unless "+
			"--filename is given")
	c.Flags().BoolVar(&o.Once, "once", false,
		"exit when all pods that can run do: 0 if they do, 1 otherwise; and clean up")
	c.Flags().DurationVar(&o.Timeout, "timeout", 5*time.Minute, "maximum time until the pods settle")
	return c
}
