// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// args decodes, defaults and validates the arguments of one profile's plugins.
func (r *report) args(path string, in []configv1.PluginConfig) Args {
	var out Args
	seen := map[string]bool{}
	for i, pc := range in {
		here := fmt.Sprintf("%s[%d]", path, i)
		if seen[pc.Name] {
			r.add(here+".name", "the arguments of %q are given twice", pc.Name)
			continue
		}
		seen[pc.Name] = true
		var target any
		var meta *metav1.TypeMeta
		switch pc.Name {
		case Kumiki: // read by settings
			continue
		case NodeAffinity:
			target, meta = &out.NodeAffinity, &out.NodeAffinity.TypeMeta
		case NodeResourcesFit:
			target, meta = &out.NodeResourcesFit, &out.NodeResourcesFit.TypeMeta
		case NodeResourcesBalancedAllocation:
			target, meta = &out.NodeResourcesBalancedAllocation, &out.NodeResourcesBalancedAllocation.TypeMeta
		default:
			r.noArgs(here, pc)
			continue
		}
		if len(pc.Args.Raw) == 0 || !r.unmarshal(pc.Args.Raw, here+".args", target) {
			continue
		}
		if want := pc.Name + "Args"; meta.Kind != "" && meta.Kind != want {
			r.add(here+".args.kind", "must be %s or absent, got %q", want, meta.Kind)
		}
		if meta.APIVersion != "" && meta.APIVersion != apiVersion {
			r.add(here+".args.apiVersion", "must be %s or absent, got %q", apiVersion, meta.APIVersion)
		}
		*meta = metav1.TypeMeta{}
	}
	defaultArgs(&out)
	where := func(plugin string) *field.Path {
		i := slices.IndexFunc(in, func(pc configv1.PluginConfig) bool { return pc.Name == plugin })
		return field.NewPath(fmt.Sprintf("%s[%d]", path, i), "args")
	}
	r.checkNodeAffinity(where(NodeAffinity), &out.NodeAffinity)
	r.checkFit(where(NodeResourcesFit), &out.NodeResourcesFit)
	r.checkBalanced(where(NodeResourcesBalancedAllocation), &out.NodeResourcesBalancedAllocation)
	return out
}

// noArgs is about an entry of pluginConfig for a plugin that is not there or takes no arguments.
func (r *report) noArgs(path string, pc configv1.PluginConfig) {
	if _, known := describe(pc.Name); !known {
		r.add(path+".name", "%s", unknownPlugin(pc.Name))
		return
	}
	if raw := strings.TrimSpace(string(pc.Args.Raw)); raw != "" && raw != "{}" && raw != "null" {
		r.warn(path+".args", "plugin %q takes no arguments", pc.Name)
	}
}

// defaultResources is what resources are weighed when a file names none.
func defaultResources() []configv1.ResourceSpec {
	return []configv1.ResourceSpec{{Name: string(v1.ResourceCPU), Weight: 1}, {Name: string(v1.ResourceMemory), Weight: 1}}
}

func defaultArgs(a *Args) {
	fit := &a.NodeResourcesFit
	if fit.ScoringStrategy == nil {
		fit.ScoringStrategy = &configv1.ScoringStrategy{Type: configv1.LeastAllocated}
	}
	fit.ScoringStrategy.Resources = defaultWeights(fit.ScoringStrategy.Resources)
	balanced := &a.NodeResourcesBalancedAllocation
	balanced.Resources = defaultWeights(balanced.Resources)
}

// defaultWeights gives a weight of 1 to resources that have none, and the default resources when there are none.
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

func (r *report) checkNodeAffinity(path *field.Path, a *configv1.NodeAffinityArgs) {
	if a.AddedAffinity == nil {
		return
	}
	path = path.Child("addedAffinity")
	if required := a.AddedAffinity.RequiredDuringSchedulingIgnoredDuringExecution; required != nil {
		_, err := nodeaffinity.NewNodeSelector(required,
			field.WithPath(path.Child("requiredDuringSchedulingIgnoredDuringExecution")))
		r.field(err)
	}
	if preferred := a.AddedAffinity.PreferredDuringSchedulingIgnoredDuringExecution; len(preferred) > 0 {
		_, err := nodeaffinity.NewPreferredSchedulingTerms(preferred,
			field.WithPath(path.Child("preferredDuringSchedulingIgnoredDuringExecution")))
		r.field(err)
	}
}

