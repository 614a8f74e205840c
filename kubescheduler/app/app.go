// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	"k8s.io/kubernetes/pkg/scheduler/metrics"

	"github.com/kumiki-scheduler/kumiki/app/command"
	"github.com/kumiki-scheduler/kumiki/host/framework"
)

// Option adds plugins to a registry.
type Option func(runtime.Registry) error

// WithPlugin adds a plugin. Profiles enable it by its name. The name must not be that of a default plugin.
func WithPlugin(name string, factory runtime.PluginFactory) Option {
	return func(registry runtime.Registry) error { return registry.Register(name, factory) }
}

// NewSchedulerCommand returns the command of kumiki as kube-scheduler: its flags, its configuration file, and plugins.
// An error of an option is the error of the command. The command ends at an interrupt, as upstream's does.
func NewSchedulerCommand(options ...Option) *cobra.Command {
	command, err := newCommand(options)
	if err != nil {
		fail := func(*cobra.Command, []string) error { return err }
		return &cobra.Command{Use: "kube-scheduler", DisableFlagParsing: true, RunE: fail}
	}
	run := command.RunE
	command.RunE = func(c *cobra.Command, args []string) error {
		ctx, stop := signal.NotifyContext(parent(c), os.Interrupt, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop) // a second signal ends the process at once
		c.SetContext(ctx)
		if err := run(c, args); !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}
	return command
}

// parent returns the context with which a command was started.
func parent(c *cobra.Command) context.Context {
	if ctx := c.Context(); ctx != nil {
		return ctx
	}
	return context.Background()
}

// newCommand returns kumiki's command with the plugins of options.
func newCommand(options []Option) (*cobra.Command, error) {
	with, err := Registrations(options...)
	if err != nil {
		return nil, err
	}
	metrics.InitMetrics()
	out := []command.Option{command.WithFrameworkHooks(Hooks())}
	for _, r := range with {
		out = append(out, command.WithFrameworkRegistration(r))
	}
	return command.NewSchedulerCommand(out...)
}

// Registrations returns the plugins of options, sorted by name, for a program that assembles kumiki itself: see
// Plugins.WithFramework of kumiki's package app. Their extension points are known once they are made, because a factory
// may need arguments and a cluster.
func Registrations(options ...Option) ([]framework.Registration, error) {
	registry := runtime.Registry{}
	for _, add := range options {
		if err := add(registry); err != nil {
			return nil, err
		}
	}
	var out []framework.Registration
	for _, name := range slices.Sorted(maps.Keys(registry)) {
		out = append(out, framework.Registration{Name: name, Factory: adapt(name, registry[name]), Undeclared: true,
			CheckArgs: func(args apiruntime.Object) error {
				_, err := arguments(name, args)
				return err
			}})
	}
	return out, nil
}

// adapt returns a factory for host/framework: arguments are upstream's, and the Handle is a framework.Framework.
func adapt(name string, factory runtime.PluginFactory) framework.Factory {
	return func(ctx context.Context, args apiruntime.Object, h fwk.Handle) (fwk.Plugin, error) {
		decoded, err := arguments(name, args)
		if err != nil {
			return nil, fmt.Errorf("arguments in pluginConfig: %w", err)
		}
		return factory(ctx, decoded, &handle{h})
	}
}
