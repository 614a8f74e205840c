// SPDX-License-Identifier: Apache-2.0

package gangapi

import (
	"fmt"

	schedulingv1alpha2 "k8s.io/api/scheduling/v1alpha2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// maxTopologyLevels bounds the levels of a topology constraint; the API server allows one.
const maxTopologyLevels = 8

// PodGroup reads a native pod group. The API server refuses most of what is bad here; another version of it may not
// have.
func PodGroup(o *schedulingv1alpha2.PodGroup) *cluster.Gang {
	g := Meta(cluster.GangOfGroup, o)
	for _, c := range o.Status.Conditions {
		if c.Type == schedulingv1alpha2.PodGroupScheduled {
			g.Condition = cluster.GangCondition{Scheduled: c.Status == metav1.ConditionTrue, Reason: c.Reason,
				Message:    c.Message,
				Generation: c.ObservedGeneration}
		}
	}
	spec := &o.Spec
	g.Priority = spec.Priority
	switch policy := spec.SchedulingPolicy; {
	case policy.Basic != nil && policy.Gang != nil:
		g.Bad = "spec.schedulingPolicy is both basic and gang"
	case policy.Basic != nil:
		g.Basic, g.MinCount = true, 1
	case policy.Gang != nil:
		setMinCount(g, "spec.schedulingPolicy.gang.minCount", int64(policy.Gang.MinCount))
	default:
		g.Bad = "spec.schedulingPolicy is none that is known here"
	}
	if m := spec.DisruptionMode; m != nil {
		switch *m {
		case schedulingv1alpha2.DisruptionModePod:
		case schedulingv1alpha2.DisruptionModePodGroup:
			g.EvictWhole = true
		default:
			g.Bad = fmt.Sprintf("spec.disruptionMode %.64q is not known here", string(*m))
		}
	}
	if c := spec.SchedulingConstraints; c != nil {
		for _, level := range c.Topology[:min(len(c.Topology), maxTopologyLevels)] {
			if level.Key == "" {
				g.Bad = "spec.schedulingConstraints.topology names no label of nodes"
			}
			g.Topology = append(g.Topology, cluster.GangTopology{Key: level.Key, Required: true})
		}
		if len(c.Topology) > maxTopologyLevels {
			g.Bad = fmt.Sprintf("spec.schedulingConstraints.topology has %d levels, at most %d are allowed",
				len(c.Topology), maxTopologyLevels)
		}
	}
	if len(spec.ResourceClaims) > 0 {
		g.Bad = "spec.resourceClaims are not supported: claims that a pod group holds for its pods (gate " +
			"DRAWorkloadResourceClaims)"
	}
	return g
}
