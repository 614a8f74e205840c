// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // whatever a kubeconfig uses to log in

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/command/ask"
	"github.com/kumiki-scheduler/kumiki/app/command/text"
	"github.com/kumiki-scheduler/kumiki/bench"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/host/framework"
)

// Exit codes.
const (
	exitOK       = 0
	exitNegative = 1 // not found, failed, or the answer is no
	exitUsage    = 2 // of kumiki; kube-scheduler ends with 1
)

// usageError is a mistake on the command line.
type usageError struct{ error }

// logged is an error that was logged already.
type logged struct{ error }

func (l logged) Unwrap() error { return l.error }

// streams are a command's input and output: data to Out, progress and errors to Err.
type streams struct {
	In       io.Reader
	Out, Err io.Writer
}

// Option adds something to the command line.
type Option func(*options)

// options is what the options of Main set.
type options struct {
	custom    []plugin.Registration
	framework []framework.Registration
	hooks     framework.Hooks
}

// WithPlugin adds a custom plugin. Profiles enable it by its name, as they do default plugins.
func WithPlugin(r plugin.Registration) Option {
	return func(o *options) { o.custom = append(o.custom, r) }
}

// WithFrameworkPlugin adds a plugin that is written for the framework of kube-scheduler, as WithPlugin of
// k8s.io/kubernetes/cmd/kube-scheduler/app does.
func WithFrameworkPlugin(name string, factory framework.Factory) Option {
	return func(o *options) {
		o.framework = append(o.framework, framework.Registration{Name: name, Factory: factory})
	}
}

// WithFrameworkRegistration is WithFrameworkPlugin for a plugin that cannot be made without arguments or a cluster.
func WithFrameworkRegistration(r framework.Registration) Option {
	return func(o *options) { o.framework = append(o.framework, r) }
}

// WithFrameworkHooks sets what the program adds to the CycleState of plugins of kube-scheduler's framework.
func WithFrameworkHooks(h framework.Hooks) Option {
	return func(o *options) { o.hooks = h }
}

// NewSchedulerCommand returns the command that runs the scheduler alone, under the name kube-scheduler, for programs
// that start it as upstream's. It ends when its context does.
func NewSchedulerCommand(with ...Option) (*cobra.Command, error) {
	plugins, err := collect(with)
	if err != nil {
		return nil, err
	}
	return newSchedulerCommand(streams{os.Stdin, os.Stdout, os.Stderr}, kubeScheduler, plugins), nil
}

// collect returns the plugins that options add to the default ones.
func collect(with []Option) (app.Plugins, error) {
	var o options
	for _, set := range with {
		set(&o)
	}
	plugins, err := app.NewPlugins(o.custom...)
	if err != nil {
		return app.Plugins{}, err
	}
	plugins, err = plugins.WithFramework(o.framework...)
	return plugins.WithFrameworkHooks(o.hooks), err
}

// Main runs the command line of this process until it ends or the process gets an interrupt, and returns the exit
// code.
func Main(with ...Option) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	// A second signal ends the process at once.
	context.AfterFunc(ctx, stop)
	return Run(ctx, os.Args, os.Stdin, os.Stdout, os.Stderr, with...)
}

// Run runs a command line, of which args[0] is the name of the program, and returns the exit code.
func Run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer, with ...Option) int {
	plugins, err := collect(with)
	if err != nil {
		fmt.Fprintf(errs, "%s: %v\n", args[0], err)
		return exitNegative
	}
	io := streams{in, out, errs}
	root := commandFor(args[0], io, plugins)
	root.SetArgs(args[1:])
	root.SetIn(io.In)
	root.SetOut(io.Out)
	root.SetErr(io.Err)
	code := exitCode(root.ExecuteContext(ctx), root.Name(), io.Err)
	if code == exitUsage && root.Name() == kubeScheduler {
		return exitNegative // kube-scheduler has no other
	}
	return code
}

// commandFor returns the command for the name under which the program was started.
func commandFor(arg0 string, io streams, plugins app.Plugins) *cobra.Command {
	switch strings.TrimSuffix(filepath.Base(arg0), ".exe") {
	case kubeScheduler:
		return prepare(newSchedulerCommand(io, kubeScheduler, plugins))
	case "kubectl-kumiki":
		c := newRootCommand(io, plugins)
		c.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl kumiki"}
		return prepare(c)
	}
	return prepare(newRootCommand(io, plugins))
}

// prepare makes a command tree report usage errors as usageError.
func prepare(c *cobra.Command) *cobra.Command {
	c.SilenceErrors, c.SilenceUsage = true, true
	c.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w\nsee '%s --help'", err, c.CommandPath())}
	})
	return c
}

func exitCode(err error, name string, complain io.Writer) int {
	if err == nil || errors.Is(err, context.Canceled) {
		return exitOK
	}
	var shown logged
	if !errors.As(err, &shown) {
		fmt.Fprintf(complain, "%s: %s\n", name, text.Lines(err.Error()))
	}
	var usage usageError
	var other interface{ Usage() } // of packages with commands of their own
	if errors.As(err, &usage) || errors.As(err, &other) || strings.HasPrefix(err.Error(), "unknown command") {
		return exitUsage
	}
	return exitNegative
}

func newRootCommand(io streams, plugins app.Plugins) *cobra.Command {
	root := &cobra.Command{
		Use:   "kumiki",
		Short: "A scheduler for Kubernetes that explains itself",
		Long: `kumiki is a scheduler for Kubernetes, a drop-in replacement for kube-scheduler.

Try it on this machine:      kumiki up
Explain a pending pod:       kumiki why pod/NAME -n NAMESPACE
List waiting pods:           kumiki queue -A
List gangs:                  kumiki gangs -A
Pause scheduling:            kumiki pause
Find what takes the CPU:     kumiki profile record
Try a change in virtual time: kumiki simulate SCENARIO
Run it in a cluster:         kumiki scheduler --config FILE`,
	}
	root.AddCommand(
		newUpCommand(io), newSchedulerCommand(io, "scheduler", plugins), newWhyCommand(io, plugins),
		newCaptureCommand(io, plugins),
		newShadowCommand(io), newQueueCommand(io), newGangsCommand(io), newReplayCommand(io, plugins),
		newPauseCommand(io), newResumeCommand(io), newProfileCommand(io, plugins), newIncidentCommand(io, plugins),
		newSimulateCommand(io, plugins), newDefragCommand(io, plugins),
		bench.NewCommand(), newConfigCommand(io, plugins), newVersionCommand(io),
	)
	return root
}

// args checks positional arguments, as usage errors.
func args(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, a []string) error {
		if err := check(c, a); err != nil {
			return usageError{fmt.Errorf("%w\nusage: %s", err, c.UseLine())}
		}
		return nil
	}
}

// unknown reports whether an error means that the subject of the question does not exist.
func unknown(err error) bool { return errors.Is(err, ask.ErrUnknown) }
