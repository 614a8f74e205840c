// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// checkArgs validates the arguments of one plugin (upstream: apis/config/validation/validation_pluginargs.go).
func (r *report) checkArgs(path *field.Path, plugin string, a *Args) {
	switch plugin {
	case DefaultPreemption:
		r.checkPreemption(path, &a.DefaultPreemption)
	case DynamicResources:
		r.checkDevices(path, &a.DynamicResources)
	case InterPodAffinity:
		r.between(path.Child("hardPodAffinityWeight"), *a.InterPodAffinity.HardPodAffinityWeight, 0, 100)
	case NodeAffinity:
		r.checkNodeAffinity(path, &a.NodeAffinity)
	case NodeResourcesBalancedAllocation:
		r.checkBalanced(path, &a.NodeResourcesBalancedAllocation)
	case NodeResourcesFit:
		r.checkFit(path, &a.NodeResourcesFit)
	case NodeResourcesBestFit, NodeResourcesDotProduct, NodeResourcesFragmentation:
		r.checkPacking(path, plugin, a)
	case PodTopologySpread:
		r.checkSpread(path, &a.PodTopologySpread)
	case VolumeBinding:
		r.checkVolumeBinding(path, &a.VolumeBinding)
	}
}

// between checks a number against two inclusive bounds.
func (r *report) between(path *field.Path, n, low, high int32) {
	if n < low || n > high {
		r.add(path.String(), "must be between %d and %d, got %d", low, high, n)
	}
}

func (r *report) checkPreemption(path *field.Path, a *configv1.DefaultPreemptionArgs) {
	percent, least := *a.MinCandidateNodesPercentage, *a.MinCandidateNodesAbsolute
	r.between(path.Child("minCandidateNodesPercentage"), percent, 0, 100)
	if least < 0 {
		r.add(path.Child("minCandidateNodesAbsolute").String(), "must not be negative, got %d", least)
	}
	if percent == 0 && least == 0 {
		r.add(path.Child("minCandidateNodesPercentage").String(),
			"must not be 0 while minCandidateNodesAbsolute is 0 too")
		r.add(path.Child("minCandidateNodesAbsolute").String(),
			"must not be 0 while minCandidateNodesPercentage is 0 too")
	}
}

func (r *report) checkDevices(path *field.Path, a *configv1.DynamicResourcesArgs) {
	if d := a.FilterTimeout.Duration; d < 0 {
		r.add(path.Child("filterTimeout").String(), "must not be negative, got %v; 0 is no time-out", d)
	}
	least, binding := time.Second, path.Child("bindingTimeout").String()
	switch {
	case a.BindingTimeout == nil:
	case !r.catalog.Features().WaitForDevices():
		r.add(binding, "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus feature gate is disabled")
	case a.BindingTimeout.Duration < least:
		r.add(binding, "must be at least 1s, got %v", a.BindingTimeout.Duration)
	}
}

func (r *report) checkVolumeBinding(path *field.Path, a *configv1.VolumeBindingArgs) {
	if *a.BindTimeoutSeconds < 0 {
		r.add(path.Child("bindTimeoutSeconds").String(), "must not be negative, got %d", *a.BindTimeoutSeconds)
	} else if *a.BindTimeoutSeconds > maxSeconds {
		r.add(path.Child("bindTimeoutSeconds").String(), "must be at most %d, got %d", maxSeconds,
			*a.BindTimeoutSeconds)
	}
	shape := path.Child("shape")
	switch {
	case r.catalog.Features().StorageCapacityScoring:
		r.checkShape(shape, a.Shape)
	case a.Shape != nil:
		r.add(shape.String(),
			"unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring")
	}
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

func (r *report) checkSpread(path *field.Path, a *configv1.PodTopologySpreadArgs) {
	kinds := []configv1.PodTopologySpreadConstraintsDefaulting{configv1.SystemDefaulting, configv1.ListDefaulting}
	switch kind := path.Child("defaultingType"); {
	case !slices.Contains(kinds, a.DefaultingType):
		r.field(field.NotSupported(kind, a.DefaultingType, kinds))
	case a.DefaultingType == configv1.SystemDefaulting && len(a.DefaultConstraints) > 0:
		r.add(kind.String(), "must be %s where defaultConstraints are given", configv1.ListDefaulting)
	}
	for i := range a.DefaultConstraints {
		r.checkConstraint(path.Child("defaultConstraints").Index(i), a.DefaultConstraints, i)
	}
}

// checkConstraint checks the i-th default constraint.
func (r *report) checkConstraint(path *field.Path, all []v1.TopologySpreadConstraint, i int) {
	c := &all[i]
	if c.MaxSkew <= 0 {
		r.add(path.Child("maxSkew").String(), "must be above 0, got %d", c.MaxSkew)
	}
	if key := path.Child("topologyKey"); c.TopologyKey == "" {
		r.add(key.String(), "a topology key is required")
	} else {
		r.field(metav1validation.ValidateLabelName(c.TopologyKey, key).ToAggregate())
	}
	actions := []v1.UnsatisfiableConstraintAction{v1.DoNotSchedule, v1.ScheduleAnyway}
	if when := path.Child("whenUnsatisfiable"); c.WhenUnsatisfiable == "" {
		r.add(when.String(), "required: %s or %s", v1.DoNotSchedule, v1.ScheduleAnyway)
	} else if !slices.Contains(actions, c.WhenUnsatisfiable) {
		r.field(field.NotSupported(when, c.WhenUnsatisfiable, actions))
	}
	if c.LabelSelector != nil {
		r.add(path.Child("labelSelector").String(), "must be absent: the selector comes from what the pod belongs to")
	}
	same := func(other v1.TopologySpreadConstraint) bool {
		return other.TopologyKey == c.TopologyKey && other.WhenUnsatisfiable == c.WhenUnsatisfiable
	}
	if j := slices.IndexFunc(all[:i], same); j >= 0 {
		r.add(path.String(), "repeats topologyKey and whenUnsatisfiable of defaultConstraints[%d]", j)
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

// checkShape checks the points of a scoring function: utilization in percent, ascending; score from 0 to 10.
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
		r.between(here.Child("utilization"), p.Utilization, 0, 100)
		r.between(here.Child("score"), p.Score, 0, 10)
	}
}

func (r *report) checkBalanced(path *field.Path, a *configv1.NodeResourcesBalancedAllocationArgs) {
	seen := map[string]bool{} // resource -> seen
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
