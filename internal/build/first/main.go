// SPDX-License-Identifier: Apache-2.0

// Command first builds kumiki and its local control plane into bin/ of the source tree in the working directory, and
// shows how far it is. It is what make up runs first.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/kumiki-scheduler/kumiki/internal/build"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	plan, err := build.Everything(".")
	if err != nil {
		return err
	}
	begin := time.Now()
	info, err := os.Stderr.Stat()
	live := err == nil && info.Mode()&os.ModeCharDevice != 0
	if err := build.Run(ctx, plan, os.Stderr, live); err != nil {
		return err
	}
	if took := time.Since(begin); took > 10*time.Second {
		fmt.Fprintf(os.Stderr, "built in %s\n", took.Round(time.Second))
	}
	return nil
}
