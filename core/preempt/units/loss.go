// SPDX-License-Identifier: Apache-2.0

package units

import (
	"cmp"
	"math"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/preempt/victim"
)

// Compare is negative if l is the smaller loss.
func (l Loss) Compare(other Loss) int {
	return cmp.Or(cmp.Compare(l.Violations, other.Violations), cmp.Compare(l.Highest, other.Highest),
		cmp.Compare(l.Units, other.Units), cmp.Compare(l.Pods, other.Pods), cmp.Compare(other.Oldest, l.Oldest))
}

// noLoss is the loss of no evictions.
func noLoss() Loss { return Loss{Highest: math.MinInt32, Oldest: victim.NotStarted} }

// add counts a unit, except for its violations.
func (l *Loss) add(u *unit) {
	l.Units++
	l.Pods += int(u.hi - u.lo)
	l.Highest = max(l.Highest, u.priority)
	l.Oldest = min(l.Oldest, u.oldest)
}

// loss returns the loss of evicting units.
func (us *candidates) loss(list []int) Loss {
	l := noLoss()
	for _, i := range list {
		l.add(&us.all[i])
	}
	l.Violations = us.violations(list, nil)
	return l
}

// guard lists the pods of the units that budgets select, the most important first.
func (us *candidates) guard(b *victim.Budgets) {
	us.allowed, us.guarded = us.allowed[:0], us.guarded[:0]
	for i := range b.Len() {
		us.allowed = append(us.allowed, b.Allows(i))
	}
	if b.Len() == 0 {
		return
	}
	for i := range us.all {
		u := &us.all[i]
		for _, pl := range us.pods[u.lo:u.hi] {
			var by []int
			for _, at := range b.About(pl.pod) {
				if !b.Granted(at, pl.pod) {
					by = append(by, at)
				}
			}
			if len(by) > 0 {
				us.guarded = append(us.guarded, guarded{victim.NewEntry(pl.pod), int32(i), by})
			}
		}
	}
	slices.SortFunc(us.guarded, func(a, b guarded) int {
		if d := victim.CompareImportance(a.Entry, b.Entry); d != 0 {
			return d
		}
		return victim.CompareNames(a.Pod, b.Pod)
	})
	for at := range us.guarded {
		u := &us.all[us.guarded[at].unit]
		u.guarded = append(u.guarded, at)
	}
}

// violations counts the pods whose eviction exceeds what a budget allows if all units of a list are evicted. Each
// budget grants its evictions to the most important pods that it selects (upstream: filterPodsWithPDBViolation, for
// one node). If each is not nil, it receives the count by unit. A larger list never has a smaller count.
func (us *candidates) violations(list []int, each map[int]int) (total int) {
	if len(us.guarded) == 0 {
		return 0
	}
	us.turn = us.turn[:0]
	for _, i := range list {
		us.turn = append(us.turn, us.all[i].guarded...)
	}
	slices.Sort(us.turn)
	us.left = append(us.left[:0], us.allowed...)
	for _, at := range us.turn {
		g := &us.guarded[at]
		violated := false
		for _, of := range g.by {
			us.left[of]--
			violated = violated || us.left[of] < 0
		}
		if violated {
			total++
			if each != nil {
				each[int(g.unit)]++
			}
		}
	}
	return total
}
