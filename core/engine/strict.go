// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"maps"
	"reflect"
	"slices"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Where disruption budgets are strict (preempt.Config.Strict), what a budget allows is spent with the evictions, before the
// controller that keeps the budgets says so: otherwise two preemptors in a row would both take the one that it allows. An
// eviction that fails gives back what was spent on pods that stay. A preemptor that evicts nobody because of a budget is tried
// again when budgets may allow more: one changes or goes, labels of a pod change, or something that was spent is given back.
// Upstream's hints know no budgets, because budgets never stop a preemption there.

// charged is an eviction that budgets were charged with and that has no answer yet.
type charged struct {
	preemptor cluster.UID
	decision  uint64
}

// barredBy notes a pod for which nobody is evicted because of budgets, or forgets it.
func (e *Engine) barredBy(p record.PodRef, message string) {
	at := slices.Index(e.barred, p)
	switch barred := message == preempt.AllProtected; {
	case barred && at < 0:
		if len(e.barred) > 2*len(e.pending) {
			e.barred = slices.DeleteFunc(e.barred, func(ref record.PodRef) bool { return e.pending[cluster.UID(ref.UID)] == nil })
		}
		e.barred = append(e.barred, p)
	case !barred && at >= 0:
		e.barred = slices.Delete(e.barred, at, at+1)
	}
}

// wakeBarred tries those again that budgets kept from evicting others.
func (e *Engine) wakeBarred() {
	waits := e.barred
	e.barred = nil
	if len(waits) > 0 {
		e.queue.Activate(waits)
	}
}

// budgetChanged follows a change of an object. Either may be nil.
func (e *Engine) budgetChanged(was, is cluster.Object) {
	old, had := was.(*policyv1.PodDisruptionBudget)
	now, has := is.(*policyv1.PodDisruptionBudget)
	switch {
	case !had: // one budget more does not allow more
	case !has, now.Status.DisruptionsAllowed > old.Status.DisruptionsAllowed:
		e.wakeBarred()
	case now.Status.DisruptionsAllowed > e.victims.Left(old): // what was spent is forgotten
		e.wakeBarred()
	case !reflect.DeepEqual(now.Spec.Selector, old.Spec.Selector), !maps.Equal(now.Status.DisruptedPods, old.Status.DisruptedPods):
		e.wakeBarred()
	}
}

// relabelled follows a change of a bound pod: budgets may protect it no more.
func (e *Engine) relabelled(old, p *cluster.Pod) {
	if len(e.barred) > 0 && old.Spec != p.Spec && !maps.Equal(old.Spec.Labels, p.Spec.Labels) {
		e.wakeBarred()
	}
}

// spend counts pods that are to be evicted against what budgets allow.
func (e *Engine) spend(prof *profile, by charged, victims []record.PodRef) {
	if prof == nil || prof.Preemption == nil || !prof.Preemption.Strict || len(victims) == 0 {
		return
	}
	s := e.store.Snapshot()
	var pods []*cluster.Pod
	for _, ref := range victims {
		if p, _, _, there := s.PodOn(cluster.UID(ref.UID)); there {
			pods = append(pods, p)
			e.charges[by] = append(e.charges[by], p.UID)
		}
	}
	e.victims.Spend(s, pods)
}

// refund follows the answer to an eviction: what was spent on pods that stay is free again.
func (e *Engine) refund(done EvictDone) {
	by := charged{cluster.UID(done.For.UID), done.Decision}
	pods := e.charges[by]
	delete(e.charges, by)
	if done.Message == "" {
		return
	}
	again := false
	for _, uid := range pods {
		if e.stays(uid) {
			e.victims.Refund(e.store.Snapshot(), uid)
			again = true
		}
	}
	if again {
		e.wakeBarred()
	}
}
