// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	componentbase "k8s.io/component-base/config/v1alpha1"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// Upstream's defaults (pkg/scheduler/apis/config/v1/defaults.go).
const (
	defaultParallelism    = 16
	defaultInitialBackoff = 1  // seconds
	defaultMaxBackoff     = 10 // seconds
	defaultContentType    = "application/vnd.kubernetes.protobuf"
	leaseLock             = "leases"
)

// resolve fills in defaults and validates. Its result can only be used if there is no problem.
func (r *report) resolve(wire *configv1.KubeSchedulerConfiguration) Resolved {
	out := Resolved{
		Features:              r.catalog.Features(),
		Parallelism:           orDefault(wire.Parallelism, defaultParallelism),
		PodInitialBackoff:     seconds(orDefault(wire.PodInitialBackoffSeconds, defaultInitialBackoff)),
		PodMaxBackoff:         seconds(orDefault(wire.PodMaxBackoffSeconds, defaultMaxBackoff)),
		LeaderElection:        r.leaderElection(wire.LeaderElection),
		ClientConnection:      r.clientConnection(wire.ClientConnection),
		Profiling:             orDefault(wire.EnableProfiling, true),
		DelayCacheUntilActive: wire.DelayCacheUntilActive,
		Kumiki: Settings{Seed: DefaultSeed, InFlightBinds: DefaultInFlightBinds, Gangs: DefaultGangs(),
			Hosted: DefaultHosted(), Instances: DefaultInstances(),
			Cycle: Continuous, Wire: Prepared},
	}
	out.ContentionProfiling = orDefault(wire.EnableContentionProfiling, out.Profiling)
	if out.Parallelism <= 0 {
		r.add("parallelism", "must be above 0, got %d", out.Parallelism)
	}
	r.backoff(wire)
	r.percentage("percentageOfNodesToScore", wire.PercentageOfNodesToScore)
	out.Extenders = r.extenders(wire.Extenders)
	out.Profiles = r.profiles(wire)
	ignoreManaged(out.Profiles, out.Extenders)
	r.settings(wire.Profiles, &out)
	out.Warnings = r.warnings
	return out
}

// orDefault returns the value of a pointer, or the default if it is nil.
func orDefault[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}

func seconds(n int64) time.Duration { return time.Duration(n) * time.Second }

// maxSeconds keeps a backoff inside a time.Duration.
const maxSeconds = int64(1<<63-1) / int64(time.Second)

func (r *report) backoff(wire *configv1.KubeSchedulerConfiguration) {
	first := orDefault(wire.PodInitialBackoffSeconds, defaultInitialBackoff)
	most := orDefault(wire.PodMaxBackoffSeconds, defaultMaxBackoff)
	if first <= 0 || first > maxSeconds {
		r.add("podInitialBackoffSeconds", "must be above 0 and at most %d, got %d", maxSeconds, first)
	}
	if most < first || most > maxSeconds {
		r.add("podMaxBackoffSeconds", "must be at least podInitialBackoffSeconds (%d) and at most %d, got %d",
			first, maxSeconds, most)
	}
}

func (r *report) percentage(path string, p *int32) {
	if p != nil {
		r.between(field.NewPath(path), *p, 0, 100)
	}
}

func (r *report) leaderElection(w componentbase.LeaderElectionConfiguration) LeaderElection {
	w.ResourceLock = orString(w.ResourceLock, leaseLock) // component-base has another default
	componentbase.RecommendedDefaultLeaderElectionConfiguration(&w)
	out := LeaderElection{
		Enabled:       *w.LeaderElect,
		LeaseDuration: w.LeaseDuration.Duration,
		RenewDeadline: w.RenewDeadline.Duration,
		RetryPeriod:   w.RetryPeriod.Duration,
		Namespace:     orString(w.ResourceNamespace, metav1.NamespaceSystem),
		Name:          orString(w.ResourceName, configv1.SchedulerDefaultLockObjectName),
	}
	if !out.Enabled {
		return out
	}
	if w.ResourceLock != leaseLock {
		r.add("leaderElection.resourceLock", "must be %q, got %q", leaseLock, w.ResourceLock)
	}
	r.above0("leaderElection.leaseDuration", out.LeaseDuration)
	r.above0("leaderElection.renewDeadline", out.RenewDeadline)
	r.above0("leaderElection.retryPeriod", out.RetryPeriod)
	if out.LeaseDuration <= out.RenewDeadline {
		r.add("leaderElection.leaseDuration", "must be longer than renewDeadline (%v), got %v",
			out.RenewDeadline, out.LeaseDuration)
	}
	return out
}

