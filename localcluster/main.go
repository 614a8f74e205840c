// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/kumiki-scheduler/kumiki/localcluster/supervise"
)

// Exit codes.
const (
	exitOK = 0
	// exitFailed: something broke while the cluster ran.
	exitFailed = 1
	// exitUsage: a flag, a file that a flag names, or an argument is wrong.
	exitUsage = 2
	// exitNotReady: the cluster did not become ready.
	exitNotReady = 3
	// exitNoCluster: a sub-command found no running cluster.
	exitNoCluster = 4
)

// codedError carries the exit code to main.
type codedError struct {
	code int
	err  error
}

func (e codedError) Error() string { return e.err.Error() }
func (e codedError) Unwrap() error { return e.err }

func coded(code int, err error) error {
	if err == nil {
		return nil
	}
	return codedError{code: code, err: err}
}

func main() {
	os.Exit(run(os.Args[1:]))
}

func run(args []string) int {
	root := startCommand("kumiki-localcluster")
	start := startCommand("start")
	root.AddCommand(start, roleCommand(), statusCommand(), kubectlCommand())
	for _, c := range []struct {
		verb  supervise.Verb
		short string
	}{
		{supervise.Kill, "End a role's process with SIGKILL and leave it dead"},
		{supervise.Stop, "Freeze a role's process with SIGSTOP"},
		{supervise.Cont, "Let a frozen process go on"},
		{supervise.Restart, "Kill a role's process if it lives, start it anew and wait until it works"},
	} {
		root.AddCommand(verbCommand(c.verb, c.short))
	}
	root.SetArgs(args)
	err := root.Execute()
	if err == nil {
		return exitOK
	}
	fmt.Fprintln(os.Stderr, "kumiki-localcluster:", err)
	var c codedError
	switch {
	case errors.As(err, &c):
		return c.code
	case errors.Is(err, supervise.ErrNoCluster):
		return exitNoCluster
	}
	// What cobra itself refuses: unknown flags and sub-commands.
	return exitUsage
}

// quiet makes a command print only what this program says.
func quiet(c *cobra.Command) *cobra.Command {
	c.SilenceErrors = true
	c.SilenceUsage = true
	return c
}
