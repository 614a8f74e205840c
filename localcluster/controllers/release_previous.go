// SPDX-License-Identifier: Apache-2.0

//go:build previous

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

// This file holds what differs in the release before. It is compiled with the build tag previous, which belongs to that
// release's module file, go-1.36.mod.

// newJobs creates the controller of jobs. It makes pod groups for them if a feature gate says so.
func newJobs(ctx context.Context, e *environment, client identity) (*job.Controller, error) {
	pods, jobs := e.informers.Core().V1().Pods(), e.informers.Batch().V1().Jobs()
	if !utilfeature.DefaultFeatureGate.Enabled(features.WorkloadWithJob) {
		return job.NewController(ctx, client, pods, jobs, nil, nil)
	}
	groups := e.informers.Scheduling().V1alpha2()
	return job.NewController(ctx, client, pods, jobs, groups.Workloads(), groups.PodGroups())
}

func newGroupProtection(ctx context.Context, e *environment, client identity) (*podgroupprotection.Controller, error) {
	groups, pods := e.informers.Scheduling().V1alpha2().PodGroups(), e.informers.Core().V1().Pods()
	return podgroupprotection.NewPodGroupProtectionController(klog.FromContext(ctx), groups, pods, client)
}

// disruptionLoop has one worker: this release has no setting for more.
func disruptionLoop(c *disruption.DisruptionController, _ *environment) loop { return c.Run }

func nodeMonitorPeriod(e *environment) time.Duration {
	return e.config.KubeCloudShared.NodeMonitorPeriod.Duration
}

func newDeviceTaintEviction(e *environment, client identity) *devicetainteviction.Controller {
	resource, rules := e.informers.Resource().V1(), e.informers.Resource().V1beta2().DeviceTaintRules()
	return devicetainteviction.New(client, e.informers.Core().V1().Pods(), resource.ResourceClaims(),
		resource.ResourceSlices(), rules, resource.DeviceClasses(), names.DeviceTaintEvictionController,
		utilfeature.DefaultFeatureGate.Enabled(features.DRAWorkloadResourceClaims))
}

func newResourceClaims(ctx context.Context, e *environment, client identity) (*resourceclaim.Controller, error) {
	gates, resource := utilfeature.DefaultFeatureGate, e.informers.Resource().V1()
	groups := e.informers.Scheduling().V1alpha2().PodGroups()
	return resourceclaim.NewController(klog.FromContext(ctx), resourceclaim.Features{
		AdminAccess:            gates.Enabled(features.DRAAdminAccess),
		PrioritizedList:        gates.Enabled(features.DRAPrioritizedList),
		WorkloadResourceClaims: gates.Enabled(features.DRAWorkloadResourceClaims),
	}, client, e.informers.Core().V1().Pods(), groups, resource.ResourceClaims(), resource.ResourceClaimTemplates())
}

func newVolumeProtection(ctx context.Context, e *environment, client identity) (*pvprotection.Controller, error) {
	volumes := e.informers.Core().V1().PersistentVolumes()
	return pvprotection.NewPVProtectionController(klog.FromContext(ctx), volumes, client), nil
}
