// SPDX-License-Identifier: Apache-2.0

// Command component runs a controller of another project beside a local cluster, until it is interrupted.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/kumiki-scheduler/kumiki/internal/ecosystem"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "component:", err)
		os.Exit(1)
	}
}

// usage is the form of the command line.
const usage = "usage: component build NAME | component run [--kubeconfig FILE] NAME"

func run(args []string) error {
	if len(args) == 0 {
		return errors.New(usage)
	}
	flags := flag.NewFlagSet("component", flag.ExitOnError)
	kubeconfig := flags.String("kubeconfig", os.Getenv("KUBECONFIG"), "the administrator's kubeconfig")
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	if flags.NArg() != 1 {
		return errors.New(usage)
	}
	c, err := ecosystem.Named(flags.Arg(0))
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch args[0] {
	case "build":
		root, err := ecosystem.Root()
		if err != nil {
			return err
		}
		_, err = c.Build(ctx, root)
		return err
	case "run":
		return serve(ctx, c, *kubeconfig)
	}
	return errors.New(usage)
}

// serve runs a component until it is interrupted.
func serve(ctx context.Context, c ecosystem.Component, kubeconfig string) error {
	file, err := filepath.Abs(kubeconfig)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "kumiki-"+c.Name+"-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	log, err := os.Create(filepath.Join(filepath.Dir(file), c.Name+".log"))
	if err != nil {
		return err
	}
	defer log.Close()
	p, err := ecosystem.Launch(ctx, c, file, dir, log)
	if err != nil {
		return err
	}
	defer p.Stop()
	fmt.Printf("%s is ready; its output is in %s\n", c.Name, log.Name())
	select {
	case <-ctx.Done():
		return nil
	case <-p.Ended():
		return fmt.Errorf("%s ended:\n%s", c.Name, p.Output())
	}
}
