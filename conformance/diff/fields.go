// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"slices"

	v1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"
)

// input is something that a plugin reads, of the pod, the profile or the cluster.
type input struct {
	plugin, name string
	uses         func(v view) bool
}

// verdictsOf: plugin -> the verdicts that it can give.
var verdictsOf = map[string][]string{
	"SchedulingGates":                 {gates},
	"NodeUnschedulable":               {rejectsHard, passes},
	"NodeName":                        {rejectsHard, passes},
	"TaintToleration":                 {rejectsHard, passes, differ, equal},
	"NodeAffinity":                    {rejectsAll, rejectsHard, passes, differ, equal, skips, scoreFails},
	"NodePorts":                       {rejects, passes},
	"NodeResourcesFit":                {rejects, rejectsHard, passes, differ, equal},
	"VolumeRestrictions":              {rejectsAll, rejects, passes},
	"NodeVolumeLimits":                {rejects, fails, passes},
	"VolumeBinding":                   {rejectsAll, rejectsHard, fails, passes},
	"VolumeZone":                      {rejectsAll, rejectsHard, passes},
	"PodTopologySpread":               {fails, rejects, rejectsHard, passes, differ, equal, skips},
	"InterPodAffinity":                {rejectsAll, rejects, rejectsHard, passes, differ, equal, skips},
	"DynamicResources":                {gates, rejectsAll, fails, rejectsHard, passes, differ},
	"NodeResourcesBalancedAllocation": {differ, equal, skips},
	"ImageLocality":                   {differ, equal},
	"NodeDeclaredFeatures":            {rejectsHard, passes},
}

// coveredPlugins in the order of the profile.
var coveredPlugins = []string{
	"SchedulingGates", "NodeName", "NodeUnschedulable", "TaintToleration", "NodeAffinity", "NodePorts", "NodeResourcesFit", "VolumeRestrictions",
	"NodeVolumeLimits", "VolumeBinding", "VolumeZone", "PodTopologySpread", "InterPodAffinity", "DynamicResources",
	"NodeResourcesBalancedAllocation", "ImageLocality", "NodeDeclaredFeatures",
}

var inputs = slices.Concat(localInputs, resourceInputs, volumeInputs, amongInputs, deviceInputs)

func always(view) bool { return true }

