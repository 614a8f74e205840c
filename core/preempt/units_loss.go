// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"cmp"
	"math"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// Compare is negative when l is the smaller loss.
func (l UnitsLoss) Compare(other UnitsLoss) int {

	return cmp.Or(cmp.Compare(l.Violations, other.Violations), cmp.Compare(l.Highest, other.Highest), cmp.Compare(l.Units, other.Units),
		cmp.Compare(l.Pods, other.Pods), cmp.Compare(other.Oldest, l.Oldest))
}

// noLoss is what no evictions cost.
func noLoss() UnitsLoss { return UnitsLoss{Highest: math.MinInt32, Oldest: notStarted} }

// add counts a unit but for its violations.
func (l *UnitsLoss) add(u *unit) {
	l.Units++
	l.Pods += int(u.hi - u.lo)
	l.Highest = max(l.Highest, u.priority)
	l.Oldest = min(l.Oldest, u.oldest)
}

// loss is what it costs to evict units.
func (us *units) loss(list []int) UnitsLoss {
	l := noLoss()
	for _, i := range list {
		l.add(&us.all[i])
	}
	l.Violations = us.violations(list, nil)
	return l
}

// guarded is a pod that disruption budgets are about.
type guarded struct {
	cell
	unit int32
	by   []int // index in budgets.list
}

// guard notes which pods of the units budgets are about, the most important first.
func (us *units) guard(b *budgets) {
	us.allowed, us.guarded = us.allowed[:0], us.guarded[:0]
	for i := range b.list {
		us.allowed = append(us.allowed, b.list[i].allowed)
	}
	if len(b.list) == 0 {
		return
	}
	for i := range us.all {
		u := &us.all[i]
		for _, pl := range us.pods[u.lo:u.hi] {
			var by []int
			for _, at := range b.about(pl.pod) {
				if _, granted := b.list[at].disrupted[pl.pod.Name]; !granted {
					by = append(by, at)
				}
			}
			if len(by) > 0 {
				us.guarded = append(us.guarded, guarded{cell{pod: pl.pod, priority: pl.pod.Spec.Priority, start: startOf(pl.pod)}, int32(i), by})
			}
		}
	}
	slices.SortFunc(us.guarded, func(a, b guarded) int {
		if d := moreImportant(a.cell, b.cell); d != 0 {
			return d
		}
		return byName(a.pod, b.pod)
	})
	for at := range us.guarded {
		u := &us.all[us.guarded[at].unit]
		u.guarded = append(u.guarded, at)
	}
}

// violations counts the pods whose eviction goes beyond what a budget allows when all units of a list go: each budget
// grants its evictions to the most important pods it is about (upstream: filterPodsWithPDBViolation, for one node). The
// count by unit is left in each, if it is not nil. One more unit never makes it less.
func (us *units) violations(list []int, each map[int]int) (total int) {
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

// byName orders pods for good.
func byName(a, b *cluster.Pod) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}
