// SPDX-License-Identifier: Apache-2.0

// Command corebench is `kumiki bench core` with upstream's scheduler beside kumiki's engine, which the program
// kumiki must not be linked with.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"

	"github.com/kumiki-scheduler/kumiki/bench/core"
	"github.com/kumiki-scheduler/kumiki/conformance/corebench"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	cmd := core.NewCommand(corebench.Contenders()...)
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
