// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Where disruption budgets are strict (preempt.Config.Strict), what a budget allows is spent with the evictions, before the
// controller that keeps the budgets says so: otherwise two preemptors in a row would both take the one that it allows. And who
// evicts nobody because of a budget is tried again when a budget allows more. Upstream's hints know no budgets, for they never
// stop anybody there.

// barredBy notes a pod for which nobody is evicted because of budgets, or forgets it.
func (e *Engine) barredBy(p record.PodRef, message string) {
	at := slices.Index(e.barred, p)
	switch barred := message == preempt.AllProtected && mutant != budgetsUnheard; {
	case barred && at < 0:
		if len(e.barred) > 2*len(e.pending) {
			e.barred = slices.DeleteFunc(e.barred, func(ref record.PodRef) bool { return e.pending[cluster.UID(ref.UID)] == nil })
		}
		e.barred = append(e.barred, p)
	case !barred && at >= 0:
		e.barred = slices.Delete(e.barred, at, at+1)
	}
}

// budgetChanged tries those again that a budget kept from evicting others, if it allows more than before. Either may be nil.
func (e *Engine) budgetChanged(was, is cluster.Object) {
	old, had := was.(*policyv1.PodDisruptionBudget)
	now, has := is.(*policyv1.PodDisruptionBudget)
	if len(e.barred) == 0 || !had && !has || had && has && now.Status.DisruptionsAllowed <= old.Status.DisruptionsAllowed {
		return
	}
	waits := e.barred
	e.barred = nil
	e.queue.Activate(waits)
}

// spend counts pods that are to be evicted against what budgets allow.
func (e *Engine) spend(prof *profile, victims []record.PodRef) {
	if prof == nil || prof.Preemption == nil || !prof.Preemption.Strict || mutant == nothingSpent {
		return
	}
	s := e.store.Snapshot()
	var pods []*cluster.Pod
	for _, ref := range victims {
		if p, _, _, there := s.PodOn(cluster.UID(ref.UID)); there {
			pods = append(pods, p)
		}
	}
	e.victims.Spend(s, pods)
}
