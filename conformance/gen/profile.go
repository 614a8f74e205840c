// SPDX-License-Identifier: Apache-2.0

package gen

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
	"github.com/kumiki-scheduler/kumiki/core/plugins"
	"github.com/kumiki-scheduler/kumiki/host/devices"
)

// AllPlugins is upstream's default profile, with its weights and in its order,
// but for preemption.
func AllPlugins() []scenario.Plugin {
	return []scenario.Plugin{
		{Name: "SchedulingGates"}, {Name: "PrioritySort"}, {Name: "NodeName"}, {Name: "NodeUnschedulable"},
		{Name: "TaintToleration", Weight: 3}, {Name: "NodeAffinity", Weight: 2}, {Name: "NodePorts"},
		{Name: "NodeResourcesFit", Weight: 1}, {Name: "VolumeRestrictions"}, {Name: "NodeVolumeLimits"}, {Name: "VolumeBinding"},
		{Name: "VolumeZone"}, {Name: "PodTopologySpread", Weight: 2}, {Name: "InterPodAffinity", Weight: 2}, {Name: "DynamicResources", Weight: 2},
		{Name: "NodeResourcesBalancedAllocation", Weight: 1}, {Name: "ImageLocality", Weight: 1}, {Name: "DefaultBinder"}, {Name: "NodeDeclaredFeatures"},
	}
}

// DefaultPlugins are those of AllPlugins that kumiki has. What only another would
// read is not generated.
func DefaultPlugins() []scenario.Plugin {
	return slices.DeleteFunc(AllPlugins(), func(p scenario.Plugin) bool { return !Registered(p.Name) })
}

// Registered reports whether kumiki has the plugin.
func Registered(name string) bool {
	_, native := plugins.Lookup(name)
	return native || name == devices.Name
}

// profile is upstream's default in half of the scenarios.
func (m *maker) profile(plugins []scenario.Plugin) scenario.Profile {
	p := scenario.Profile{Plugins: slices.Clone(plugins)}
	if m.Chance(50) {
		return p
	}
	for i := range p.Plugins {
		if p.Plugins[i].Weight > 0 && m.Chance(30) {
			p.Plugins[i].Weight = int32(m.Range(1, 100))
		}
	}
	if m.Chance(20) {
		p.Plugins = m.without(p.Plugins)
	}
	if m.Chance(10) {
		p.NoFilter = m.listed(p.Plugins, "NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit",
			"PodTopologySpread", "InterPodAffinity", "VolumeZone", "NodeVolumeLimits", "VolumeRestrictions", "NodeDeclaredFeatures")
	}
	if m.Chance(10) {
		p.NoScore = m.listed(p.Plugins, "TaintToleration", "NodeAffinity", "NodeResourcesFit", "ImageLocality", "PodTopologySpread", "InterPodAffinity")
	}
	if p.Has("PodTopologySpread") && m.Chance(75) {
		p.Spread = m.spreadArgs()
	}
	if p.Has("InterPodAffinity") && m.Chance(60) {
		p.PodAffinity = m.podAffinityArgs()
	}
	if m.Chance(30) {
		p.NodeAffinity = &configv1.NodeAffinityArgs{AddedAffinity: m.addedAffinity()}
	}
	if m.Chance(70) {
		p.Fit = m.fitArgs()
	}
	if m.Chance(40) {
		p.Balanced = &configv1.NodeResourcesBalancedAllocationArgs{Resources: m.scoredResources(1)}
		if m.has["DynamicResources"] {
			// Upstream 1.37.1 crashes when it balances by a resource that a class backs.
			p.Balanced.Resources = slices.DeleteFunc(p.Balanced.Resources, func(r configv1.ResourceSpec) bool { return r.Name == "example.com/gpu" })
			if len(p.Balanced.Resources) == 0 {
				p.Balanced = nil
			}
		}
	}
	return p
}

// listed draws one or two of the names that the profile has.
func (m *maker) listed(in []scenario.Plugin, names ...string) []string {
	names = slices.DeleteFunc(names, func(n string) bool {
		return !slices.ContainsFunc(in, func(p scenario.Plugin) bool { return p.Name == n })
	})
	return Some(m.Rand, m.Range(1, 2), names...)
}

