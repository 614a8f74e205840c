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
	// Extenders are in the order of the file, with time-outs above 0. At most one binds.
	Extenders []configv1.Extender
	// Invariant: 0 < PodInitialBackoff <= PodMaxBackoff.
	PodInitialBackoff, PodMaxBackoff time.Duration
	// Parallelism is the number of goroutines that upstream uses for one decision, and above 0. It has no effect
	// here: the core decides on one goroutine, and decisions do not depend on the number.
	Parallelism int32

	LeaderElection   LeaderElection
	ClientConnection ClientConnection

	Profiling, ContentionProfiling bool
	// DelayCacheUntilActive keeps a standby instance from watching.
	DelayCacheUntilActive bool

	Kumiki Settings
	// Features are those with which the configuration was read. A file does not contain them.
	Features Features

	// Warnings are settings that are valid but may not be intended, one line each.
	Warnings []string
}

// LeaderElection is the settings by which one of several instances becomes the leader.
type LeaderElection struct {
	Enabled bool
	// Invariant: LeaseDuration > RenewDeadline, and all are above 0, if Enabled.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	Namespace, Name                           string // of the lease
}

// ClientConnection is the connection to the API server.
type ClientConnection struct {
	Kubeconfig         string
	AcceptContentTypes string
	ContentType        string
	// QPS and Burst limit requests if they are not 0. Otherwise the number of requests in flight is bounded.
	QPS   float32
	Burst int32
}

// Profile is one scheduler name and the plugins for its pods.
type Profile struct {
	SchedulerName string
	// Enabled lists the plugins by extension point, in the order in which they run. Points without plugins are
	// absent.
	Enabled map[Point][]string // point -> plugin names
	// Candidates are the plugins of Enabled that multiPoint alone names, and whose points are undeclared: they run at
	// a point if they extend it.
	Candidates map[Point][]string // point -> plugin names
	// Weights are the weights of the plugins at Score, all above 0.
	Weights map[string]int64 // plugin -> weight
	// PlacementWeights are those at PlacementScore.
	PlacementWeights map[string]int64 // plugin -> weight
	Args             Args
	// PercentageOfNodesToScore is the value in the file, for this profile or for all; 0 if there is none.
	PercentageOfNodesToScore int32
	Search                   Search
	// Fit defines when a node is full.
	Fit Fit
	// FitScoresReal makes NodeResourcesFit score what containers request, without upstream's assumptions for those
	// that request nothing (kubernetes#130445).
	FitScoresReal bool
	// SyncPreemption lets a pod be tried again before its evictions are executed (upstream without
	// SchedulerAsyncPreemption).
	SyncPreemption bool
	Preemption     Preemption
}

// Args are the arguments of the plugins that have any, defaulted whether the plugin is enabled or not. Invariant: no
// pointer to a single value is nil except DefaultConstraints' and AddedAffinity's own.
type Args struct {
	DefaultPreemption               configv1.DefaultPreemptionArgs
	DynamicResources                configv1.DynamicResourcesArgs
	InterPodAffinity                configv1.InterPodAffinityArgs
	NodeAffinity                    configv1.NodeAffinityArgs
	NodeResourcesBalancedAllocation configv1.NodeResourcesBalancedAllocationArgs
	NodeResourcesFit                configv1.NodeResourcesFitArgs
	NodeResourcesBestFit            NodeResourcesBestFitArgs
	NodeResourcesDotProduct         NodeResourcesDotProductArgs
	NodeResourcesFragmentation      NodeResourcesFragmentationArgs
	PodTopologySpread               configv1.PodTopologySpreadArgs
	VolumeBinding                   configv1.VolumeBindingArgs
	// Custom has the arguments of the custom plugins that the profile enables, each of the plugin's own type.
	Custom map[string]any // plugin -> arguments
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
