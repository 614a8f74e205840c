// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// argument is the arguments of one plugin in Args.
type argument struct {
	plugin string
	// value points to the arguments, meta to their kind and version.
	value any
	meta  *metav1.TypeMeta
}

// list returns every plugin that has arguments, by name.
func (a *Args) list() []argument {
	return []argument{
		{DefaultPreemption, &a.DefaultPreemption, &a.DefaultPreemption.TypeMeta},
		{DynamicResources, &a.DynamicResources, &a.DynamicResources.TypeMeta},
		{InterPodAffinity, &a.InterPodAffinity, &a.InterPodAffinity.TypeMeta},
		{NodeAffinity, &a.NodeAffinity, &a.NodeAffinity.TypeMeta},
		{NodeResourcesBalancedAllocation, &a.NodeResourcesBalancedAllocation,
			&a.NodeResourcesBalancedAllocation.TypeMeta},
		{NodeResourcesFit, &a.NodeResourcesFit, &a.NodeResourcesFit.TypeMeta},
		{NodeResourcesBestFit, &a.NodeResourcesBestFit, &a.NodeResourcesBestFit.TypeMeta},
		{NodeResourcesDotProduct, &a.NodeResourcesDotProduct, &a.NodeResourcesDotProduct.TypeMeta},
		{NodeResourcesFragmentation, &a.NodeResourcesFragmentation, &a.NodeResourcesFragmentation.TypeMeta},
		{PodTopologySpread, &a.PodTopologySpread, &a.PodTopologySpread.TypeMeta},
		{VolumeBinding, &a.VolumeBinding, &a.VolumeBinding.TypeMeta},
	}
}

// args decodes, defaults and validates the arguments of one profile's plugins. A second entry for a plugin is a
// problem, and is checked all the same.
func (r *report) args(path string, in []configv1.PluginConfig) Args {
	type entry struct {
		path   *field.Path
		plugin string
		into   *Args
	}
	var out Args
	var given []entry
	seen := map[string]bool{} // plugin -> given
	for i, pc := range in {
		here := fmt.Sprintf("%s[%d]", path, i)
		into := &out
		if seen[pc.Name] {
			r.add(here+".name", "the arguments of %q are given twice", pc.Name)
			into = &Args{}
		}
		seen[pc.Name] = true
		if pc.Name == Kumiki { // read by settings
			continue
		}
		list := into.list()
		at := slices.IndexFunc(list, func(a argument) bool { return a.plugin == pc.Name })
		if at < 0 {
			custom, ok := r.catalog.find(pc.Name) // customArgs reads its arguments, if it has any
			if !ok || custom.DefaultArgs == nil && !custom.RawArgs {
				r.noArgs(here, pc)
			}
			continue
		}
		r.decodeArgs(here+".args", pc, list[at])
		given = append(given, entry{field.NewPath(here, "args"), pc.Name, into})
	}
	// Only now: decoding over a default would keep parts of it.
	features := r.catalog.Features()
	out.setDefaults(features)
	for _, e := range given {
		e.into.setDefaults(features)
		r.checkArgs(e.path, e.plugin, e.into)
	}
	return out
}

// decodeArgs decodes the entry of one plugin.
func (r *report) decodeArgs(path string, pc configv1.PluginConfig, to argument) {
	if len(pc.Args.Raw) == 0 || !r.unmarshal(pc.Args.Raw, path, to.value) {
		return
	}
	if want := pc.Name + "Args"; to.meta.Kind != "" && to.meta.Kind != want {
		r.add(path+".kind", "must be %s or absent, got %q", want, to.meta.Kind)
	}
	if to.meta.APIVersion != "" && to.meta.APIVersion != apiVersion {
		r.add(path+".apiVersion", "must be %s or absent, got %q", apiVersion, to.meta.APIVersion)
	}
	*to.meta = metav1.TypeMeta{}
}

