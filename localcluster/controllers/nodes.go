// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"

	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-controller-manager/names"
	"k8s.io/kubernetes/pkg/controller/nodelifecycle"
	"k8s.io/kubernetes/pkg/controller/tainteviction"

	"github.com/kumiki-scheduler/kumiki/localcluster/podgc"
)

// This file builds the controllers of nodes, of pods that must leave them, and of devices.

func buildNodeLifecycle(ctx context.Context, e *environment, client identity) (loop, error) {
	core, settings := e.informers.Core().V1(), e.config.NodeLifecycleController
	c, err := nodelifecycle.NewNodeLifecycleController(ctx, e.informers.Coordination().V1().Leases(), core.Pods(),
		core.Nodes(), e.informers.Apps().V1().DaemonSets(), client, nodeMonitorPeriod(e),
		settings.NodeStartupGracePeriod.Duration, settings.NodeMonitorGracePeriod.Duration, settings.NodeEvictionRate,
		settings.SecondaryNodeEvictionRate, settings.LargeClusterSizeThreshold, settings.UnhealthyZoneThreshold)
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

func buildTaintEviction(ctx context.Context, e *environment, client identity) (loop, error) {
	core := e.informers.Core().V1()
	c, err := tainteviction.New(ctx, client, core.Pods(), core.Nodes(), names.TaintEvictionController)
	if err != nil {
		return nil, err
	}
	return c.Run, nil
}

func buildPodGarbageCollector(_ context.Context, e *environment, client identity) (loop, error) {
	core := e.informers.Core().V1()
	return podgc.New(client, core.Pods(), core.Nodes(), int(e.config.PodGCController.TerminatedPodGCThreshold)).Run, nil
}

func buildDeviceTaintEviction(_ context.Context, e *environment, client identity) (loop, error) {
	c := newDeviceTaintEviction(e, client)
	syncs := int(e.config.DeviceTaintEvictionController.ConcurrentSyncs)
	return func(ctx context.Context) {
		if err := c.Run(ctx, syncs); err != nil {
			klog.FromContext(ctx).Error(err, "Eviction of pods from tainted devices has ended")
		}
	}, nil
}

func buildResourceClaims(ctx context.Context, e *environment, client identity) (loop, error) {
	c, err := newResourceClaims(ctx, e, client)
	if err != nil {
		return nil, err
	}
	return workers(c.Run, e.config.ResourceClaimController.ConcurrentSyncs), nil
}

func buildPodGroupProtection(ctx context.Context, e *environment, client identity) (loop, error) {
	c, err := newGroupProtection(ctx, e, client)
	if err != nil {
		return nil, err
	}
	return workers(c.Run, 1), nil
}
