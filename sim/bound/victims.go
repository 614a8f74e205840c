// SPDX-License-Identifier: Apache-2.0

package bound

import "cmp"

// Victim is a pod that can be evicted from a node.
type Victim struct {
	Frees    []int64 // by resource
	Priority int32
	// Violates reports whether its disruption budget allows no eviction.
	Violates bool
}

// Loss is what evictions cost, compared in the order of the fields, as kube-scheduler compares nodes.
type Loss struct {
	Violations int
	Highest    int32 // priority of a victim
	Sum        int64 // of priorities, each counted from the lowest possible one, so that a victim always costs
	Victims    int
}

// Priorities returns the sum of the victims' priorities as they are.
func (l Loss) Priorities() int64 { return l.Sum - int64(l.Victims)<<31 }

// Compare compares what evictions cost. No victims cost least.
func (l Loss) Compare(other Loss) int {
	if l.Victims == 0 || other.Victims == 0 {
		return cmp.Compare(l.Victims, other.Victims)
	}
	return cmp.Or(cmp.Compare(l.Violations, other.Violations), cmp.Compare(l.Highest, other.Highest),
		cmp.Compare(l.Sum, other.Sum), cmp.Compare(l.Victims, other.Victims))
}

// with returns the loss with one more victim.
func (l Loss) with(v *Victim) Loss {
	if v.Violates {
		l.Violations++
	}
	if l.Victims == 0 || v.Priority > l.Highest {
		l.Highest = v.Priority
	}
	l.Sum += int64(v.Priority) + 1<<31
	l.Victims++
	return l
}

// LossOf returns what the eviction of victims costs.
func LossOf(victims []Victim) (l Loss) {
	for i := range victims {
		l = l.with(&victims[i])
	}
	return l
}

// LeastLoss returns the lowest cost of evictions from one node that free at least a deficit (bound B8, exact), and
// false if all victims free too little. It tries all subsets that cost less than the best one before: use it for up to
// about 20 victims.
func LeastLoss(victims []Victim, deficit []int64) (least Loss, possible bool) {
	free := make([]int64, len(deficit))
	var try func(i int, l Loss)
	try = func(i int, l Loss) {
		if possible && l.Compare(least) >= 0 {
			return
		}
		if fitsIn(deficit, free) {
			least, possible = l, true
			return
		}
		if i == len(victims) {
			return
		}
		for r, f := range victims[i].Frees {
			free[r] += f
		}
		try(i+1, l.with(&victims[i]))
		for r, f := range victims[i].Frees {
			free[r] -= f
		}
		try(i+1, l)
	}
	try(0, Loss{})
	return least, possible
}
