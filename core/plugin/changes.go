// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// PodChanges names what an update of a pod changed, one event for each kind, in upstream's order (upstream:
// framework.PodSchedulingPropertiesChange). An update that changed none of these gives one general update. The new
// version decides whether the events are about an assigned pod, or about a waiting one, which is then their target.
func PodChanges(before, after *cluster.Pod) []Event {
	about := AssignedPod
	if after.NodeName == "" {
		about = TargetPod
	}
	var events []Event
	found := func(changed bool, a Action) {
		if changed {
			events = append(events, Event{Resource: about, Action: a})
		}
	}
	was, is := before.Spec, after.Spec
	found(!maps.Equal(was.Labels, is.Labels), UpdatePodLabel)
	found(was != is && lowered(&was.Held, &is.Held), UpdatePodScaleDown)
	found(was != is && lowered(&is.Held, &was.Held), UpdatePodScaleUp)
	found(len(was.Gates) != 0 && len(is.Gates) == 0, UpdatePodSchedulingGatesEliminated)
	// The API allows tolerations to be added only, so their number tells.
	found(len(was.Tolerations) != len(is.Tolerations), UpdatePodToleration)
	found(before.ClaimsHash != after.ClaimsHash, UpdatePodGeneratedResourceClaim)
	if events == nil {
		found(true, Update)
	}
	return events
}

// lowered reports whether some amount of was is smaller in is, or missing there.
func lowered(was, is *resource.Amounts) bool {
	if was.MilliCPU > is.MilliCPU || was.Memory > is.Memory || was.Ephemeral > is.Ephemeral {
		return true
	}
	return slices.ContainsFunc(was.Scalars, func(s resource.Scalar) bool {
		return !is.Has(s.Name) || s.Value > is.Get(s.Name)
	})
}

// NodeChanges names what an update of a node changed, in upstream's order (upstream:
// framework.NodeSchedulingPropertiesChange); none when nothing changed that could wake a pod. A node that becomes
// schedulable again counts as a change of taints, and comes on top of one.
func NodeChanges(before, after *cluster.Node) []Event {
	var events []Event
	found := func(changed bool, a Action) {
		if changed {
			events = append(events, Event{Resource: NodeObject, Action: a})
		}
	}
	found(before.Unschedulable && !after.Unschedulable, UpdateNodeTaint)
	found(!before.Allocatable.Equal(&after.Allocatable), UpdateNodeAllocatable)
	found(!maps.Equal(before.Labels, after.Labels), UpdateNodeLabel)
	found(!slices.EqualFunc(before.Taints, after.Taints, SameTaint), UpdateNodeTaint)
	found(before.ConditionsHash != after.ConditionsHash, UpdateNodeCondition)
	found(before.AnnotationsHash != after.AnnotationsHash, UpdateNodeAnnotation)
	found(!slices.Equal(before.Features, after.Features), UpdateNodeDeclaredFeature)
	return events
}

func SameTaint(a, b v1.Taint) bool {
	return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect && a.TimeAdded.Equal(b.TimeAdded)
}
