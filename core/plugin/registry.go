// SPDX-License-Identifier: Apache-2.0

package plugin

// Registry lists the native plugins, in upstream's default order.
func Registry() []Registration {
	return []Registration{
		WithoutArgs(SchedulingGates{}),
		WithoutArgs(PrioritySort{}),
		WithoutArgs(NodeUnschedulable{}),
		WithoutArgs(NodeName{}),
		WithoutArgs(TaintToleration{}),
		WithArgs(NodeAffinityName, func() NodeAffinityArgs { return NodeAffinityArgs{} }, NewNodeAffinity),
		WithoutArgs(NodePorts{}),
		WithArgs(NodeResourcesFitName, DefaultFitArgs, NewNodeResourcesFit),
		WithoutArgs(VolumeRestrictions{}),
		{Name: NodeVolumeLimitsName, New: MakeNodeVolumeLimits},
		WithArgs(VolumeBindingName, DefaultVolumeBindingArgs, NewVolumeBinding),
		WithoutArgs(VolumeZone{}),
		WithArgs(PodTopologySpreadName, DefaultPodTopologySpreadArgs, NewPodTopologySpread),
		WithArgs(InterPodAffinityName, DefaultInterPodAffinityArgs, NewInterPodAffinity),
		WithArgs(NodeResourcesBalancedAllocationName, DefaultBalancedArgs, NewNodeResourcesBalancedAllocation),
		WithoutArgs(ImageLocality{}),
		WithoutArgs(DefaultBinder{}),
		WithoutArgs(NodeDeclaredFeatures{}),
		WithoutArgs(NodeSlots{}), // in no profile of upstream's
	}
}

// Lookup finds a native plugin.
func Lookup(name string) (Registration, bool) {
	for _, r := range Registry() {
		if r.Name == name {
			return r, true
		}
	}
	return Registration{}, false
}

// DefaultProfile is upstream's default profile as far as there are native plugins. The order of the filters decides
// which of them a rejection is laid at (upstream: apis/config/v1/default_plugins.go, multiPoint).
func DefaultProfile() []Enabled {
	return []Enabled{
		{SchedulingGatesName, 0},
		{PrioritySortName, 0},
		{NodeUnschedulableName, 0},
		{NodeNameName, 0},
		{TaintTolerationName, 3},
		{NodeAffinityName, 2},
		{NodePortsName, 0},
		{NodeResourcesFitName, 1},
		{VolumeRestrictionsName, 0},
		{NodeVolumeLimitsName, 0},
		{VolumeBindingName, 0},
		{VolumeZoneName, 0},
		{PodTopologySpreadName, 2},
		{InterPodAffinityName, 2},
		{NodeResourcesBalancedAllocationName, 1},
		{ImageLocalityName, 1},
		{DefaultBinderName, 0},
		{NodeDeclaredFeaturesName, 0},
	}
}