// without drops one plugin that a profile can do without.
func (m *maker) without(in []scenario.Plugin) []scenario.Plugin {
	drop := Pick(m.Rand, "SchedulingGates", "NodeUnschedulable", "NodeName", "TaintToleration", "NodeAffinity", "NodePorts",
		"NodeResourcesFit", "NodeResourcesBalancedAllocation", "ImageLocality", "PodTopologySpread", "InterPodAffinity", "VolumeRestrictions",
		"NodeVolumeLimits", "VolumeBinding", "VolumeBinding", "VolumeBinding", "VolumeZone", "DynamicResources", "NodeDeclaredFeatures")
	var out []scenario.Plugin
	for _, e := range in {
		if e.Name != drop {
			out = append(out, e)
		}
	}
	return out
}

func (m *maker) addedAffinity() *v1.NodeAffinity {
	a := &v1.NodeAffinity{}
	if m.Chance(50) {
		// Mostly satisfiable: with an added term that no node meets, nothing is ever placed.
		a.RequiredDuringSchedulingIgnoredDuringExecution = &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{
			{MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelArchStable, Operator: v1.NodeSelectorOpIn, Values: []string{"amd64"}}}},
			{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "generation", Operator: v1.NodeSelectorOpGt, Values: []string{"2"}}}},
		}}
	}
	if a.RequiredDuringSchedulingIgnoredDuringExecution == nil || m.Chance(50) {
		for range m.Range(1, 2) {
			a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution, v1.PreferredSchedulingTerm{
				Weight: int32(m.Range(1, 100)), Preference: m.addedTerm(),
			})
		}
	}
	return a
}

// addedTerm is well-formed: a profile with a term that does not parse is refused
// at start, which is the config package's business.
func (m *maker) addedTerm() v1.NodeSelectorTerm {
	return Pick(m.Rand,
		v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: v1.LabelTopologyZone, Operator: v1.NodeSelectorOpIn, Values: []string{"zone-a", "zone-c"}}}},
		v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "disk", Operator: v1.NodeSelectorOpNotIn, Values: []string{"hdd"}}}},
		v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "generation", Operator: v1.NodeSelectorOpLt, Values: []string{"8"}}, {Key: "dedicated", Operator: v1.NodeSelectorOpDoesNotExist}}},
		v1.NodeSelectorTerm{MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpNotIn, Values: []string{"node-0003"}}}},
	)
}

func (m *maker) fitArgs() *configv1.NodeResourcesFitArgs {
	a := &configv1.NodeResourcesFitArgs{}
	if m.Chance(25) {
		a.IgnoredResources = Some(m.Rand, 2, "example.com/gpu", "example.com/fpga", "other.io/nic", "absent.io/thing")
	}
	if m.Chance(20) {
		a.IgnoredResourceGroups = []string{Pick(m.Rand, "example.com", "other.io")}
	}
	s := &configv1.ScoringStrategy{
		Type:      Pick(m.Rand, configv1.LeastAllocated, configv1.MostAllocated, configv1.RequestedToCapacityRatio),
		Resources: m.scoredResources(100),
	}
	if s.Type == configv1.RequestedToCapacityRatio {
		s.RequestedToCapacityRatio = &configv1.RequestedToCapacityRatioParam{Shape: m.shape()}
	}
	a.ScoringStrategy = s
	return a
}

// scoredResources draws resources with weights up to maxWeight. At least one is
// there, because upstream replaces an empty list by cpu and memory.
func (m *maker) scoredResources(maxWeight int) []configv1.ResourceSpec {
	names := Some(m.Rand, m.Range(1, 4), "cpu", "memory", "cpu", "ephemeral-storage", "example.com/gpu", "other.io/nic", "hugepages-2Mi")
	var out []configv1.ResourceSpec
	seen := map[string]bool{} // resource -> already listed
	for _, n := range names {
		if !seen[n] {
			seen[n] = true
			out = append(out, configv1.ResourceSpec{Name: n, Weight: int64(m.Range(1, maxWeight))})
		}
	}
	return out
}

// shape is strictly increasing in utilisation, as validation asks.
func (m *maker) shape() []configv1.UtilizationShapePoint {
	var out []configv1.UtilizationShapePoint
	for u := m.Intn(30); u <= 100 && len(out) < 5; u += m.Range(1, 60) {
		out = append(out, configv1.UtilizationShapePoint{Utilization: int32(u), Score: int32(m.Range(0, 10))})
	}
	return out
}
