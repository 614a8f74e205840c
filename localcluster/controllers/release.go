// SPDX-License-Identifier: Apache-2.0

//go:build !previous

package controllers

import (
	"context"
	"time"

	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/devicetainteviction"
	"k8s.io/kubernetes/pkg/controller/disruption"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/resourceclaim"
	"k8s.io/kubernetes/pkg/controller/scheduling/podgroupprotection"
	"k8s.io/kubernetes/pkg/controller/volume/pvprotection"
	"k8s.io/kubernetes/pkg/features"
)

// This file holds what differs from the release before, for which release_previous.go holds the same functions. Neither
// imports a package that only one release has: go mod tidy looks at the imports of both.

// newJobs creates the controller of jobs. It makes pod groups for them if a feature gate says so.
func newJobs(ctx context.Context, e *environment, client identity) (*job.Controller, error) {
	pods, jobs := e.informers.Core().V1().Pods(), e.informers.Batch().V1().Jobs()
	if !utilfeature.DefaultFeatureGate.Enabled(features.WorkloadWithJob) {
		return job.NewController(ctx, client, pods, jobs, nil, nil)
	}
	groups := e.informers.Scheduling().V1beta1()
	return job.NewController(ctx, client, pods, jobs, groups.Workloads(), groups.PodGroups())
}

func newGroupProtection(ctx context.Context, e *environment, client identity) (*podgroupprotection.Controller, error) {
	groups, pods := e.informers.Scheduling().V1beta1().PodGroups(), e.informers.Core().V1().Pods()
	return podgroupprotection.NewPodGroupProtectionController(klog.FromContext(ctx), groups, pods, client)
}

func disruptionLoop(c *disruption.DisruptionController, e *environment) loop {
	return workers(c.Run, e.config.DisruptionController.ConcurrentDisruptionSyncs)
}

func nodeMonitorPeriod(e *environment) time.Duration {
	return e.config.NodeLifecycleController.NodeMonitorPeriod.Duration
}

func newDeviceTaintEviction(e *environment, client identity) *devicetainteviction.Controller {
	resource := e.informers.Resource().V1()
	return devicetainteviction.New(client, e.informers.Core().V1().Pods(), resource.ResourceClaims(),
		resource.ResourceSlices(), resource.DeviceTaintRules(), resource.DeviceClasses(),
		names.DeviceTaintEvictionController)
}

func newResourceClaims(ctx context.Context, e *environment, client identity) (*resourceclaim.Controller, error) {
	resource := e.informers.Resource().V1()
	return resourceclaim.NewController(klog.FromContext(ctx), client, e.informers.Core().V1().Pods(),
		e.informers.Scheduling().V1beta1().PodGroups(), resource.ResourceClaims(), resource.ResourceClaimTemplates())
}

func newVolumeProtection(ctx context.Context, e *environment, client identity) (*pvprotection.Controller, error) {
	volumes := e.informers.Core().V1().PersistentVolumes()
	return pvprotection.NewPVProtectionController(klog.FromContext(ctx), volumes, client)
}
