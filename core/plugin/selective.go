// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// Selective is a PodFilter that can tell which pods of a node it looks at.
type Selective interface {
	PodFilter
	// Matters tells whether it can make a difference to the verdict on a node that other, which is on it, is there or not.
	// It says the same of all pods that have spec and namespace in common and are all being deleted or all not.
	Matters(other *cluster.Pod) bool
}

// Matters is for a filter that looks at nothing of a node's pods: at the node alone, or at volumes that are not theirs.
func (cordonFilter) Matters(*cluster.Pod) bool { return false }

// Matters is as for cordonFilter.
func (nameFilter) Matters(*cluster.Pod) bool { return false }

// Matters is as for cordonFilter.
func (*taintFilter) Matters(*cluster.Pod) bool { return false }

// Matters is as for cordonFilter.
func (*affinityFilter) Matters(*cluster.Pod) bool { return false }

// Matters is as for cordonFilter.
func (featureFilter) Matters(*cluster.Pod) bool { return false }

// Matters is as for cordonFilter.
func (*zoneFilter) Matters(*cluster.Pod) bool { return false }

// Matters tells whether other takes one of the ports.
func (f portFilter) Matters(other *cluster.Pod) bool { return collide(f.want, other.Spec.Ports) }

// Matters tells whether other has volumes.
func (*restrictionFilter) Matters(other *cluster.Pod) bool { return len(other.Spec.Volumes) > 0 }

// Matters tells whether a constraint is about other.
func (f *spreadFilter) Matters(other *cluster.Pod) bool {
	return other.Namespace == f.namespace && slices.ContainsFunc(f.plan.hard, func(c spreadConstraint) bool {
		return c.selector.Matches(labels.Set(other.Spec.Labels))
	})
}

// Matters tells whether a term of the pod is about other, or an anti-affinity term of other about the pod.
func (f *podAffinityFilter) Matters(other *cluster.Pod) bool {
	if f.near != nil && f.near.Counts(other) {
		return true
	}
	if slices.ContainsFunc(f.far, func(t farTerm) bool { return t.pods.Counts(other) }) {
		return true
	}
	return slices.ContainsFunc(f.pl.own(other).repel, func(t cluster.PodTerm) bool {
		return t.Matches(f.pod.Namespace, f.labels, f.pod.Spec.Labels)
	})
}
