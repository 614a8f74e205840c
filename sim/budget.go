// SPDX-License-Identifier: Apache-2.0

package sim

import (
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// budget is a PodDisruptionBudget with the state of its controller.
type budget struct {
	object policyv1.PodDisruptionBudget
	match  labels.Selector
	dirty  bool
}

// AddBudget creates a PodDisruptionBudget. Its minAvailable or maxUnavailable must be a number.
func (w *World) AddBudget(b policyv1.PodDisruptionBudget) error {
	match, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	if err != nil {
		return err
	}
	one := &budget{object: b, match: match}
	w.budgets = append(w.budgets, one)
	w.updateBudget(one)
	return nil
}

func (b *budget) covers(p *Pod) bool {
	return b.object.Namespace == p.Record.Namespace && b.match.Matches(p.Template.labels)
}

// healthChanged lets the disruption controller see that a pod runs, terminates or is gone.
func (w *World) healthChanged(p *Pod) {
	for _, b := range w.budgets {
		if b.dirty || !b.covers(p) {
			continue
		}
		b.dirty = true
		w.After(w.setup.Model.Controller, func() {
			b.dirty = false
			w.updateBudget(b)
		})
	}
}

// updateBudget computes the status of a budget from its pods, and publishes it. A pod is healthy if it runs and does
// not terminate. With maxUnavailable, the pods that exist are the expected ones, at most as many as ever existed.
func (w *World) updateBudget(b *budget) {
	var healthy, there int32
	for _, n := range w.order {
		for _, p := range n.pods {
			if b.covers(p) && !p.Record.Terminating && p.Started >= 0 && !n.failed {
				healthy++
			}
		}
	}
	for _, p := range w.pods { // order: a count
		if b.covers(p) {
			there++
		}
	}
	st := &b.object.Status
	st.CurrentHealthy, st.ExpectedPods = healthy, max(st.ExpectedPods, there)
	switch {
	case b.object.Spec.MinAvailable != nil:
		st.DesiredHealthy = b.object.Spec.MinAvailable.IntVal
	case b.object.Spec.MaxUnavailable != nil:
		st.DesiredHealthy = max(0, st.ExpectedPods-b.object.Spec.MaxUnavailable.IntVal)
	}
	st.DisruptionsAllowed = max(0, healthy-st.DesiredHealthy)
	copied := b.object
	w.SetObject(&copied)
}

// takeBudget is the eviction API: it reports whether all budgets of a pod allow its eviction, and counts it.
func (w *World) takeBudget(p *Pod) bool {
	for _, b := range w.budgets {
		if b.covers(p) && b.object.Status.DisruptionsAllowed < 1 {
			return false
		}
	}
	for _, b := range w.budgets {
		if b.covers(p) {
			b.object.Status.DisruptionsAllowed--
		}
	}
	return true
}
