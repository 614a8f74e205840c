// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"cmp"
	"math"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/resource"
	"github.com/kumiki-scheduler/kumiki/record"
)

// units are those that may go in the search in hand, in the order in which they are spared: the first is the last to go.
type units struct {
	all  []unit
	pods []placed // of all units, unit by unit
	// going are the pods that are terminating.
	going []*cluster.Pod
	// kept are some of those that may not go, and why.
	kept []ConsideredUnit

	allowed, left []int32 // by budget: what it allows, and what is left of that in the count in hand
	guarded       []guarded
	turn          []int // space
	// huge tells that a pod holds more than sums are safe with.
	huge bool
}

// unit is a gang that goes whole, or a pod.
type unit struct {
	gang     cluster.GangKey
	lo, hi   int32 // in units.pods
	priority int32
	oldest   record.Time // the start of the pod that has run longest
	shielded bool        // some of its pods break a budget when all units go
	idle     bool        // nothing that it holds is where it would help
	guarded  []int       // those of its pods that budgets are about, in units.guarded
}

// placed is a pod on its row.
type placed struct {
	pod *cluster.Pod
	row cluster.NodeIdx
}

// gather finds the units that may go for a question.
func (us *units) gather(s cluster.Snapshot, q *UnitsQuestion, b *budgets) {
	*us = units{all: us.all[:0], pods: us.pods[:0], guarded: us.guarded, turn: us.turn, allowed: us.allowed, left: us.left}
	seen := map[cluster.GangKey]bool{} // a gang that goes whole -> it was met
	for n := range cluster.NodeIdx(s.Rows()) {
		s.EachPod(n, func(p *cluster.Pod, _ bool) {
			if p.Terminating && mutant != goingAgain {
				us.going = append(us.going, p)
				return
			}
			mark := q.Unit(p)
			switch {
			case mark.Whole == cluster.GangKey{}:
				us.alone(s, q, p, n, mark)
			case !seen[mark.Whole]:
				seen[mark.Whole] = true
				us.whole(s, q, mark.Whole)
			}
		})
	}
	us.guard(b)
	us.order()
}

// alone enters a pod that goes by itself.
func (us *units) alone(s cluster.Snapshot, q *UnitsQuestion, p *cluster.Pod, n cluster.NodeIdx, mark UnitMark) {
	if key, in := s.HeldGang(p.UID); q.Own != (cluster.GangKey{}) && in && key == q.Own && mutant != ownGangGoes {
		return
	}
	us.enter(q, unit{priority: mark.Priority, oldest: startOf(p)}, mark.Never, placed{p, n})
}

// whole enters a gang all of which goes.
func (us *units) whole(s cluster.Snapshot, q *UnitsQuestion, key cluster.GangKey) {
	if key == q.Own && mutant != ownGangGoes {
		return
	}
	u, never := unit{gang: key, oldest: notStarted}, ""
	var pods []placed
	for _, m := range s.GangMembers(key) {
		if m.Pod.Terminating && mutant != goingAgain || mutant == gangBroken && len(pods) > 0 && m.Row != pods[0].row {
			continue
		}
		mark := q.Unit(m.Pod)
		if never == "" && mark.Never != "" {
			never = "it only goes whole, and " + m.Pod.Name + " may not: " + mark.Never
		}
		u.priority = mark.Priority // that of the gang, the same for each
		u.oldest = min(u.oldest, startOf(m.Pod))
		pods = append(pods, placed{m.Pod, m.Row})
	}
	us.enter(q, u, never, pods...)
}

// enter keeps a unit among those that may go, or among those of which it is told why not.
func (us *units) enter(q *UnitsQuestion, u unit, never string, pods ...placed) {
	if mutant == neverGoes {
		never = ""
	}
	if never == "" && u.priority >= q.Power && (mutant != unitEquals || u.priority > q.Power) {
		never = "it is of no lower priority"
	}
	if never != "" {
		if len(us.kept) < MostConsidered {
			us.kept = append(us.kept, ConsideredUnit{Gang: u.gang, Pod: pods[0].pod, Pods: len(pods), Priority: u.priority, Why: never})
		}
		return
	}
	u.lo = int32(len(us.pods))
	for _, pl := range pods {
		us.huge = us.huge || tooMuch(&pl.pod.Spec.Held)
	}
	us.pods = append(us.pods, pods...)
	u.hi = int32(len(us.pods))
	us.all = append(us.all, u)
}

// notGoing takes those out of the terminating pods that are not to be counted on.
func (us *units) notGoing(q *UnitsQuestion) (stuck []*cluster.Pod) {
	if q.Stuck == nil {
		return nil
	}
	us.going = slices.DeleteFunc(us.going, func(p *cluster.Pod) bool {
		is := q.Stuck(p)
		if is {
			stuck = append(stuck, p)
		}
		return is
	})
	return stuck
}

// tooMuch tells whether amounts are more than sums are safe with.
func tooMuch(held *resource.Amounts) bool {
	if max(held.MilliCPU, held.Memory, held.Ephemeral) > safeAmount {
		return true
	}
	for i := range held.Scalars {
		if held.Scalars[i].Value > safeAmount {
			return true
		}
	}
	return false
}

// order sorts the units as they are spared: those first whose eviction breaks a budget when all go, then the most important:
// those of higher priority, of these the larger ones, of these those that have run longest.
func (us *units) order() {
	if len(us.guarded) > 0 {
		each := map[int]int{} // unit -> pods
		us.violations(us.every(), each)
		for i := range us.all {
			us.all[i].shielded = each[i] > 0
		}
	}
	ranks := make([]rank, len(us.all))
	for i := range ranks {
		ranks[i] = us.rank(i)
	}
	slices.SortFunc(ranks, func(a, b rank) int {
		if d := cmp.Compare(a.key, b.key); d != 0 {
			return d
		}
		if d := cmp.Compare(a.oldest, b.oldest); d != 0 {
			return d
		}
		return byName(us.pods[us.all[a.unit].lo].pod, us.pods[us.all[b.unit].lo].pod)
	})
	sorted, now := make([]unit, len(ranks)), make([]int32, len(ranks))
	for to, r := range ranks {
		sorted[to], now[r.unit] = us.all[r.unit], int32(to)
	}
	us.all = sorted
	for i := range us.guarded {
		us.guarded[i].unit = now[us.guarded[i].unit]
	}
}

// rank is where a unit stands in the order, but for names.
type rank struct {
	key    uint64
	oldest record.Time
	unit   int32
}

// rank puts what comes first into the upper bits: whether it is shielded, its priority, its size.
func (us *units) rank(i int) rank {
	u := &us.all[i]
	key := uint64(math.MaxInt32-int64(u.priority))<<31 | uint64(math.MaxInt32-(u.hi-u.lo))
	if !u.shielded {
		key |= 1 << 63
	}
	return rank{key, u.oldest, int32(i)}
}

// every lists all units.
func (us *units) every() []int {
	list := make([]int, len(us.all))
	for i := range list {
		list[i] = i
	}
	return list
}

// victims words a list of units, the most important first.
func (us *units) victims(list []int) (victims []VictimUnit) {
	each := map[int]int{} // unit -> pods
	us.violations(list, each)
	for _, i := range list {
		u := &us.all[i]
		v := VictimUnit{Gang: u.gang, Priority: u.priority, Violations: each[i]}
		for _, pl := range us.pods[u.lo:u.hi] {
			v.Pods = append(v.Pods, pl.pod)
		}
		victims = append(victims, v)
	}
	slices.SortStableFunc(victims, func(a, b VictimUnit) int { return cmp.Compare(b.Priority, a.Priority) })
	return victims
}