// localInputs are read by the plugins that look at one node and one pod.
var localInputs = []input{
	{"SchedulingGates", "one gate", func(v view) bool { return len(v.pod.Spec.SchedulingGates) == 1 }},
	{"SchedulingGates", "several gates", func(v view) bool { return len(v.pod.Spec.SchedulingGates) > 1 }},
	{"NodeUnschedulable", "pod tolerates", tolerates(func(t *v1.Toleration) bool {
		return t.Key == v1.TaintNodeUnschedulable || t.Key == "" && t.Operator == v1.TolerationOpExists
	})},
	{"NodeUnschedulable", "any pod", always},
	{"NodeName", "spec.nodeName", func(v view) bool { return v.pod.Spec.NodeName != "" }},
	{"TaintToleration", "no toleration", func(v view) bool { return len(v.pod.Spec.Tolerations) == 0 }},
	{"TaintToleration", "Exists", tolerates(func(t *v1.Toleration) bool { return t.Operator == v1.TolerationOpExists && t.Key != "" })},
	{"TaintToleration", "Equal", tolerates(func(t *v1.Toleration) bool { return t.Operator == v1.TolerationOpEqual })},
	{"TaintToleration", "no operator", tolerates(func(t *v1.Toleration) bool { return t.Operator == "" })},
	{"TaintToleration", "Gt", tolerates(func(t *v1.Toleration) bool { return t.Operator == "Gt" })},
	{"TaintToleration", "unknown operator", tolerates(func(t *v1.Toleration) bool { return t.Operator == "Near" })},
	{"TaintToleration", "everything", tolerates(func(t *v1.Toleration) bool { return t.Operator == v1.TolerationOpExists && t.Key == "" })},
	{"TaintToleration", "any effect", tolerates(func(t *v1.Toleration) bool { return t.Effect == "" })},
	{"TaintToleration", "PreferNoSchedule", tolerates(func(t *v1.Toleration) bool { return t.Effect == v1.TaintEffectPreferNoSchedule })},
	{"TaintToleration", "NoExecute", tolerates(func(t *v1.Toleration) bool { return t.Effect == v1.TaintEffectNoExecute })},
	{"TaintToleration", "tolerationSeconds", tolerates(func(t *v1.Toleration) bool { return t.TolerationSeconds != nil })},
	{"NodeAffinity", "nodeSelector", func(v view) bool { return len(v.pod.Spec.NodeSelector) > 0 }},
	{"NodeAffinity", "required In", required(v1.NodeSelectorOpIn)},
	{"NodeAffinity", "required NotIn", required(v1.NodeSelectorOpNotIn)},
	{"NodeAffinity", "required Exists", required(v1.NodeSelectorOpExists)},
	{"NodeAffinity", "required DoesNotExist", required(v1.NodeSelectorOpDoesNotExist)},
	{"NodeAffinity", "required Gt", required(v1.NodeSelectorOpGt)},
	{"NodeAffinity", "required Lt", required(v1.NodeSelectorOpLt)},
	{"NodeAffinity", "required matchFields", func(v view) bool {
		return slices.ContainsFunc(requiredTerms(v.pod), func(t v1.NodeSelectorTerm) bool { return len(t.MatchFields) > 0 })
	}},
	{"NodeAffinity", "required malformed", func(v view) bool { return slices.ContainsFunc(requiredTerms(v.pod), malformed) }},
	{"NodeAffinity", "preferred", func(v view) bool { return len(preferredTerms(v.pod)) > 0 }},
	{"NodeAffinity", "preferred matchFields", func(v view) bool {
		return slices.ContainsFunc(preferredTerms(v.pod), func(t v1.NodeSelectorTerm) bool { return len(t.MatchFields) > 0 })
	}},
	{"NodeAffinity", "preferred malformed", func(v view) bool { return slices.ContainsFunc(preferredTerms(v.pod), malformed) }},
	{"NodeAffinity", "args addedAffinity", func(v view) bool { return v.s.Profile.NodeAffinity != nil }},
	{"NodePorts", "hostPort", port(func(c *v1.ContainerPort) bool { return c.HostPort > 0 })},
	{"NodePorts", "hostIP", port(func(c *v1.ContainerPort) bool { return c.HostPort > 0 && c.HostIP != "" && c.HostIP != "0.0.0.0" })},
	{"NodePorts", "UDP or SCTP", port(func(c *v1.ContainerPort) bool {
		return c.HostPort > 0 && (c.Protocol == v1.ProtocolUDP || c.Protocol == v1.ProtocolSCTP)
	})},
	{"ImageLocality", "images", func(v view) bool { return v.pod.Spec.Containers[0].Image != "" }},
	{"ImageLocality", "init containers", func(v view) bool { return len(v.pod.Spec.InitContainers) > 0 }},
	{"ImageLocality", "image volume", func(v view) bool {
		return slices.ContainsFunc(v.pod.Spec.Volumes, func(vol v1.Volume) bool { return vol.Image != nil })
	}},
	{"NodeDeclaredFeatures", "host network with user namespaces", func(v view) bool {
		return v.pod.Spec.HostNetwork && v.pod.Spec.HostUsers != nil && !*v.pod.Spec.HostUsers
	}},
	{"NodeDeclaredFeatures", "restart of all containers", func(v view) bool {
		all := func(c v1.Container) bool {
			return slices.ContainsFunc(c.RestartPolicyRules, func(r v1.ContainerRestartRule) bool {
				return r.Action == v1.ContainerRestartRuleActionRestartAllContainers
			})
		}
		return slices.ContainsFunc(v.pod.Spec.Containers, all) || slices.ContainsFunc(v.pod.Spec.InitContainers, all)
	}},
}