func (r *report) checkFit(path *field.Path, a *configv1.NodeResourcesFitArgs) {
	var errs field.ErrorList
	for i, name := range a.IgnoredResources {
		errs = append(errs, metav1validation.ValidateLabelName(name, path.Child("ignoredResources").Index(i))...)
	}
	for i, group := range a.IgnoredResourceGroups {
		here := path.Child("ignoredResourceGroups").Index(i)
		if strings.Contains(group, "/") {
			errs = append(errs, field.Invalid(here, group, "a resource group is the part before the slash"))
			continue
		}
		errs = append(errs, metav1validation.ValidateLabelName(group, here)...)
	}
	r.field(errs.ToAggregate())
	r.checkStrategy(path.Child("scoringStrategy"), a.ScoringStrategy)
}

func (r *report) checkStrategy(path *field.Path, s *configv1.ScoringStrategy) {
	types := []configv1.ScoringStrategyType{
		configv1.LeastAllocated, configv1.MostAllocated, configv1.RequestedToCapacityRatio,
	}
	if !slices.Contains(types, s.Type) {
		r.field(field.NotSupported(path.Child("type"), s.Type, types))
	}
	for i, spec := range s.Resources {
		if spec.Weight <= 0 || spec.Weight > 100 {
			r.add(path.Child("resources").Index(i).Child("weight").String(),
				"the weight of %s must be between 1 and 100, got %d", spec.Name, spec.Weight)
		}
	}
	ratio := path.Child("requestedToCapacityRatio")
	switch {
	case s.Type == configv1.RequestedToCapacityRatio && s.RequestedToCapacityRatio == nil:
		r.add(ratio.String(), "required when type is %s", s.Type)
	case s.Type == configv1.RequestedToCapacityRatio:
		r.checkShape(ratio.Child("shape"), s.RequestedToCapacityRatio.Shape)
	case s.RequestedToCapacityRatio != nil:
		r.add(ratio.String(), "only allowed when type is %s, it is %s", configv1.RequestedToCapacityRatio, s.Type)
	}
}

// checkShape looks at the points of a scoring function: utilization in percent, rising; score from 0 to 10.
func (r *report) checkShape(path *field.Path, shape []configv1.UtilizationShapePoint) {
	if len(shape) == 0 {
		r.add(path.String(), "at least one point is required")
	}
	for i, p := range shape {
		here := path.Index(i)
		if i > 0 && p.Utilization <= shape[i-1].Utilization {
			r.add(here.Child("utilization").String(), "must be above the point before (%d), got %d",
				shape[i-1].Utilization, p.Utilization)
		}
		if p.Utilization < 0 || p.Utilization > 100 {
			r.add(here.Child("utilization").String(), "must be between 0 and 100, got %d", p.Utilization)
		}
		if p.Score < 0 || p.Score > 10 {
			r.add(here.Child("score").String(), "must be between 0 and 10, got %d", p.Score)
		}
	}
}

func (r *report) checkBalanced(path *field.Path, a *configv1.NodeResourcesBalancedAllocationArgs) {
	seen := map[string]bool{}
	for i, spec := range a.Resources {
		here := path.Child("resources").Index(i)
		if seen[spec.Name] {
			r.add(here.Child("name").String(), "resource %q is given twice", spec.Name)
		}
		seen[spec.Name] = true
		if spec.Weight != 1 {
			r.add(here.Child("weight").String(), "must be 1, got %d", spec.Weight)
		}
	}
}

// settings reads our own settings. Every profile that has them must say the same, because they hold for the process.
func (r *report) settings(profiles []configv1.KubeSchedulerProfile, out *Settings) {
	from := ""
	var first Settings
	for i, p := range profiles {
		for j, pc := range p.PluginConfig {
			if pc.Name != Kumiki || len(pc.Args.Raw) == 0 {
				continue
			}
			path := fmt.Sprintf("profiles[%d].pluginConfig[%d]", i, j)
			got := Settings{Seed: DefaultSeed, InFlightBinds: DefaultInFlightBinds}
			if !r.unmarshal(pc.Args.Raw, path+".args", &got) {
				continue
			}
			if got.InFlightBinds <= 0 {
				r.add(path+".args.inFlightBinds", "must be above 0, got %d", got.InFlightBinds)
			}
			if from != "" && got != first {
				r.add(path+".args", "must be the same as in %s: these settings hold for the whole process", from)
			}
			if from == "" {
				first, from = got, path
			}
			*out = got
		}
	}
}
