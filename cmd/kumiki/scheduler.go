// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	cliflag "k8s.io/component-base/cli/flag"
	logsapi "k8s.io/component-base/logs/api/v1"
	_ "k8s.io/component-base/logs/json/register" // --logging-format=json
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/term"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/cmd/kumiki/tape"
	"github.com/kumiki-scheduler/kumiki/cmd/kumiki/wiring"
	"github.com/kumiki-scheduler/kumiki/config"
)

// schedulerFlags are kube-scheduler's flags and our own.
type schedulerFlags struct {
	app     app.Options
	logs    *logsapi.LoggingConfiguration
	metrics *metrics.Options
	sets    cliflag.NamedFlagSets

	configFile, writeConfigTo string
	leader                    config.LeaderElection
	resourceLock              string

	// The flags that upstream calls deprecated; they count only without --config.
	profiling, contentionProfiling bool
	kubeconfig, contentType        string
	qps                            float32
	burst                          int32

	gates    map[string]bool // feature gate -> wanted
	emulated []string

	record    string
	recordMax int64
}

func newSchedulerCommand(io streams) *cobra.Command {
	f := newSchedulerFlags()
	c := &cobra.Command{
		Use:   "scheduler",
		Short: "Run the scheduler, with the flags of kube-scheduler",
		Long: `Run the scheduler. It takes the flags and the configuration file of kube-scheduler 1.36 and stands in its place;
settings of its own are in pluginConfig under the name Kumiki.`,
		Version: thisVersion().String(),
		Args:    args(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return f.run(c.Context(), io) },
	}
	for _, set := range f.sets.FlagSets {
		c.Flags().AddFlagSet(set)
	}
	width, _, _ := term.TerminalSize(io.Out)
	cliflag.SetUsageAndHelpFunc(c, f.sets, width)
	return c
}

func newSchedulerFlags() *schedulerFlags {
	f := &schedulerFlags{app: app.DefaultOptions(), logs: logsapi.NewLoggingConfiguration(), metrics: metrics.NewOptions()}
	defaults := config.Default()
	f.leader = defaults.LeaderElection

	fs := f.sets.FlagSet("misc")
	fs.StringVar(&f.configFile, "config", "", "The path to the configuration file.")
	fs.StringVar(&f.writeConfigTo, "write-config-to", "", "If set, write the configuration that results to this file and exit.")
	fs.StringVar(&f.app.Master, "master", "", "The address of the Kubernetes API server (overrides any value in kubeconfig).")

	fs = f.sets.FlagSet("kumiki")
	fs.StringVar(&f.record, "record", "", "Write every event and effect to this file, to be played again with `kumiki replay`. It holds no environment values, secrets or annotations.")
	fs.Int64Var(&f.recordMax, "record-max-bytes", tape.DefaultMaxBytes, "Size at which --record stops writing; scheduling goes on.")

	f.app.Serve.Secure.AddFlags(f.sets.FlagSet("secure serving"))
	f.app.Serve.Authentication.AddFlags(f.sets.FlagSet("authentication"))
	f.app.Serve.Authorization.AddFlags(f.sets.FlagSet("authorization"))
	f.addDeprecated(f.sets.FlagSet("deprecated"))
	f.addLeaderElection(f.sets.FlagSet("leader election"))
	fs = f.sets.FlagSet("feature gate")
	f.gates = map[string]bool{}
	fs.Var(cliflag.NewMapStringBool(&f.gates), "feature-gates", "Feature gates as A=true,B=false. They are read for compatibility; none changes what this version does.")
	fs.StringSliceVar(&f.emulated, "emulated-version", nil, "Read for compatibility; this version always behaves as 1.36.")
	f.metrics.AddFlags(f.sets.FlagSet("metrics"))
	logsapi.AddFlags(f.logs, f.sets.FlagSet("logs"))
	return f
}

func (f *schedulerFlags) addDeprecated(fs *pflag.FlagSet) {
	fs.BoolVar(&f.profiling, "profiling", true, "Profiling via web interface host:port/debug/pprof/. Ignored with --config.")
	fs.BoolVar(&f.contentionProfiling, "contention-profiling", true, "Block profiling, if profiling is on. Ignored with --config.")
	fs.StringVar(&f.kubeconfig, "kubeconfig", "", "Path to a kubeconfig file. With --config it counts only if that file names none.")
	fs.StringVar(&f.contentType, "kube-api-content-type", "application/vnd.kubernetes.protobuf", "Content type of requests sent to the API server. Ignored with --config.")
	fs.Float32Var(&f.qps, "kube-api-qps", 0, "Requests per second to the API server; 0 is no limit but the number of requests in flight. Ignored with --config.")
	fs.Int32Var(&f.burst, "kube-api-burst", 0, "Requests in a burst over --kube-api-qps. Ignored with --config.")
	fs.DurationVar(&f.app.UnschedulableTimeout, "pod-max-in-unschedulable-pods-duration", 5*time.Minute, "How long a pod that fits nowhere waits for an event before it is tried anyway.")
}