func (r *report) above0(path string, d time.Duration) {
	if d <= 0 {
		r.add(path, "must be above 0, got %v", d)
	}
}

func orString(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func (r *report) clientConnection(w componentbase.ClientConnectionConfiguration) ClientConnection {
	if w.Burst < 0 {
		r.add("clientConnection.burst", "must not be negative, got %d", w.Burst)
	}
	return ClientConnection{
		Kubeconfig:         w.Kubeconfig,
		AcceptContentTypes: w.AcceptContentTypes,
		ContentType:        orString(w.ContentType, defaultContentType),
		QPS:                w.QPS,
		Burst:              w.Burst,
	}
}

// profiles resolves every profile; without any it returns the default one.
func (r *report) profiles(wire *configv1.KubeSchedulerConfiguration) []Profile {
	if len(wire.Profiles) == 0 {
		wire.Profiles = []configv1.KubeSchedulerProfile{{}}
	}
	in := wire.Profiles
	out := make([]Profile, len(in))
	first := map[string]int{} // scheduler name -> index of the first profile that has it
	for i := range in {
		path := fmt.Sprintf("profiles[%d]", i)
		// Only a single profile gets a name; the author must name several ones.
		if in[i].SchedulerName == nil && len(in) == 1 {
			in[i].SchedulerName = new(string)
			*in[i].SchedulerName = v1.DefaultSchedulerName
		}
		out[i] = r.profile(path, wire, &in[i])
		name := out[i].SchedulerName
		if name == "" {
			r.add(path+".schedulerName", "a name is required")
		} else if j, ok := first[name]; ok {
			r.add(path+".schedulerName", "%q is already the name of profiles[%d]", name, j)
		} else {
			first[name] = i
		}
		if i > 0 && !sameQueueSort(in[0].Plugins, in[i].Plugins) {
			r.add(path+".plugins.queueSort", "must be the same in all profiles, because there is one queue")
		}
	}
	return out
}

// sameQueueSort compares the queue order of two profiles literally, as upstream does, and reports whether it is the
// same.
func sameQueueSort(a, b *configv1.Plugins) bool {
	if a == nil {
		a = &configv1.Plugins{}
	}
	if b == nil {
		b = &configv1.Plugins{}
	}
	equal := func(x, y configv1.Plugin) bool {
		return x.Name == y.Name && orDefault(x.Weight, 0) == orDefault(y.Weight, 0)
	}
	sameName := func(x, y configv1.Plugin) bool { return x.Name == y.Name }
	return slices.EqualFunc(a.QueueSort.Enabled, b.QueueSort.Enabled, equal) &&
		slices.EqualFunc(a.QueueSort.Disabled, b.QueueSort.Disabled, sameName)
}

func (r *report) profile(path string, wire *configv1.KubeSchedulerConfiguration,
	p *configv1.KubeSchedulerProfile) Profile {
	out := Profile{SchedulerName: orDefault(p.SchedulerName, "")}
	r.percentage(path+".percentageOfNodesToScore", p.PercentageOfNodesToScore)
	if share := p.PercentageOfNodesToScore; share != nil {
		out.PercentageOfNodesToScore = *share
	} else {
		out.PercentageOfNodesToScore = orDefault(wire.PercentageOfNodesToScore, 0)
	}
	out.Enabled, out.Weights, out.PlacementWeights = r.plugins(path+".plugins", p.Plugins)
	out.Candidates = r.catalog.candidates(out.Enabled, p.Plugins)
	out.Args = r.args(path+".pluginConfig", p.PluginConfig)
	out.Args.Custom = r.customArgs(path+".pluginConfig", p.PluginConfig, out.Enabled)
	return out
}
