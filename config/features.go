// SPDX-License-Identifier: Apache-2.0

package config

// Features are the parts of the scheduler that a feature gate of kube-scheduler turns on, each under the name of its
// gate. They decide on defaults, on which settings are valid, and on how plugins are made. So they are resolved before
// a file is read, and no gate is read afterwards.
type Features struct {
	// StorageCapacityScoring lets VolumeBinding score nodes by free storage, and allows its argument shape.
	StorageCapacityScoring bool
	// VolumeLimitScaling lets NodeVolumeLimits reject nodes without a CSI driver whose CSIDriver requests it.
	VolumeLimitScaling bool
	// NodeDeclaredFeatures adds the plugin of this name to the default profile. Without it the plugin has no effect.
	NodeDeclaredFeatures bool
	// PodGroupPreemptionPolicy reads preemptionPolicy of pod groups.
	PodGroupPreemptionPolicy bool
	// GenericWorkload, TopologyAwareWorkloadScheduling and InPlacePodVerticalScalingSchedulerPreemption add plugins to
	// the default profile, which have no effect.
	GenericWorkload, TopologyAwareWorkloadScheduling, InPlacePodVerticalScalingSchedulerPreemption bool

	// DRADeviceTaintRules lets the taints of DeviceTaintRules count.
	DRADeviceTaintRules bool
	// DRADeviceTaints lets taints of devices count.
	DRADeviceTaints bool
	// DRAAdminAccess allows claims that access devices without allocating them.
	DRAAdminAccess bool
	// DRAConsumableCapacity allows several claims to share a device.
	DRAConsumableCapacity bool
	// DRAFractionalCapacityRange reads ranges of shared capacity in thousandths. It is on from compatibility version
	// 1.37.
	DRAFractionalCapacityRange bool
	// DRAPartitionableDevices allows devices that share counters.
	DRAPartitionableDevices bool
	// DRAPrioritizedList allows requests with alternatives, and lets DynamicResources score them.
	DRAPrioritizedList bool
	// DRADeviceBindingConditions and DRAResourceClaimDeviceStatus together let a bind wait until devices are ready, and
	// allow the argument bindingTimeout of DynamicResources.
	DRADeviceBindingConditions, DRAResourceClaimDeviceStatus bool
}

// WaitForDevices reports whether a bind waits until its devices are ready.
func (f Features) WaitForDevices() bool {
	return f.DRADeviceBindingConditions && f.DRAResourceClaimDeviceStatus
}

// DefaultFeatures returns the features of kube-scheduler 1.37.1 without flags.
func DefaultFeatures() Features {
	return Features{
		StorageCapacityScoring:       true,
		VolumeLimitScaling:           true,
		NodeDeclaredFeatures:         true,
		DRADeviceTaintRules:          true,
		DRADeviceTaints:              true,
		DRAAdminAccess:               true,
		DRAConsumableCapacity:        true,
		DRAPartitionableDevices:      true,
		DRAPrioritizedList:           true,
		DRADeviceBindingConditions:   true,
		DRAResourceClaimDeviceStatus: true,
	}
}

// With returns the catalog for other features: it reads files as kube-scheduler does with these gates.
func (c Catalog) With(f Features) Catalog {
	c.features = &f
	return c
}

// Features returns the features with which the catalog reads files.
func (c Catalog) Features() Features {
	if c.features == nil {
		return DefaultFeatures()
	}
	return *c.features
}

// inDefaultProfile reports whether a plugin of builtin is in the default profile.
func (f Features) inDefaultProfile(name string) bool {
	switch name {
	case NodeDeclaredFeatures:
		return f.NodeDeclaredFeatures
	case GangScheduling:
		return f.GenericWorkload
	case TopologyPlacementGenerator, PodGroupPodsCount:
		return f.TopologyAwareWorkloadScheduling
	case DeferredPodScheduling:
		return f.InPlacePodVerticalScalingSchedulerPreemption
	}
	return true
}
