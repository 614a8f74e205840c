// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/blang/semver/v4"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apiserver/pkg/server/flagz"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	metricsv1 "k8s.io/component-base/metrics/api/v1"
	"k8s.io/component-base/term"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/app/command/incidents"
	"github.com/kumiki-scheduler/kumiki/app/command/tape"
	"github.com/kumiki-scheduler/kumiki/app/command/wiring"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
)

// kubeScheduler is the name under which the program is the scheduler alone, with the exit codes of upstream.
const kubeScheduler = "kube-scheduler"

func newSchedulerCommand(io streams, name string, plugins app.Plugins) *cobra.Command {
	f := newSchedulerFlags(name)
	f.app.Plugins = plugins
	c := &cobra.Command{
		Use:   name,
		Short: "Run the scheduler, with the flags of kube-scheduler",
		Long: `Run the scheduler, a drop-in replacement for kube-scheduler 1.37 with its flags and its configuration
file. Settings of kumiki are in pluginConfig under the name Kumiki.`,
		Args: args(func(c *cobra.Command, given []string) error {
			for _, arg := range given {
				if arg != "" { // manifests leave empty ones
					return fmt.Errorf("%q does not take any arguments, got %q", c.CommandPath(), given)
				}
			}
			return nil
		}),
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c, io) },
	}
	for _, section := range f.sets.Order {
		c.Flags().AddFlagSet(f.sets.FlagSets[section])
	}
	c.SetGlobalNormalizationFunc(cliflag.WordSepNormalizeFunc) // --leader_elect
	if err := c.MarkFlagFilename("config", "yaml", "yml", "json"); err != nil {
		panic(err)
	}
	width, _, _ := term.TerminalSize(io.Out)
	cliflag.SetUsageAndHelpFunc(c, f.sets, width)
	return c
}

