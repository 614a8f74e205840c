// SPDX-License-Identifier: Apache-2.0

package gangapi

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// scheduledV1alpha2 is the type of the condition in v1alpha2.
const scheduledV1alpha2 = "PodGroupScheduled"

// podGroupV1alpha2 holds the fields of a pod group of v1alpha2 that are read. Kubernetes 1.36 serves that version;
// k8s.io/api has no types for it since 1.37.
type podGroupV1alpha2 struct {
	Spec struct {
		SchedulingPolicy struct {
			Basic *struct{} `json:"basic"`
			Gang  *struct {
				MinCount int32 `json:"minCount"`
			} `json:"gang"`
		} `json:"schedulingPolicy"`
		SchedulingConstraints *struct {
			Topology []struct {
				Key string `json:"key"`
			} `json:"topology"`
		} `json:"schedulingConstraints"`
		ResourceClaims []struct{} `json:"resourceClaims"`
		DisruptionMode *string    `json:"disruptionMode"`
		Priority       *int32     `json:"priority"`
	} `json:"spec"`
	Status struct {
		Conditions []metav1.Condition `json:"conditions"`
	} `json:"status"`
}

// readPodGroupV1alpha2 fills in a gang from a pod group of v1alpha2.
func readPodGroupV1alpha2(o *unstructured.Unstructured, g *cluster.Gang) error {
	var group podGroupV1alpha2
	if err := decode(o, &group); err != nil {
		return err
	}
	g.Condition = conditionOf(group.Status.Conditions, scheduledV1alpha2)
	spec := &group.Spec
	g.Priority = spec.Priority
	var minCount *int32
	if gang := spec.SchedulingPolicy.Gang; gang != nil {
		minCount = &gang.MinCount
	}
	setPolicy(g, spec.SchedulingPolicy.Basic != nil, minCount)
	if m := spec.DisruptionMode; m != nil {
		switch *m {
		case "Pod":
		case "PodGroup":
			g.EvictWhole = true
		default:
			g.Bad = fmt.Sprintf("spec.disruptionMode %.64q is not known here", *m)
		}
	}
	if c := spec.SchedulingConstraints; c != nil {
		keys := make([]string, len(c.Topology))
		for i, level := range c.Topology {
			keys[i] = level.Key
		}
		setTopology(g, keys)
	}
	rejectUnsupported(g, len(spec.ResourceClaims), nil)
	return nil
}
