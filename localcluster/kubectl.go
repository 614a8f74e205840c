// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"

	"github.com/kumiki-scheduler/kumiki/localcluster/roles"
	"github.com/kumiki-scheduler/kumiki/localcluster/supervise"
)

// kubectlCommand is upstream's kubectl, pointed at the running cluster. It takes no flags of our own, so the cluster is
// chosen by the environment, or by kubectl's own --kubeconfig.
func kubectlCommand() *cobra.Command {
	return quiet(&cobra.Command{
		Use:                "kubectl [ARGUMENT...]",
		Short:              "Be kubectl for a running cluster, for machines that have none",
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			if !namesKubeconfig(args) {
				file, err := runningKubeconfig()
				if err != nil {
					return err
				}
				args = append([]string{"--kubeconfig=" + file}, args...)
			}
			os.Exit(runKubectl(args))
			return nil
		},
	})
}

func namesKubeconfig(args []string) bool {
	return slices.ContainsFunc(args, func(a string) bool { return a == "--kubeconfig" || strings.HasPrefix(a, "--kubeconfig=") })
}

// runningKubeconfig is the admin's kubeconfig of the running cluster.
func runningKubeconfig() (string, error) {
	dir := os.Getenv(dataDirEnv)
	if dir == "" {
		var err error
		if dir, err = supervise.Find(); err != nil {
			return "", fmt.Errorf("%w; variable %s or kubectl's --kubeconfig names one", err, dataDirEnv)
		}
	}
	if _, err := supervise.Call(dir, supervise.Status, ""); err != nil {
		return "", failed(err)
	}
	return filepath.Join(dir, roles.KubeconfigDir, supervise.Admin), nil
}

// runKubectl gives the exit code; kubectl also exits by itself where it finds a mistake.
func runKubectl(args []string) int {
	// kubectl looks at the words of the command line itself.
	os.Args = append([]string{"kubectl"}, args...)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	c := kubectl.NewDefaultKubectlCommandWithArgs(kubectl.KubectlOptions{
		Arguments:   os.Args,
		ConfigFlags: genericclioptions.NewConfigFlags(true).WithDiscoveryBurst(300).WithDiscoveryQPS(50).WithWarningPrinter(streams),
		IOStreams:   streams,
	})
	return cli.Run(c)
}