// noArgs reports an entry of pluginConfig for a plugin that does not exist or has no arguments.
func (r *report) noArgs(path string, pc configv1.PluginConfig) {
	if _, known := r.catalog.describe(pc.Name); !known {
		r.add(path+".name", "%s", r.catalog.unknown(pc.Name))
		return
	}
	if raw := strings.TrimSpace(string(pc.Args.Raw)); raw != "" && raw != "{}" && raw != "null" {
		r.warn(path+".args", "plugin %q takes no arguments", pc.Name)
	}
}

// Upstream's defaults of arguments (pkg/scheduler/apis/config/v1/defaults.go). allCandidates is ours: if a file does
// not set the candidates, preemption considers every node.
const (
	allCandidates             int32 = 100
	defaultCandidatesPercent  int32 = 10
	defaultCandidatesAtLeast  int32 = 100
	defaultHardAffinityWeight int32 = 1
	defaultBindTimeoutSeconds int64 = 600
)

// defaultResources returns the weighed resources if a file names none.
func defaultResources() []configv1.ResourceSpec {
	return []configv1.ResourceSpec{{Name: string(v1.ResourceCPU), Weight: 1},
		{Name: string(v1.ResourceMemory), Weight: 1}}
}

// defaultCapacityShape returns the points by which VolumeBinding scores if a file names none: the more capacity is
// free, the better.
func defaultCapacityShape() []configv1.UtilizationShapePoint {
	return []configv1.UtilizationShapePoint{{Utilization: 0, Score: 10}, {Utilization: 100, Score: 0}}
}

func (a *Args) setDefaults(f Features) {
	preemption := &a.DefaultPreemption
	if preemption.MinCandidateNodesPercentage == nil && preemption.MinCandidateNodesAbsolute == nil {
		fill(&preemption.MinCandidateNodesPercentage, allCandidates)
	}
	fill(&preemption.MinCandidateNodesPercentage, defaultCandidatesPercent)
	fill(&preemption.MinCandidateNodesAbsolute, defaultCandidatesAtLeast)
	fill(&a.DynamicResources.FilterTimeout, metav1.Duration{Duration: configv1.DynamicResourcesFilterTimeoutDefault})
	if f.WaitForDevices() {
		fill(&a.DynamicResources.BindingTimeout,
			metav1.Duration{Duration: configv1.DynamicResourcesBindingTimeoutDefault})
	}
	fill(&a.InterPodAffinity.HardPodAffinityWeight, defaultHardAffinityWeight)
	fill(&a.VolumeBinding.BindTimeoutSeconds, defaultBindTimeoutSeconds)
	if len(a.VolumeBinding.Shape) == 0 && f.StorageCapacityScoring {
		a.VolumeBinding.Shape = defaultCapacityShape()
	}
	if a.PodTopologySpread.DefaultingType == "" {
		a.PodTopologySpread.DefaultingType = configv1.SystemDefaulting
	}
	fit := &a.NodeResourcesFit
	if fit.ScoringStrategy == nil {
		fit.ScoringStrategy = &configv1.ScoringStrategy{Type: configv1.LeastAllocated}
	}
	fit.ScoringStrategy.Resources = defaultWeights(fit.ScoringStrategy.Resources)
	balanced := &a.NodeResourcesBalancedAllocation
	balanced.Resources = defaultWeights(balanced.Resources)
	a.packingDefaults()
}

// fill sets a value that a file omits. An explicit zero stays.
func fill[T comparable](p **T, value T) {
	if *p == nil {
		*p = &value
	}
}

// defaultWeights gives a weight of 1 to resources without one, and returns the default resources if there are none.
func defaultWeights(in []configv1.ResourceSpec) []configv1.ResourceSpec {
	if len(in) == 0 {
		return defaultResources()
	}
	out := slices.Clone(in)
	for i := range out {
		if out[i].Weight == 0 {
			out[i].Weight = 1
		}
	}
	return out
}
