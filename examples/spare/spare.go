// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	fwk "k8s.io/kube-scheduler/framework"
)

// Name is the name of the plugin in configuration files.
const Name = "Spare"

// Spare keeps spare nodes, which have the label spare, for urgent pods, which have the label urgent.
type Spare struct{}

var (
	_ fwk.FilterPlugin      = (*Spare)(nil)
	_ fwk.EnqueueExtensions = (*Spare)(nil)
)

// New makes the plugin.
func New(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) { return &Spare{}, nil }

// Name returns Name.
func (*Spare) Name() string { return Name }

// Filter rejects a spare node for a pod that is not urgent.
func (*Spare) Filter(_ context.Context, _ fwk.CycleState, pod *v1.Pod, node fwk.NodeInfo) *fwk.Status {
	if node.Node().Labels["spare"] == "" || pod.Labels["urgent"] != "" {
		return nil
	}
	return fwk.NewStatus(fwk.UnschedulableAndUnresolvable, "node(s) were spare")
}

// EventsToRegister returns the events that can make a rejected pod fit.
func (*Spare) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeLabel}},
		{Event: fwk.ClusterEvent{Resource: fwk.Pod, ActionType: fwk.UpdatePodLabel}},
	}, nil
}
