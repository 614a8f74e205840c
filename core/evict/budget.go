// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"maps"
	"reflect"
	"slices"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/preempt/units"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Where disruption budgets are strict (preempt.Config.Strict), what a budget allows is spent with the evictions,
// before the controller that keeps the budgets says so: otherwise two preemptors in a row would both take the one that
// it allows. An eviction that fails gives back what was spent on pods that stay. A preemptor that evicts no pods
// because of a budget is tried again when budgets may allow more: one changes or goes, labels of a pod change, or
// something that was spent is given back. Upstream's hints know no budgets, because budgets never stop a preemption
// there.

// charge is an eviction that budgets were charged with and that has no answer yet.
type charge struct {
	preemptor cluster.UID // kept
	decision  uint64      // kept
}

// budgets is what strict disruption budgets allow, and which preemptors they bar.
type budgets struct {
	queue  *queue.Queue  // derived: given to New
	finder *units.Finder // derived: given to New
	// barred are pods, or the first ones of gangs, that evict no pods because of strict budgets.
	barred []record.PodRef // kept
	// charges are the victims that budgets were charged with. An entry is there until the eviction has its answer.
	// Invariant: no list is empty.
	charges map[charge][]cluster.UID // kept; eviction -> victims
}

// note notes a pod for which no pods are evicted because of budgets, or forgets it, by the message of its search.
// waits reports whether a pod still waits, of about the given number.
func (b *budgets) note(p record.PodRef, message string, pending int, waits func(cluster.UID) bool) {
	at := slices.Index(b.barred, p)
	switch barred := message == preempt.AllProtected; {
	case barred && at < 0:
		if len(b.barred) > 2*pending {
			b.barred = slices.DeleteFunc(b.barred, func(ref record.PodRef) bool { return !waits(cluster.UID(ref.UID)) })
		}
		b.barred = append(b.barred, p)
	case !barred && at >= 0:
		b.barred = slices.Delete(b.barred, at, at+1)
	}
}

// wake tries the pods again that budgets kept from evicting others.
func (b *budgets) wake() {
	waits := b.barred
	b.barred = nil
	if len(waits) > 0 {
		b.queue.Activate(waits)
	}
}

// changed follows a change of an object. Either version may be nil.
func (b *budgets) changed(was, is cluster.Object) {
	old, had := was.(*policyv1.PodDisruptionBudget)
	now, has := is.(*policyv1.PodDisruptionBudget)
	switch {
	case !had: // one budget more does not allow more
	case !has, now.Status.DisruptionsAllowed > old.Status.DisruptionsAllowed:
		b.wake()
	case now.Status.DisruptionsAllowed > b.finder.Budgets.Left(old): // what was spent is forgotten
		b.wake()
	case !reflect.DeepEqual(now.Spec.Selector, old.Spec.Selector),
		!maps.Equal(now.Status.DisruptedPods, old.Status.DisruptedPods):
		b.wake()
	}
}

// relabelled follows a change of a bound pod: budgets may protect it no more.
func (b *budgets) relabelled(old, p *cluster.Pod) {
	if len(b.barred) > 0 && old.Spec != p.Spec && !maps.Equal(old.Spec.Labels, p.Spec.Labels) {
		b.wake()
	}
}

// spend counts pods that are to be evicted against what budgets allow.
func (b *budgets) spend(s cluster.Snapshot, by charge, victims []record.PodRef) {
	if len(victims) == 0 {
		return
	}
	var pods []*cluster.Pod
	for _, ref := range victims {
		if p, _, _, there := s.PodOn(cluster.UID(ref.UID)); there {
			pods = append(pods, p)
			b.charges[by] = append(b.charges[by], p.UID)
		}
	}
	b.finder.Budgets.Spend(s, pods)
}

// settle ends a charge whose request succeeded.
func (b *budgets) settle(by charge) { delete(b.charges, by) }

// refund ends a charge whose request failed: what was spent on pods that stay is free again.
func (b *budgets) refund(s cluster.Snapshot, by charge) {
	pods := b.charges[by]
	delete(b.charges, by)
	again := false
	for _, uid := range pods {
		if stays(s, uid) {
			b.finder.Budgets.Refund(s, uid)
			again = true
		}
	}
	if again {
		b.wake()
	}
}
