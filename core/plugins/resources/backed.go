// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// markBacked marks the needs that a device class backs and reports whether there are any (upstream:
// noderesources.shouldDelegateResourceToDRA). Nothing is known of classes in a change without a State.
func markBacked(s cluster.Snapshot, needs []need) (any bool) {
	if s == (cluster.Snapshot{}) {
		return false
	}
	for i := range needs {
		nd := &needs[i]
		switch nd.name {
		case v1.ResourcePods, v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage:
			continue
		}
		nd.backed = classBacks(s, nd.name)
		any = any || nd.backed
	}
	return any
}

// classBacks reports whether a device class backs a resource: by its implicit name, or by the one it states.
func classBacks(s cluster.Snapshot, name v1.ResourceName) bool {
	if class, ok := strings.CutPrefix(string(name), resourceapi.ResourceDeviceClassPrefix); ok {
		_, exists := cluster.Find[*resourceapi.DeviceClass](s, "", class)
		return exists
	}
	backs := false
	cluster.Each(s, func(class *resourceapi.DeviceClass) bool {
		backs = statedResource(class) == string(name)
		return !backs
	})
	return backs
}

// statedResource is the extended resource that a class says it backs; empty for none.
func statedResource(class *resourceapi.DeviceClass) string {
	if class.Spec.ExtendedResourceName == nil {
		return ""
	}
	return *class.Spec.ExtendedResourceName
}

// WithDevices returns the plugin with a counter of devices.
func (pl *NodeResourcesFit) WithDevices(c plugin.DeviceCounts) plugin.Plugin {
	with := *pl
	with.scorer.devices = c
	return &with
}

// WithDevices returns the plugin with a counter of devices.
func (pl *NodeResourcesBalancedAllocation) WithDevices(c plugin.DeviceCounts) plugin.Plugin {
	with := *pl
	with.scorer.devices = c
	return &with
}

// Version is that of the device classes, for pods that may request what they back.
func (f *fitFilter) Version(s cluster.Snapshot) uint64 {
	if !f.scalars {
		return 0
	}
	return s.KindRevision(cluster.KindDeviceClass)
}

// fitClassHint wakes a pod when a class is new, or states another resource, and the pod asks for what it backs.
func fitClassHint(p *cluster.Pod, ch plugin.Change) plugin.Hint {
	class, ok := ch.NewObject.(*resourceapi.DeviceClass)
	if !ok {
		return plugin.QueueHint
	}
	asked := &p.Spec.Request
	if was, _ := ch.OldObject.(*resourceapi.DeviceClass); was != nil {
		if statedResource(was) == statedResource(class) {
			return plugin.SkipHint
		}
	} else if asked.Has(v1.ResourceName(resourceapi.ResourceDeviceClassPrefix + class.Name)) {
		return plugin.QueueHint
	}
	if name := statedResource(class); name != "" && asked.Has(v1.ResourceName(name)) {
		return plugin.QueueHint
	}
	return plugin.SkipHint
}
