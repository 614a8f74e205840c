// SPDX-License-Identifier: Apache-2.0

package gangapi

import (
	"fmt"

	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// The versions of the native API. Kubernetes 1.36 serves v1alpha2, 1.37 serves v1beta1 and v1alpha3.
const (
	v1beta1  = "v1beta1"
	v1alpha3 = "v1alpha3"
	v1alpha2 = "v1alpha2"
)

// maxTopologyLevels bounds the levels of a topology constraint; the API server allows one.
const maxTopologyLevels = 8

// PodGroup reads a native pod group in one of the versions of its API. The API server rejects most of what is Bad here;
// another release of it may accept it.
func PodGroup(o *unstructured.Unstructured) *cluster.Gang {
	g := Meta(cluster.GangOfGroup, o)
	var problem error
	switch version := o.GroupVersionKind().Version; version {
	case v1beta1, v1alpha3:
		problem = readPodGroup(o, g)
	case v1alpha2:
		problem = readPodGroupV1alpha2(o, g)
	default:
		problem = fmt.Errorf("version %.64q is not supported", version)
	}
	if problem != nil {
		g.Bad = problem.Error()
	}
	return g
}

// readPodGroup fills in a gang from a pod group of v1beta1, or of v1alpha3, which has the same fields.
func readPodGroup(o *unstructured.Unstructured, g *cluster.Gang) error {
	var group schedulingv1beta1.PodGroup
	if err := decode(o, &group); err != nil {
		return err
	}
	g.Condition = conditionOf(group.Status.Conditions, schedulingv1beta1.PodGroupInitiallyScheduled)
	spec := &group.Spec
	g.Priority = spec.Priority
	if p := spec.PreemptionPolicy; p != nil {
		setPreemptionPolicy(g, *p)
	}
	var minCount *int32
	if gang := spec.SchedulingPolicy.Gang; gang != nil {
		minCount = &gang.MinCount
	}
	setPolicy(g, spec.SchedulingPolicy.Basic != nil, minCount)
	if m := spec.DisruptionMode; m != nil {
		setDisruptionMode(g, m.Single != nil, m.All != nil)
	}
	if c := spec.SchedulingConstraints; c != nil {
		keys := make([]string, len(c.Topology))
		for i, level := range c.Topology {
			keys[i] = level.Key
		}
		setTopology(g, keys)
	}
	rejectUnsupported(g, len(spec.ResourceClaims), spec.ParentCompositePodGroupName)
	return nil
}

func decode(o *unstructured.Unstructured, into any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(o.Object, into); err != nil {
		return fmt.Errorf("a field has a wrong type: %w", err)
	}
	return nil
}

// ScheduledCondition returns the type of the condition that says whether a pod group of a version was scheduled.
func ScheduledCondition(version string) string {
	if version == v1alpha2 {
		return scheduledV1alpha2
	}
	return schedulingv1beta1.PodGroupInitiallyScheduled
}

func conditionOf(conditions []metav1.Condition, scheduled string) (found cluster.GangCondition) {
	for _, c := range conditions {
		if c.Type == scheduled {
			found = cluster.GangCondition{Scheduled: c.Status == metav1.ConditionTrue, Reason: c.Reason,
				Message: c.Message, Generation: c.ObservedGeneration}
		}
	}
	return found
}

// setPolicy sets how many pods must be placed together. minCount is nil without a gang policy.
func setPolicy(g *cluster.Gang, basic bool, minCount *int32) {
	switch {
	case basic && minCount != nil:
		g.Bad = "spec.schedulingPolicy is both basic and gang"
	case basic:
		g.Basic, g.MinCount = true, 1
	case minCount != nil:
		setMinCount(g, "spec.schedulingPolicy.gang.minCount", int64(*minCount))
	default:
		g.Bad = "spec.schedulingPolicy is none that is known here"
	}
}

// setPreemptionPolicy sets whether the group may have other pods evicted.
func setPreemptionPolicy(g *cluster.Gang, policy schedulingv1beta1.PreemptionPolicy) {
	switch policy {
	case schedulingv1beta1.PreemptLowerPriority:
	case schedulingv1beta1.PreemptNever:
		g.NeverPreempts = true
	default:
		g.Bad = fmt.Sprintf("spec.preemptionPolicy %.64q is not known here", policy)
	}
}

// setDisruptionMode sets whether the pods are evicted one by one or together.
func setDisruptionMode(g *cluster.Gang, single, all bool) {
	if single == all {
		g.Bad = "spec.disruptionMode must be either single or all"
		return
	}
	g.EvictWhole = all
}

// setTopology sets the node labels of which all pods must share the value.
func setTopology(g *cluster.Gang, keys []string) {
	for _, key := range keys[:min(len(keys), maxTopologyLevels)] {
		if key == "" {
			g.Bad = "spec.schedulingConstraints.topology names no label of nodes"
		}
		g.Topology = append(g.Topology, cluster.GangTopology{Key: key, Required: true})
	}
	if len(keys) > maxTopologyLevels {
		g.Bad = fmt.Sprintf("spec.schedulingConstraints.topology has %d levels, at most %d are allowed",
			len(keys), maxTopologyLevels)
	}
}

func rejectUnsupported(g *cluster.Gang, claims int, parent *string) {
	if claims > 0 {
		g.Bad = "spec.resourceClaims are not supported: claims that a pod group holds for its pods " +
			"(gate DRAWorkloadResourceClaims)"
	}
	if parent != nil {
		g.Bad = fmt.Sprintf("spec.parentCompositePodGroupName is %.253q: groups of pod groups are not supported "+
			"(gate CompositePodGroup)", *parent)
	}
}
