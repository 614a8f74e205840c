// SPDX-License-Identifier: Apache-2.0

package victim

import (
	"cmp"
	"slices"

	policyv1 "k8s.io/api/policy/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// Spent is what was spent of one budget: the pods whose eviction was requested since its object changed last.
type Spent struct {
	Budget cluster.ObjectKey
	Pods   []cluster.UID
}

// Spent returns what was spent of the budgets that the store has, in no order before SortSpent. The rest of a Budgets
// follows from the store.
func (b *Budgets) Spent(s cluster.Snapshot) (list []Spent) {
	for o, pods := range b.spent { // order: SortSpent brings them in order
		if now, ok := cluster.Find[*policyv1.PodDisruptionBudget](s, o.Namespace, o.Name); !ok || now != o {
			continue // the next call of Follow forgets it
		}
		sp := Spent{Budget: cluster.KeyOf(o)}
		for uid := range pods { // order: SortSpent brings them in order
			sp.Pods = append(sp.Pods, uid)
		}
		list = append(list, sp)
	}
	return list
}

// SortSpent brings what Spent returned into an order.
func SortSpent(list []Spent) {
	for i := range list {
		slices.Sort(list[i].Pods)
	}
	slices.SortFunc(list, func(a, b Spent) int {
		return cmp.Or(cmp.Compare(a.Budget.Namespace, b.Budget.Namespace), cmp.Compare(a.Budget.Name, b.Budget.Name))
	})
}

// Restore gives new Budgets what Spent returned of others.
func (b *Budgets) Restore(s cluster.Snapshot, list []Spent) {
	for _, sp := range list {
		o, ok := cluster.Find[*policyv1.PodDisruptionBudget](s, sp.Budget.Namespace, sp.Budget.Name)
		if !ok {
			continue
		}
		pods := map[cluster.UID]bool{}
		for _, uid := range sp.Pods {
			pods[uid] = true
		}
		b.charge(o, pods)
	}
}
