// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"maps"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// With strict budgets (answer A12) nobody is evicted against a disruption budget. Violations are what losses are compared by
// first, and those that a budget protects are spared first, so where a search finds only sets that violate one there is no
// other; what remains is to refuse them.
//
// Rejected: to leave those out from the start that a budget protects when all of lower priority go. Of two pods of which a
// budget allows one, it refuses to evict either, or the less important.

// AllProtected is told when all that could go would go against a budget.
const AllProtected = heading + "disruption budgets protect pods that would have to go, and they are strict."

// strictly takes those candidates out of an answer whose victims a budget protects.
func strictly(a Answer) Answer {
	sound := a.Candidates[:0]
	for _, c := range a.Candidates {
		if c.Loss.Violations == 0 {
			sound = append(sound, c)
		}
	}
	if a.Candidates = sound; a.Verdict == Evict && a.Best.Loss.Violations > 0 {
		return Answer{Verdict: NotHelpful, Message: AllProtected, Nodes: a.Nodes, Tried: a.Tried}
	}
	return a
}

// Spend counts pods that are to be evicted against what budgets allow, each once and until the budget's object is another: the
// controller that keeps it has seen to it then.
func (f *Finder) Spend(s cluster.Snapshot, pods []*cluster.Pod) {
	b := &f.budgets
	b.follow(s)
	for _, p := range pods {
		for _, i := range b.about(p) {
			of := b.list[i].of
			if b.spent[of] == nil {
				b.charge(of, map[cluster.UID]bool{})
			}
			if !b.spent[of][p.UID] {
				b.spent[of][p.UID] = true
				b.list[i].allowed--
			}
		}
	}
}

// Refund takes back that a pod was to be evicted: it was not. Budgets allow again what was spent on it.
func (f *Finder) Refund(s cluster.Snapshot, uid cluster.UID) {
	b := &f.budgets
	b.follow(s)
	for i := range b.list {
		if spent := b.spent[b.list[i].of]; spent[uid] {
			delete(spent, uid)
			b.list[i].allowed++
		}
	}
}

// Left is what a budget allows, less what was spent, as of the last search or charge.
func (f *Finder) Left(o *policyv1.PodDisruptionBudget) int32 {
	return o.Status.DisruptionsAllowed - int32(len(f.budgets.spent[o]))
}

// ForQuestion is a Finder of its own for the same budgets with what was spent of them: what it finds and spends changes nothing.
func (f *Finder) ForQuestion() Finder {
	var q Finder
	for o, pods := range f.budgets.spent { // order: a map is made of a map
		q.budgets.charge(o, maps.Clone(pods))
	}
	return q
}
