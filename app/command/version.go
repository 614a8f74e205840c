// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"runtime"

	"github.com/spf13/cobra"
)

// version is set by the linker for releases.
var version = "development"

// compatible is the version of kube-scheduler that kumiki replaces.
const compatible = "v1.37.1"

// versionInfo is what `kumiki version -o json` prints.
type versionInfo struct {
	Version    string `json:"version"`
	Kubernetes string `json:"kubernetes"`
	Go         string `json:"go"`
	Platform   string `json:"platform"`
}

func thisVersion() versionInfo {
	return versionInfo{version, compatible, runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
}

// String is the version in one line.
func (v versionInfo) String() string {
	return fmt.Sprintf("kumiki %s, in place of kube-scheduler %s (%s, %s)", v.Version, v.Kubernetes, v.Go, v.Platform)
}

func newVersionCommand(io streams) *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Args:  args(cobra.NoArgs),
		RunE: func(*cobra.Command, []string) error {
			return out.print(io.Out, thisVersion(), func(bool) error {
				_, err := fmt.Fprintln(io.Out, thisVersion())
				return err
			})
		},
	}
	out.addFlag(c)
	return c
}
