// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/util/compatibility"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/logs"
	logsapi "k8s.io/component-base/logs/api/v1"
	metricsfeatures "k8s.io/component-base/metrics/features"
	"k8s.io/kube-controller-manager/config/v1alpha1"
	"k8s.io/kubernetes/pkg/controller/apis/config"
	"k8s.io/kubernetes/pkg/controller/apis/config/scheme"
)

func init() {
	// The API server's process knows these gates, too, and both get the same --feature-gates.
	utilruntime.Must(logsapi.AddFeatureGates(utilfeature.DefaultMutableFeatureGate))
	utilruntime.Must(metricsfeatures.AddFeatureGates(utilfeature.DefaultMutableFeatureGate))
}

// options are the settings of the process.
type options struct {
	kubeconfig string
	// controllers are names of the table, "*" for all, and "-name" for all but that one.
	controllers []string
	gates       map[string]bool
	logs        *logsapi.LoggingConfiguration
	// config has kube-controller-manager's defaults, and the values of flags.
	config config.KubeControllerManagerConfiguration
}

// parse reads flags. It changes nothing but its result.
func parse(args []string) (*options, error) {
	o, fs, err := newOptions()
	if err != nil {
		return nil, err
	}
	if err := fs.Parse(args); err != nil {
		return nil, fmt.Errorf("%w; the flags are %s", err, strings.Join(flagNames(fs), ", "))
	}
	if fs.NArg() > 0 {
		return nil, fmt.Errorf("%q is not a flag", fs.Arg(0))
	}
	return o, o.validate()
}

// Check returns what is wrong with arguments of Run, except for values of feature gates.
func Check(args []string) error {
	_, err := parse(args)
	return err
}

// newOptions returns the defaults, and the flags that change them. Each flag has the name, the default and the meaning
// of a flag of kube-controller-manager.
func newOptions() (*options, *pflag.FlagSet, error) {
	o := &options{gates: map[string]bool{}, logs: logs.NewOptions(), controllers: []string{"*"}}
	defaults := &v1alpha1.KubeControllerManagerConfiguration{}
	scheme.Scheme.Default(defaults)
	if err := scheme.Scheme.Convert(defaults, &o.config, nil); err != nil {
		return nil, nil, fmt.Errorf("default the configuration of the controllers: %w", err)
	}
	// kube-controller-manager sets these as defaults of flags, not of its configuration.
	lifecycle := &o.config.NodeLifecycleController
	lifecycle.NodeEvictionRate, lifecycle.SecondaryNodeEvictionRate = 0.1, 0.01
	lifecycle.LargeClusterSizeThreshold, lifecycle.UnhealthyZoneThreshold = 50, 0.55

	fs := pflag.NewFlagSet("controllers", pflag.ContinueOnError)
	fs.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	fs.Usage = func() {} // errors list the flags
	fs.StringVar(&o.kubeconfig, "kubeconfig", "", "")
	fs.StringSliceVar(&o.controllers, "controllers", o.controllers, "")
	fs.Var(cliflag.NewMapStringBool(&o.gates), "feature-gates", "")
	logsapi.AddFlags(o.logs, fs)

	generic := &o.config.Generic
	fs.Float32Var(&generic.ClientConnection.QPS, "kube-api-qps", generic.ClientConnection.QPS, "")
	fs.Int32Var(&generic.ClientConnection.Burst, "kube-api-burst", generic.ClientConnection.Burst, "")
	fs.DurationVar(&generic.MinResyncPeriod.Duration, "min-resync-period", generic.MinResyncPeriod.Duration, "")
	fs.StringVar(&o.config.SAController.RootCAFile, "root-ca-file", "", "")

	collector := &o.config.GarbageCollectorController.ConcurrentGCSyncs
	fs.Int32Var(collector, "concurrent-gc-syncs", *collector, "")
	terminated := &o.config.PodGCController.TerminatedPodGCThreshold
	fs.Int32Var(terminated, "terminated-pod-gc-threshold", *terminated, "")
	binder := &o.config.PersistentVolumeBinderController.PVClaimBinderSyncPeriod.Duration
	fs.DurationVar(binder, "pvclaimbinder-sync-period", *binder, "")

	grace, startup := &lifecycle.NodeMonitorGracePeriod.Duration, &lifecycle.NodeStartupGracePeriod.Duration
	fs.DurationVar(grace, "node-monitor-grace-period", *grace, "")
	fs.DurationVar(startup, "node-startup-grace-period", *startup, "")
	fs.Float32Var(&lifecycle.NodeEvictionRate, "node-eviction-rate", lifecycle.NodeEvictionRate, "")
	return o, fs, nil
}

func flagNames(fs *pflag.FlagSet) []string {
	var names []string
	fs.VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
	return names
}

func (o *options) validate() error {
	names := Names()
	for _, name := range o.controllers {
		if known := strings.TrimPrefix(name, "-"); name != "*" && !slices.Contains(names, known) {
			return fmt.Errorf("--controllers: a local cluster has no %q; it has %s", known, strings.Join(names, ", "))
		}
	}
	return nil
}

// enabled reports whether a controller runs: the first element that names it decides, and "*" otherwise.
func (o *options) enabled(name string) bool {
	for _, choice := range o.controllers {
		switch choice {
		case name:
			return true
		case "-" + name:
			return false
		}
	}
	return slices.Contains(o.controllers, "*")
}

// apply sets what belongs to the process: feature gates and logging.
func (o *options) apply() error {
	gates, registry := utilfeature.DefaultMutableFeatureGate, compatibility.DefaultComponentGlobalsRegistry
	if err := registry.Set(); err != nil {
		return fmt.Errorf("set the version of feature gates: %w", err)
	}
	if err := gates.SetFromMap(o.gates); err != nil {
		return fmt.Errorf("--feature-gates: %w", err)
	}
	if err := utilerrors.NewAggregate(registry.Validate()); err != nil {
		return fmt.Errorf("--feature-gates: %w", err)
	}
	metricsfeatures.ApplyFeatureGates(gates)
	if err := logsapi.ValidateAndApply(o.logs, gates); err != nil {
		return fmt.Errorf("set up logging: %w", err)
	}
	return nil
}
