// SPDX-License-Identifier: Apache-2.0

package plugin

import "fmt"

// Registration is how a native plugin is made by name.
type Registration struct {
	Name string
	// DefaultArgs returns upstream's default arguments, of the plugin's own type; nil for a plugin without arguments.
	DefaultArgs func() any
	// New makes the plugin. Nil args mean the defaults. The error says what is wrong with the arguments.
	New func(args any) (Plugin, error)
}

// Registry lists the native plugins, in upstream's default order.
func Registry() []Registration {
	return []Registration{
		simple(SchedulingGates{}),
		simple(PrioritySort{}),
		simple(NodeUnschedulable{}),
		simple(NodeName{}),
		simple(TaintToleration{}),
		withArgs(NodeAffinityName, func() NodeAffinityArgs { return NodeAffinityArgs{} }, NewNodeAffinity),
		simple(NodePorts{}),
		withArgs(NodeResourcesFitName, DefaultFitArgs, NewNodeResourcesFit),
		simple(VolumeRestrictions{}),
		{Name: NodeVolumeLimitsName, New: newNodeVolumeLimits},
		withArgs(VolumeBindingName, DefaultVolumeBindingArgs, NewVolumeBinding),
		simple(VolumeZone{}),
		withArgs(PodTopologySpreadName, DefaultPodTopologySpreadArgs, NewPodTopologySpread),
		withArgs(InterPodAffinityName, DefaultInterPodAffinityArgs, NewInterPodAffinity),
		withArgs(NodeResourcesBalancedAllocationName, DefaultBalancedArgs, NewNodeResourcesBalancedAllocation),
		simple(ImageLocality{}),
		simple(DefaultBinder{}),
		simple(NodeDeclaredFeatures{}),
		simple(NodeSlots{}), // in no profile of upstream's
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

func simple(p Plugin) Registration {
	return Registration{Name: p.Name(), New: func(args any) (Plugin, error) {
		if args != nil {
			return nil, fmt.Errorf("%s: takes no arguments, got %T", p.Name(), args)
		}
		return p, nil
	}}
}

func withArgs[A any, P Plugin](name string, defaults func() A, make func(A) (P, error)) Registration {
	return Registration{
		Name:        name,
		DefaultArgs: func() any { return defaults() },
		New: func(args any) (Plugin, error) {
			if args == nil {
				args = defaults()
			}
			typed, ok := args.(A)
			if !ok {
				return nil, fmt.Errorf("%s: want arguments of type %T, got %T", name, typed, args)
			}
			p, err := make(typed)
			if err != nil {
				return nil, err
			}
			return p, nil
		},
	}
}

// Enabled is a plugin of a profile with the weight of its score.
type Enabled struct {
	Name   string
	Weight int64 // 0 where the plugin does not score
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
