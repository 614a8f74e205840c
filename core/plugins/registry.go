// SPDX-License-Identifier: Apache-2.0

package plugins

import (
	"fmt"

	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/plugins/packing"
	"github.com/kumiki-scheduler/kumiki/core/plugins/podaffinity"
	"github.com/kumiki-scheduler/kumiki/core/plugins/resources"
	"github.com/kumiki-scheduler/kumiki/core/plugins/spread"
	"github.com/kumiki-scheduler/kumiki/core/plugins/volumes"
)

// Registry lists the native plugins, in upstream's default order.
func Registry() []plugin.Registration {
	return []plugin.Registration{
		plugin.WithoutArgs(basic.SchedulingGates{}),
		plugin.WithoutArgs(basic.PrioritySort{}),
		plugin.WithoutArgs(basic.NodeName{}),
		plugin.WithoutArgs(basic.NodeUnschedulable{}),
		plugin.WithoutArgs(basic.TaintToleration{}),
		plugin.WithArgs(basic.NodeAffinityName, func() basic.NodeAffinityArgs { return basic.NodeAffinityArgs{} },
			basic.NewNodeAffinity),
		plugin.WithoutArgs(basic.NodePorts{}),
		plugin.WithArgs(resources.NodeResourcesFitName, resources.DefaultFitArgs, resources.NewNodeResourcesFit),
		plugin.WithoutArgs(volumes.VolumeRestrictions{}),
		plugin.WithArgs(volumes.NodeVolumeLimitsName, volumes.DefaultNodeVolumeLimitsArgs,
			volumes.MakeNodeVolumeLimits),
		plugin.WithArgs(volumes.VolumeBindingName, volumes.DefaultVolumeBindingArgs, volumes.NewVolumeBinding),
		plugin.WithoutArgs(volumes.VolumeZone{}),
		plugin.WithArgs(spread.PodTopologySpreadName, spread.DefaultPodTopologySpreadArgs, spread.NewPodTopologySpread),
		plugin.WithArgs(podaffinity.InterPodAffinityName, podaffinity.DefaultInterPodAffinityArgs,
			podaffinity.NewInterPodAffinity),
		plugin.WithArgs(resources.NodeResourcesBalancedAllocationName, resources.DefaultBalancedArgs,
			resources.NewNodeResourcesBalancedAllocation),
		plugin.WithoutArgs(basic.ImageLocality{}),
		plugin.WithoutArgs(basic.DefaultBinder{}),
		plugin.WithoutArgs(basic.NodeDeclaredFeatures{}),
		// In no profile of upstream's:
		plugin.WithoutArgs(resources.NodeSlots{}),
		plugin.WithoutArgs(resources.NodePodCount{}),
		plugin.WithArgs(packing.BestFitName, packing.DefaultBestFitArgs, packing.NewBestFit),
		plugin.WithArgs(packing.DotProductName, packing.DefaultDotProductArgs, packing.NewDotProduct),
		plugin.WithArgs(packing.FragmentationName, packing.DefaultFragmentationArgs, packing.NewFragmentation),
	}
}

// Lookup finds a native plugin.
func Lookup(name string) (plugin.Registration, bool) {
	for _, r := range Registry() {
		if r.Name == name {
			return r, true
		}
	}
	return plugin.Registration{}, false
}

// DefaultProfile is upstream's default profile as far as there are native plugins. The order of the filters decides
// which of them a rejection is laid at (upstream: apis/config/v1/default_plugins.go, multiPoint).
func DefaultProfile() []plugin.Enabled {
	return []plugin.Enabled{
		{Name: basic.SchedulingGatesName, Weight: 0},
		{Name: basic.PrioritySortName, Weight: 0},
		{Name: basic.NodeNameName, Weight: 0},
		{Name: basic.NodeUnschedulableName, Weight: 0},
		{Name: basic.TaintTolerationName, Weight: 3},
		{Name: basic.NodeAffinityName, Weight: 2},
		{Name: basic.NodePortsName, Weight: 0},
		{Name: resources.NodeResourcesFitName, Weight: 1},
		{Name: volumes.VolumeRestrictionsName, Weight: 0},
		{Name: volumes.NodeVolumeLimitsName, Weight: 0},
		{Name: volumes.VolumeBindingName, Weight: 1},
		{Name: volumes.VolumeZoneName, Weight: 0},
		{Name: spread.PodTopologySpreadName, Weight: 2},
		{Name: podaffinity.InterPodAffinityName, Weight: 2},
		{Name: resources.NodeResourcesBalancedAllocationName, Weight: 1},
		{Name: basic.ImageLocalityName, Weight: 1},
		{Name: basic.DefaultBinderName, Weight: 0},
		{Name: basic.NodeDeclaredFeaturesName, Weight: 0},
	}
}

// EachDefault makes the plugins of DefaultProfile with their default arguments, and passes them on in its order.
func EachDefault(use func(pl plugin.Plugin, weight int64)) {
	for _, enabled := range DefaultProfile() {
		reg, ok := Lookup(enabled.Name)
		if !ok {
			panic(fmt.Sprintf("plugins: the default profile names plugin %q, which is not registered", enabled.Name))
		}
		pl, err := reg.New(nil)
		if err != nil {
			panic(fmt.Sprintf("plugins: default plugin %s with default arguments: %v", enabled.Name, err))
		}
		use(pl, enabled.Weight)
	}
}
