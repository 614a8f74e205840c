// SPDX-License-Identifier: Apache-2.0

package config

import (
	"time"

	configv1 "k8s.io/kube-scheduler/config/v1"
)

// Resolved is a configuration with every default filled in and every plugin set expanded. It is valid.
type Resolved struct {
	// Profiles has at least one; scheduler names are unique.
	Profiles []Profile
	// Extenders are in the order of the file, their time-outs above 0. At most one binds.
	Extenders []configv1.Extender
	// PodInitialBackoff <= PodMaxBackoff, both above 0.
	PodInitialBackoff, PodMaxBackoff time.Duration
	// Parallelism is how many goroutines upstream spreads one decision over, and above 0. It changes nothing here:
	// the core decides on one goroutine, and equal decisions do not depend on how many there are.
	Parallelism int32

	LeaderElection   LeaderElection
	ClientConnection ClientConnection

	Profiling, ContentionProfiling bool
	// DelayCacheUntilActive keeps an instance that does not lead from watching.
	DelayCacheUntilActive bool

	Kumiki Settings

	// Warnings are things that work but may not be what was meant, one line each.
	Warnings []string
}

// LeaderElection says how one of several instances is chosen.
type LeaderElection struct {
	Enabled bool
	// LeaseDuration > RenewDeadline; all above 0 when Enabled.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	Namespace, Name                           string // of the lease
}

// ClientConnection says how the API server is reached.
type ClientConnection struct {
	Kubeconfig         string
	AcceptContentTypes string
	ContentType        string
	// QPS and Burst limit requests when they are not 0. Without them requests in flight are bounded instead.
	QPS   float32
	Burst int32
}

// Profile is one scheduler name and what runs for the pods that ask for it.
type Profile struct {
	SchedulerName string
	// Enabled lists the plugins per extension point, in the order in which they run. Points without plugins are
	// absent.
	Enabled map[Point][]string // point -> plugin names
	// Weights are those of the plugins at Score, all above 0.
	Weights map[string]int64 // plugin -> weight
	Args    Args
	// PercentageOfNodesToScore is what the file says, for this profile or for all; 0 when it says nothing.
	PercentageOfNodesToScore int32
	Search                   Search
	// Fit is what makes a node full.
	Fit Fit
	// FitScoresReal makes NodeResourcesFit score what containers request, without upstream's assumptions about those
	// that request nothing (kubernetes#130445).
	FitScoresReal bool
	// SyncPreemption lets a pod be tried again before the evictions for it are carried out (upstream without
	// SchedulerAsyncPreemption).
	SyncPreemption bool
	Preemption     Preemption
}

// Args are the arguments of the plugins that take any, defaulted whether the plugin is enabled or not. No pointer to a
// single value is nil but DefaultConstraints' and AddedAffinity's own.
type Args struct {
	DefaultPreemption               configv1.DefaultPreemptionArgs
	DynamicResources                configv1.DynamicResourcesArgs
	InterPodAffinity                configv1.InterPodAffinityArgs
	NodeAffinity                    configv1.NodeAffinityArgs
	NodeResourcesBalancedAllocation configv1.NodeResourcesBalancedAllocationArgs
	NodeResourcesFit                configv1.NodeResourcesFitArgs
	PodTopologySpread               configv1.PodTopologySpreadArgs
	// VolumeBinding has no Shape: the gate that it belongs to is off.
	VolumeBinding configv1.VolumeBindingArgs
}

// Runs reports whether a plugin is enabled at a point.
func (p Profile) Runs(at Point, plugin string) bool {
	for _, name := range p.Enabled[at] {
		if name == plugin {
			return true
		}
	}
	return false
}