// resourceInputs are read by the filter and the scores of resources.
var resourceInputs = func() []input {
	var out []input
	for _, f := range []struct {
		name string
		uses func(v view) bool
	}{
		{"cpu", requests(func(n v1.ResourceName) bool { return n == v1.ResourceCPU })},
		{"memory", requests(func(n v1.ResourceName) bool { return n == v1.ResourceMemory })},
		{"ephemeral storage", requests(func(n v1.ResourceName) bool { return n == v1.ResourceEphemeralStorage })},
		{"huge pages", requests(func(n v1.ResourceName) bool { return n == "hugepages-2Mi" || n == "hugepages-1Gi" })},
		{"extended resource", requests(func(n v1.ResourceName) bool {
			return n == "example.com/gpu" || n == "example.com/fpga" || n == "other.io/nic"
		})},
		{"silent container", func(v view) bool { return len(v.pod.Spec.Containers[0].Resources.Requests) == 0 }},
		{"init containers", func(v view) bool { return len(v.pod.Spec.InitContainers) > 0 }},
		{"sidecars", func(v view) bool {
			return slices.ContainsFunc(v.pod.Spec.InitContainers, func(c v1.Container) bool { return c.RestartPolicy != nil })
		}},
		{"overhead", func(v view) bool { return len(v.pod.Spec.Overhead) > 0 }},
		{"pod-level resources", func(v view) bool { return v.pod.Spec.Resources != nil }},
		{"nominated pods on nodes", func(v view) bool { return len(v.s.Nominated) > 0 }},
		{"pods under resize", func(v view) bool {
			return slices.ContainsFunc(v.s.Bound, func(p *v1.Pod) bool { return len(p.Status.ContainerStatuses) > 0 })
		}},
	} {
		out = append(out, input{"NodeResourcesFit", f.name, f.uses}, input{"NodeResourcesBalancedAllocation", f.name, f.uses})
	}
	return append(out,
		input{"NodeResourcesFit", "resource of a device class", func(v view) bool { return asksForClass(v) }},
		input{"NodeResourcesFit", "args LeastAllocated", strategy(configv1.LeastAllocated)},
		input{"NodeResourcesFit", "args MostAllocated", strategy(configv1.MostAllocated)},
		input{"NodeResourcesFit", "args RequestedToCapacityRatio", strategy(configv1.RequestedToCapacityRatio)},
		input{"NodeResourcesFit", "args ignoredResources", func(v view) bool { return v.s.Profile.Fit != nil && len(v.s.Profile.Fit.IgnoredResources) > 0 }},
		input{"NodeResourcesFit", "args ignoredResourceGroups", func(v view) bool {
			return v.s.Profile.Fit != nil && len(v.s.Profile.Fit.IgnoredResourceGroups) > 0
		}},
		input{"NodeResourcesBalancedAllocation", "args resources", func(v view) bool { return v.s.Profile.Balanced != nil }},
	)
}()

func tolerates(match func(*v1.Toleration) bool) func(view) bool {
	return func(v view) bool {
		for i := range v.pod.Spec.Tolerations {
			if match(&v.pod.Spec.Tolerations[i]) {
				return true
			}
		}
		return false
	}
}

func requiredTerms(p *v1.Pod) []v1.NodeSelectorTerm {
	if p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil || p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution == nil {
		return nil
	}
	return p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
}

func preferredTerms(p *v1.Pod) []v1.NodeSelectorTerm {
	if p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil {
		return nil
	}
	var out []v1.NodeSelectorTerm
	for _, t := range p.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution {
		out = append(out, t.Preference)
	}
	return out
}

// malformed reports whether a term is empty, or of a shape that the API server does not accept.
func malformed(t v1.NodeSelectorTerm) bool {
	if len(t.MatchFields)+len(t.MatchExpressions) == 0 {
		return true
	}
	return slices.ContainsFunc(t.MatchExpressions, func(r v1.NodeSelectorRequirement) bool {
		wants := r.Operator == v1.NodeSelectorOpIn || r.Operator == v1.NodeSelectorOpNotIn || r.Operator == v1.NodeSelectorOpGt || r.Operator == v1.NodeSelectorOpLt
		return r.Operator == "Near" || r.Key == "" || r.Key == "not a key!" || wants && len(r.Values) == 0 ||
			len(r.Values) > 0 && (r.Values[0] == "bad value!" || r.Values[0] == "abc" && r.Key == "generation")
	})
}

func required(op v1.NodeSelectorOperator) func(view) bool {
	return func(v view) bool {
		return slices.ContainsFunc(requiredTerms(v.pod), func(t v1.NodeSelectorTerm) bool {
			return slices.ContainsFunc(t.MatchExpressions, func(r v1.NodeSelectorRequirement) bool { return r.Operator == op })
		})
	}
}

func port(match func(*v1.ContainerPort) bool) func(view) bool {
	return func(v view) bool {
		for i := range v.pod.Spec.Containers {
			for j := range v.pod.Spec.Containers[i].Ports {
				if match(&v.pod.Spec.Containers[i].Ports[j]) {
					return true
				}
			}
		}
		return false
	}
}

func requests(match func(v1.ResourceName) bool) func(view) bool {
	return func(v view) bool {
		for i := range v.pod.Spec.Containers {
			for name := range v.pod.Spec.Containers[i].Resources.Requests { // order: any of them will do
				if match(name) {
					return true
				}
			}
		}
		return false
	}
}

func strategy(t configv1.ScoringStrategyType) func(view) bool {
	return func(v view) bool {
		return v.s.Profile.Fit != nil && v.s.Profile.Fit.ScoringStrategy != nil && v.s.Profile.Fit.ScoringStrategy.Type == t
	}
}
