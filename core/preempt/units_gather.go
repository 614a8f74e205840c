// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"cmp"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
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
}

// unit is a gang that goes whole, or a pod.
type unit struct {
	gang     cluster.GangKey
	lo, hi   int32 // in units.pods
	priority int32
	oldest   record.Time // the start of the pod that has run longest
	shielded bool        // some of its pods break a budget when all units go
}

// placed is a pod on its row.
type placed struct {
	pod *cluster.Pod
	row cluster.NodeIdx
}

// gather finds the units that may go for a question.
func (us *units) gather(s cluster.Snapshot, q *UnitsQuestion, b *budgets) {
	*us = units{all: us.all[:0], pods: us.pods[:0], guarded: us.guarded[:0], allowed: us.allowed, left: us.left}
	seen := map[cluster.GangKey]bool{} // a gang that goes whole -> it was met
	for n := range cluster.NodeIdx(s.Rows()) {
		s.EachPod(n, func(p *cluster.Pod, _ bool) {
			if p.Terminating {
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
	if key, in := s.HeldGang(p.UID); q.Own != (cluster.GangKey{}) && in && key == q.Own {
		return
	}
	us.enter(q, unit{priority: mark.Priority, oldest: startOf(p)}, mark.Never, placed{p, n})
}

// whole enters a gang all of which goes.
func (us *units) whole(s cluster.Snapshot, q *UnitsQuestion, key cluster.GangKey) {
	if key == q.Own {
		return
	}
	u, never := unit{gang: key, oldest: notStarted}, ""
	var pods []placed
	for _, m := range s.GangMembers(key) {
		if m.Pod.Terminating {
			continue
		}
		mark := q.Unit(m.Pod)
		if never == "" && mark.Never != "" {
			never = "it only goes whole, and " + m.Pod.Name + " may not: " + mark.Never
		}
		if len(pods) == 0 || mark.Priority > u.priority {
			u.priority = mark.Priority
		}
		u.oldest = min(u.oldest, startOf(m.Pod))
		pods = append(pods, placed{m.Pod, m.Row})
	}
	us.enter(q, u, never, pods...)
}

// enter keeps a unit among those that may go, or among those of which it is told why not.
func (us *units) enter(q *UnitsQuestion, u unit, never string, pods ...placed) {
	if never == "" && u.priority >= q.Power {
		never = "it is of no lower priority"
	}
	if never != "" {
		if len(us.kept) < MostConsidered {
			us.kept = append(us.kept, ConsideredUnit{Gang: u.gang, Pod: pods[0].pod, Pods: len(pods), Priority: u.priority, Why: never})
		}
		return
	}
	u.lo = int32(len(us.pods))
	us.pods = append(us.pods, pods...)
	u.hi = int32(len(us.pods))
	us.all = append(us.all, u)
}

// order sorts the units as they are spared: those first whose eviction breaks a budget when all go, then the most important:
// those of higher priority, of these the larger ones, of these those that have run longest.
func (us *units) order() {
	if len(us.guarded) > 0 {
		in, each := make([]bool, len(us.all)), make([]int, len(us.all))
		for i := range in {
			in[i] = true
		}
		us.violations(in, each)
		for i := range each {
			us.all[i].shielded = each[i] > 0
		}
	}
	at := make([]int32, len(us.all)) // new position -> old
	for i := range at {
		at[i] = int32(i)
	}
	slices.SortFunc(at, func(i, j int32) int {
		a, b := &us.all[i], &us.all[j]
		if a.shielded != b.shielded {
			if a.shielded {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(b.hi-b.lo, a.hi-a.lo), cmp.Compare(a.oldest, b.oldest),
			byName(us.pods[a.lo].pod, us.pods[b.lo].pod))
	})
	sorted, now := make([]unit, len(at)), make([]int32, len(at))
	for to, from := range at {
		sorted[to], now[from] = us.all[from], int32(to)
	}
	us.all = sorted
	for i := range us.guarded {
		us.guarded[i].unit = now[us.guarded[i].unit]
	}
}

// victims lists the units that in says, the most important first.
func (us *units) victims(in []bool) (list []VictimUnit) {
	each := make([]int, len(us.all))
	us.violations(in, each)
	for i := range us.all {
		if !in[i] {
			continue
		}
		u := &us.all[i]
		v := VictimUnit{Gang: u.gang, Priority: u.priority, Violations: each[i]}
		for _, pl := range us.pods[u.lo:u.hi] {
			v.Pods = append(v.Pods, pl.pod)
		}
		list = append(list, v)
	}
	slices.SortStableFunc(list, func(a, b VictimUnit) int { return cmp.Compare(b.Priority, a.Priority) })
	return list
}
