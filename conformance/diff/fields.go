// SPDX-License-Identifier: Apache-2.0

package diff

import (
	v1 "k8s.io/api/core/v1"
	configv1 "k8s.io/kube-scheduler/config/v1"

	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// field is an input that coverage counts. The predicate looks at the pod asked
// about, or at the profile.
type field struct {
	name string
	uses func(s *scenario.Scenario, p *v1.Pod) bool
}

var podFields = []field{
	{"nodeSelector", func(_ *scenario.Scenario, p *v1.Pod) bool { return len(p.Spec.NodeSelector) > 0 }},
	{"nodeName", func(_ *scenario.Scenario, p *v1.Pod) bool { return p.Spec.NodeName != "" }},
	{"schedulingGates", func(_ *scenario.Scenario, p *v1.Pod) bool { return len(p.Spec.SchedulingGates) > 0 }},
	{"tolerations", func(_ *scenario.Scenario, p *v1.Pod) bool { return len(p.Spec.Tolerations) > 0 }},
	{"operator In", operator(v1.NodeSelectorOpIn)},
	{"operator NotIn", operator(v1.NodeSelectorOpNotIn)},
	{"operator Exists", operator(v1.NodeSelectorOpExists)},
	{"operator DoesNotExist", operator(v1.NodeSelectorOpDoesNotExist)},
	{"operator Gt", operator(v1.NodeSelectorOpGt)},
	{"operator Lt", operator(v1.NodeSelectorOpLt)},
	{"operator unknown", operator("Near")},
	{"matchFields", func(_ *scenario.Scenario, p *v1.Pod) bool {
		return anyTerm(p, func(t *v1.NodeSelectorTerm) bool { return len(t.MatchFields) > 0 })
	}},
	{"empty term", func(_ *scenario.Scenario, p *v1.Pod) bool {
		return anyTerm(p, func(t *v1.NodeSelectorTerm) bool { return len(t.MatchFields)+len(t.MatchExpressions) == 0 })
	}},
	{"preferred terms", func(_ *scenario.Scenario, p *v1.Pod) bool { return len(preferred(p)) > 0 }},
	{"hostPort", port(func(c *v1.ContainerPort) bool { return c.HostPort > 0 })},
	{"hostPort with hostIP", port(func(c *v1.ContainerPort) bool { return c.HostPort > 0 && c.HostIP != "" && c.HostIP != "0.0.0.0" })},
	{"hostPort UDP or SCTP", port(func(c *v1.ContainerPort) bool {
		return c.HostPort > 0 && (c.Protocol == v1.ProtocolUDP || c.Protocol == v1.ProtocolSCTP)
	})},
	{"init containers", func(_ *scenario.Scenario, p *v1.Pod) bool { return len(p.Spec.InitContainers) > 0 }},
	{"sidecars", func(_ *scenario.Scenario, p *v1.Pod) bool {
		for i := range p.Spec.InitContainers {
			if p.Spec.InitContainers[i].RestartPolicy != nil {
				return true
			}
		}
		return false
	}},
	{"overhead", func(_ *scenario.Scenario, p *v1.Pod) bool { return len(p.Spec.Overhead) > 0 }},
	{"pod-level resources", func(_ *scenario.Scenario, p *v1.Pod) bool { return p.Spec.Resources != nil }},
	{"ephemeral storage", requests(func(n v1.ResourceName) bool { return n == v1.ResourceEphemeralStorage })},
	{"huge pages", requests(func(n v1.ResourceName) bool { return n == "hugepages-2Mi" || n == "hugepages-1Gi" })},
	{"extended resource", requests(func(n v1.ResourceName) bool {
		return n == "example.com/gpu" || n == "example.com/fpga" || n == "other.io/nic" || n == "absent.io/thing"
	})},
	{"no request at all", func(_ *scenario.Scenario, p *v1.Pod) bool { return len(p.Spec.Containers[0].Resources.Requests) == 0 }},
	{"image volume", func(_ *scenario.Scenario, p *v1.Pod) bool { return len(p.Spec.Volumes) > 0 }},
	{"nominated pods on nodes", func(s *scenario.Scenario, _ *v1.Pod) bool { return len(s.Nominated) > 0 }},
	{"profile: addedAffinity", func(s *scenario.Scenario, _ *v1.Pod) bool { return s.Profile.NodeAffinity != nil }},
	{"profile: MostAllocated", strategy(configv1.MostAllocated)},
	{"profile: RequestedToCapacityRatio", strategy(configv1.RequestedToCapacityRatio)},
	{"profile: ignoredResources", func(s *scenario.Scenario, _ *v1.Pod) bool {
		return s.Profile.Fit != nil && len(s.Profile.Fit.IgnoredResources) > 0
	}},
	{"profile: ignoredResourceGroups", func(s *scenario.Scenario, _ *v1.Pod) bool {
		return s.Profile.Fit != nil && len(s.Profile.Fit.IgnoredResourceGroups) > 0
	}},
	{"profile: a filter disabled", func(s *scenario.Scenario, _ *v1.Pod) bool { return len(s.Profile.NoFilter) > 0 }},
	{"profile: a score disabled", func(s *scenario.Scenario, _ *v1.Pod) bool { return len(s.Profile.NoScore) > 0 }},
	{"profile: balanced resources", func(s *scenario.Scenario, _ *v1.Pod) bool { return s.Profile.Balanced != nil }},
}

func preferred(p *v1.Pod) []v1.PreferredSchedulingTerm {
	if p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil {
		return nil
	}
	return p.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution
}

func anyTerm(p *v1.Pod, match func(*v1.NodeSelectorTerm) bool) bool {
	if p.Spec.Affinity == nil || p.Spec.Affinity.NodeAffinity == nil {
		return false
	}
	if r := p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution; r != nil {
		for i := range r.NodeSelectorTerms {
			if match(&r.NodeSelectorTerms[i]) {
				return true
			}
		}
	}
	for i := range preferred(p) {
		if match(&preferred(p)[i].Preference) {
			return true
		}
	}
	return false
}

func operator(op v1.NodeSelectorOperator) func(*scenario.Scenario, *v1.Pod) bool {
	return func(_ *scenario.Scenario, p *v1.Pod) bool {
		return anyTerm(p, func(t *v1.NodeSelectorTerm) bool {
			for i := range t.MatchExpressions {
				if t.MatchExpressions[i].Operator == op {
					return true
				}
			}
			return false
		})
	}
}

func port(match func(*v1.ContainerPort) bool) func(*scenario.Scenario, *v1.Pod) bool {
	return func(_ *scenario.Scenario, p *v1.Pod) bool {
		for i := range p.Spec.Containers {
			for j := range p.Spec.Containers[i].Ports {
				if match(&p.Spec.Containers[i].Ports[j]) {
					return true
				}
			}
		}
		return false
	}
}

func requests(match func(v1.ResourceName) bool) func(*scenario.Scenario, *v1.Pod) bool {
	return func(_ *scenario.Scenario, p *v1.Pod) bool {
		for i := range p.Spec.Containers {
			for name := range p.Spec.Containers[i].Resources.Requests {
				if match(name) {
					return true
				}
			}
		}
		return false
	}
}

func strategy(t configv1.ScoringStrategyType) func(*scenario.Scenario, *v1.Pod) bool {
	return func(s *scenario.Scenario, _ *v1.Pod) bool {
		return s.Profile.Fit != nil && s.Profile.Fit.ScoringStrategy != nil && s.Profile.Fit.ScoringStrategy.Type == t
	}
}