func (f *schedulerFlags) addLeaderElection(fs *pflag.FlagSet) {
	l := &f.leader
	fs.BoolVar(&l.Enabled, "leader-elect", l.Enabled, "Gain the lease before scheduling. Enable this when several replicas run.")
	fs.DurationVar(&l.LeaseDuration, "leader-elect-lease-duration", l.LeaseDuration, "How long others wait after the last renewal they saw before they take the lease.")
	fs.DurationVar(&l.RenewDeadline, "leader-elect-renew-deadline", l.RenewDeadline, "How long the leader tries to renew before it gives up. Must be less than the lease duration.")
	fs.DurationVar(&l.RetryPeriod, "leader-elect-retry-period", l.RetryPeriod, "How long to wait between tries to gain or renew the lease.")
	fs.StringVar(&f.resourceLock, "leader-elect-resource-lock", "leases", "The kind of object used for locking; only 'leases'.")
	fs.StringVar(&l.Name, "leader-elect-resource-name", l.Name, "The name of the lease.")
	fs.StringVar(&l.Namespace, "leader-elect-resource-namespace", l.Namespace, "The namespace of the lease.")
}

func (f *schedulerFlags) changed(name string) bool {
	for _, set := range f.sets.FlagSets {
		if set.Changed(name) {
			return true
		}
	}
	return false
}

// configuration reads the file and lays the flags over it: those of leader election always, the deprecated ones only
// without a file (upstream: cmd/kube-scheduler/app/options, ApplyTo).
func (f *schedulerFlags) configuration() (config.Resolved, error) {
	out := config.Default()
	if f.configFile != "" {
		var err error
		if out, err = config.Read(f.configFile); err != nil {
			return out, err
		}
	} else {
		out.Profiling, out.ContentionProfiling = f.profiling, f.contentionProfiling && f.profiling
		out.ClientConnection.ContentType = f.contentType
		out.ClientConnection.QPS, out.ClientConnection.Burst = f.qps, f.burst
	}
	if out.ClientConnection.Kubeconfig == "" {
		out.ClientConnection.Kubeconfig = f.kubeconfig
	}
	l := &out.LeaderElection
	over(f, "leader-elect", &l.Enabled, f.leader.Enabled)
	over(f, "leader-elect-lease-duration", &l.LeaseDuration, f.leader.LeaseDuration)
	over(f, "leader-elect-renew-deadline", &l.RenewDeadline, f.leader.RenewDeadline)
	over(f, "leader-elect-retry-period", &l.RetryPeriod, f.leader.RetryPeriod)
	over(f, "leader-elect-resource-name", &l.Name, f.leader.Name)
	over(f, "leader-elect-resource-namespace", &l.Namespace, f.leader.Namespace)
	if f.resourceLock != "leases" {
		return out, usageError{fmt.Errorf("--leader-elect-resource-lock must be leases, got %q", f.resourceLock)}
	}
	if l.Enabled && (l.LeaseDuration <= l.RenewDeadline || l.RenewDeadline <= 0 || l.RetryPeriod <= 0) {
		return out, usageError{fmt.Errorf("leader election: the lease duration (%s) must be longer than the renew deadline (%s), and both and the retry period (%s) above 0",
			l.LeaseDuration, l.RenewDeadline, l.RetryPeriod)}
	}
	return out, nil
}

// over sets a value when its flag was given.
func over[T any](f *schedulerFlags, flag string, at *T, value T) {
	if f.changed(flag) {
		*at = value
	}
}

func (f *schedulerFlags) run(ctx context.Context, io streams) error {
	resolved, err := f.configuration()
	if err != nil {
		return err
	}
	if f.writeConfigTo != "" {
		return writeConfig(resolved, f.writeConfigTo)
	}
	if err := f.validate(); err != nil {
		return err
	}
	if err := logsapi.ValidateAndApply(f.logs, nil); err != nil {
		return usageError{fmt.Errorf("log flags: %w", err)}
	}
	changed := false
	f.sets.FlagSet("metrics").Visit(func(*pflag.Flag) { changed = true })
	if changed { // Apply logs an error about an allow-list that nobody named
		f.metrics.Apply()
	}
	defer klog.Flush()
	warn(io, resolved)
	if len(f.gates) > 0 || len(f.emulated) > 0 {
		fmt.Fprintln(io.Err, "warning: --feature-gates and --emulated-version change nothing in this version")
	}
	o := f.app
	o.Config = resolved
	wiring.View(&o)
	if f.record != "" {
		recorder, err := tape.Create(f.record, f.recordMax, resolved, o.UnschedulableTimeout)
		if err != nil {
			return err
		}
		defer recorder.Close()
		o.Observers = append(o.Observers, recorder.Observe)
	}
	return app.Run(ctx, o)
}

// validate checks the flags that belong to libraries.
func (f *schedulerFlags) validate() error {
	errs := f.app.Serve.Secure.Validate()
	errs = append(errs, f.app.Serve.Authentication.Validate()...)
	errs = append(errs, f.app.Serve.Authorization.Validate()...)
	errs = append(errs, f.metrics.Validate()...)
	if len(errs) > 0 {
		return usageError{fmt.Errorf("flags: %v", errs)}
	}
	return nil
}

func writeConfig(c config.Resolved, file string) error {
	wire, err := c.Wire()
	if err != nil {
		return err
	}
	text, err := yaml.Marshal(wire)
	if err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return fmt.Errorf("writing the configuration: %w", err)
	}
	return nil
}
