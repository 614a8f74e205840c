// SPDX-License-Identifier: Apache-2.0

package config

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	componentbase "k8s.io/component-base/config/v1alpha1"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// Wire converts a resolved configuration to its form in a file, with every default written out: reading it again
// gives the same. kube-scheduler accepts it too, if it supports our settings.
func (c Resolved) Wire() (*configv1.KubeSchedulerConfiguration, error) {
	initial, most := int64(c.PodInitialBackoff.Seconds()), int64(c.PodMaxBackoff.Seconds())
	w := &configv1.KubeSchedulerConfiguration{
		TypeMeta:    metav1.TypeMeta{APIVersion: apiVersion, Kind: kind},
		Parallelism: &c.Parallelism,
		LeaderElection: componentbase.LeaderElectionConfiguration{
			LeaderElect:       &c.LeaderElection.Enabled,
			LeaseDuration:     metav1.Duration{Duration: c.LeaderElection.LeaseDuration},
			RenewDeadline:     metav1.Duration{Duration: c.LeaderElection.RenewDeadline},
			RetryPeriod:       metav1.Duration{Duration: c.LeaderElection.RetryPeriod},
			ResourceLock:      leaseLock,
			ResourceName:      c.LeaderElection.Name,
			ResourceNamespace: c.LeaderElection.Namespace,
		},
		ClientConnection: componentbase.ClientConnectionConfiguration{
			Kubeconfig:         c.ClientConnection.Kubeconfig,
			AcceptContentTypes: c.ClientConnection.AcceptContentTypes,
			ContentType:        c.ClientConnection.ContentType,
			QPS:                c.ClientConnection.QPS,
			Burst:              c.ClientConnection.Burst,
		},
		DebuggingConfiguration: componentbase.DebuggingConfiguration{
			EnableProfiling:           &c.Profiling,
			EnableContentionProfiling: &c.ContentionProfiling,
		},
		PodInitialBackoffSeconds: &initial,
		PodMaxBackoffSeconds:     &most,
		DelayCacheUntilActive:    c.DelayCacheUntilActive,
		Extenders:                c.Extenders,
	}
	for _, p := range c.Profiles {
		profile, err := c.wireProfile(p)
		if err != nil {
			return nil, err
		}
		w.Profiles = append(w.Profiles, profile)
	}
	return w, nil
}

// Disable removes plugins from the extension points of a configuration in the form of Wire at which they are not to
// run.
func Disable(wire *configv1.KubeSchedulerConfiguration, runs func(profile, plugin string, at Point) bool) {
	for i := range wire.Profiles {
		p := &wire.Profiles[i]
		if p.Plugins == nil || p.SchedulerName == nil {
			continue
		}
		for _, at := range points {
			s := set(p.Plugins, at)
			s.Enabled = slices.DeleteFunc(slices.Clone(s.Enabled), func(e configv1.Plugin) bool {
				return !runs(*p.SchedulerName, e.Name, at)
			})
		}
	}
}

// wireProfile writes the plugins of each point and disables the defaults.
func (c Resolved) wireProfile(p Profile) (configv1.KubeSchedulerProfile, error) {
	share := p.PercentageOfNodesToScore
	plugins := &configv1.Plugins{MultiPoint: configv1.PluginSet{Disabled: []configv1.Plugin{{Name: all}}}}
	for _, at := range points {
		for _, name := range p.Enabled[at] {
			entry := configv1.Plugin{Name: name}
			if at == Score {
				weight := int32(p.Weights[name])
				entry.Weight = &weight
			}
			if weight := int32(p.PlacementWeights[name]); at == PlacementScore && weight > 1 {
				entry.Weight = &weight
			}
			s := set(plugins, at)
			s.Enabled = append(s.Enabled, entry)
		}
	}
	out := configv1.KubeSchedulerProfile{
		SchedulerName:            &p.SchedulerName,
		PercentageOfNodesToScore: &share,
		Plugins:                  plugins,
	}
	args := slices.DeleteFunc(p.Args.list(), func(a argument) bool { return p.isIdleArgument(a.plugin) })
	for _, name := range slices.Sorted(maps.Keys(p.Args.Custom)) {
		args = append(args, argument{plugin: name, value: p.Args.Custom[name]})
	}
	for _, a := range append(args, argument{plugin: Kumiki, value: c.wireSettings(p)}) {
		raw, err := json.Marshal(a.value)
		if err != nil {
			return out, fmt.Errorf("writing the arguments of %s: %w", a.plugin, err)
		}
		out.PluginConfig = append(out.PluginConfig,
			configv1.PluginConfig{Name: a.plugin, Args: runtime.RawExtension{Raw: raw}})
	}
	return out, nil
}

func (c Resolved) wireSettings(p Profile) KumikiArgs {
	binds := int32(c.Kumiki.InFlightBinds)
	args := KumikiArgs{Seed: &c.Kumiki.Seed, InFlightBinds: &binds, Strategy: &p.Search.Strategy,
		FitScoresReal: p.FitScoresReal, SyncPreemption: p.SyncPreemption,
		Gangs: c.Kumiki.Gangs.wire(), Cycle: &c.Kumiki.Cycle, Fit: &p.Fit, Preemption: p.Preemption.wire()}
	if c.Kumiki.Cycle == InSessions {
		args.SessionPeriod = &metav1.Duration{Duration: c.Kumiki.SessionPeriod}
	}
	if c.Kumiki.Hosted != DefaultHosted() {
		args.Hosted = c.Kumiki.Hosted.wire()
	}
	if c.Kumiki.Wire != Prepared {
		args.Wire = &c.Kumiki.Wire
	}
	if c.Kumiki.Instances != DefaultInstances() {
		args.Instances = c.Kumiki.Instances.wire()
	}
	if p.Search.Strategy == RandomSubset {
		subset := int32(p.Search.Subset)
		args.Subset = &subset
	}
	return args
}

// WithoutSecrets returns the configuration without what must not leave the machine: the credentials and trusted
// certificates for extenders.
func (c Resolved) WithoutSecrets() Resolved {
	c.Extenders = slices.Clone(c.Extenders)
	for i := range c.Extenders {
		c.Extenders[i].TLSConfig = nil
	}
	return c
}

// WithoutKeys returns the configuration without private keys that it contains as text, for display, and whether there
// were any.
func (c Resolved) WithoutKeys() (shown Resolved, hidden bool) {
	c.Extenders = slices.Clone(c.Extenders)
	for i := range c.Extenders {
		if t := c.Extenders[i].TLSConfig; t != nil && len(t.KeyData) > 0 {
			kept := *t
			kept.KeyData, hidden = nil, true
			c.Extenders[i].TLSConfig = &kept
		}
	}
	return c, hidden
}