// configuration reads the file and applies the flags: those of leader election always, the deprecated ones only
// without a file (upstream: cmd/kube-scheduler/app/options, ApplyTo).
func (f *schedulerFlags) configuration() (config.Resolved, error) {
	out := f.app.Plugins.DefaultConfig()
	if f.configFile != "" {
		var err error
		if out, err = f.app.Plugins.ReadConfig(f.configFile); err != nil {
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
		return out, usageError{fmt.Errorf("leader election: the lease duration (%s) must be longer than the renew "+
			"deadline (%s), and both and the retry period (%s) above 0",
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

// run does what the flags request, in upstream's order: errors of flags precede errors of the file.
func (f *schedulerFlags) run(c *cobra.Command, io streams) error {
	if text := f.version.text(); text != "" {
		_, err := fmt.Fprintln(io.Out, text)
		return err
	}
	if err := f.gates.Resolve(); err != nil {
		return usageError{err}
	}
	logs.InitLogs() // what libraries write to the standard log becomes lines of ours
	if err := logsapi.ValidateAndApply(f.logs, f.gates.Gate()); err != nil {
		return usageError{err}
	}
	defer klog.Flush()
	cliflag.PrintFlags(c.Flags())
	err := f.schedule(c.Context(), io)
	if err != nil && f.logs.Format == logsapi.JSONLogFormat && !errors.Is(err, context.Canceled) {
		klog.Background().Error(err, "command failed")
		return logged{err}
	}
	return err
}

func (f *schedulerFlags) schedule(ctx context.Context, io streams) error {
	if err := f.validate(); err != nil {
		return err
	}
	f.app.Plugins = f.app.Plugins.With(f.gates.Features())
	resolved, err := f.configuration()
	if err != nil {
		return err
	}
	following := f.shadow.Scheduler != ""
	if following {
		resolved.LeaderElection.Enabled = false
	}
	for _, w := range f.warnings(resolved) {
		f.warn(io, w)
	}
	if f.writeConfigTo != "" {
		return writeConfig(resolved, f.writeConfigTo)
	}
	if err := f.gates.Apply(); err != nil {
		return err
	}
	changed := false
	f.sets.FlagSet("metrics").VisitAll(func(flag *pflag.Flag) { changed = changed || flag.Changed })
	if changed { // Apply logs an error about an allow-list that is not set
		f.metrics.Apply()
	}
	f.gates.Count()
	o := f.app
	o.Config = resolved
	asked := f.gates.Switches()
	o.Version, o.CoordinatedElection = f.gates.Version(), asked.Coordinated
	o.Serve.Flagz, o.Serve.Statusz, o.Serve.Flags = asked.Flagz, asked.Statusz,
		flagz.NamedFlagSetsReader{FlagSets: f.sets}
	if following {
		return f.shadow.follow(ctx, io, o)
	}
	wiring.View(&o)
	if resolved.Kumiki.Instances.Mode == config.Shared {
		if f.record != "" || f.incidentDir != "" {
			return usageError{errors.New("--record and --incident-dir cannot be used with instances: mode Shared: " +
				"neither has what planners are told; leave them out, or set mode Off")}
		}
		return app.Run(ctx, o)
	}
	ended := wiring.Incidents(ctx, &o, incidents.Options{Dir: f.incidentDir, MaxFiles: incidentFiles,
		MaxBytes: f.incidentMax, Tool: "kumiki " + version})
	if f.record != "" {
		recorder, err := tape.Start(f.record, resolved, o.UnschedulableTimeout, tape.Options{
			MaxBytes: f.recordMax, Segments: f.recordSegments,
			Ended: func(why tape.Reason) { metrics.Process().RecordingsEnded.WithLabelValues(string(why)).Inc() },
		})
		if err != nil {
			return err
		}
		defer recorder.Close()
		o.Attach = func(e *engine.Engine) []kube.Observer {
			recorder.SetState(e.State)
			if err := recorder.Describe(e); err != nil {
				klog.Background().Error(err, "The recording cannot be replayed")
			}
			return []kube.Observer{recorder.Observe}
		}
	}
	err = app.Run(ctx, o)
	ended(err)
	return err
}

// warn reports in one line what is valid but may not be intended. Readers of JSON logs expect no other lines.
func (f *schedulerFlags) warn(io streams, text string) {
	if f.logs.Format == logsapi.JSONLogFormat {
		klog.Background().Info("Warning: " + text)
		return
	}
	fmt.Fprintln(io.Err, "warning: "+text)
}

// validate checks the flags of libraries, with their error texts.
func (f *schedulerFlags) validate() error {
	if err := f.shadow.check(f.record); err != nil {
		return err
	}
	if err := f.checkIncidentDir(); err != nil {
		return err
	}
	if f.recordSegments < 1 || f.recordSegments > 1 && f.recordMax < tape.MinSegmentBytes {
		return usageError{fmt.Errorf("--record-segments must be at least 1, and --record-max-bytes at least %d with "+
			"several segments, got %d and %d", tape.MinSegmentBytes, f.recordSegments, f.recordMax)}
	}
	errs := f.app.Serve.Secure.Validate()
	errs = append(errs, f.app.Serve.Authentication.Validate()...)
	errs = append(errs, f.app.Serve.Authorization.Validate()...)
	// The options of metrics would compare with the version that this binary was linked as.
	if wrong := metricsv1.Validate(&f.metrics.MetricsConfiguration,
		semver.MustParse(strings.TrimPrefix(compatible, "v")), field.NewPath("metrics")); len(wrong) > 0 {
		errs = append(errs, wrong.ToAggregate().Errors()...)
	}
	if len(errs) > 0 {
		return usageError{utilerrors.NewAggregate(errs)}
	}
	return nil
}

// checkIncidentDir returns an error unless bundles can be written, so that a mistake shows at the start.
func (f *schedulerFlags) checkIncidentDir() error {
	if f.incidentMax < 1 {
		return usageError{fmt.Errorf("--incident-dir-max-bytes must be above 0, got %d", f.incidentMax)}
	}
	if f.incidentDir == "" {
		return nil
	}
	info, err := os.Stat(f.incidentDir)
	if err == nil && !info.IsDir() {
		err = errors.New("it is not a directory")
	}
	if err != nil {
		return usageError{fmt.Errorf("--incident-dir %s: %w", f.incidentDir, err)}
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
	klog.Background().Info("Wrote configuration", "file", file)
	return nil
}
