// SPDX-License-Identifier: Apache-2.0

package units

import (
	"cmp"
	"math"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/preempt/victim"
	"github.com/kumiki-scheduler/kumiki/record"
)

// gather collects the units that may be evicted for a question.
func (us *candidates) gather(s cluster.Snapshot, q *Question, ur *index, b *victim.Budgets) {
	us.reset()
	own := int32(noGang)
	if id, is := ur.ids[q.Own]; is {
		own = id
	}
	seen := make([]bool, len(ur.gangs)) // id of a gang that is evicted whole -> it was visited
	for n := range ur.rows {
		row := &ur.rows[n]
		us.terminating = append(us.terminating, row.terminating...)
		some := own != noGang && slices.Contains(row.gangs, own) // pods of the preemptor's gang are here
		for i := range row.pods {
			c := &row.pods[i]
			if some {
				if key, in := s.HeldGang(c.Pod.UID); in && key == q.Own {
					continue
				}
			}
			never := ""
			if q.Never != nil {
				never = q.Never(c.Pod)
			}
			u := unit{priority: c.Priority, oldest: c.Start}
			if q.Agreed != nil && q.Agreed(c.Pod) {
				u.priority, u.agreed = lowestPriority, true
			}
			us.enter(q, u, never, podAt{c.Pod, cluster.NodeIdx(n)})
		}
		for i := range row.parts {
			if id := row.parts[i].gang; id != own && !seen[id] {
				seen[id] = true
				us.whole(q, ur, id)
			}
		}
	}
	us.guard(b)
	us.order()
}

// whole adds a gang that is evicted whole.
func (us *candidates) whole(q *Question, ur *index, id int32) {
	g, pods := &ur.gangs[id], ur.live(id)
	us.enter(q, unit{gang: g.key, priority: g.priority, oldest: g.oldest}, whyGangStays(q, pods), goesWith(pods)...)
}

// whyGangStays returns why a gang that is evicted whole must not be evicted: one of its members must not. It is empty
// if it may.
func whyGangStays(q *Question, pods []podAt) string {
	if q.Never == nil {
		return ""
	}
	for _, pl := range pods {
		if why := q.Never(pl.pod); why != "" {
			return "it only goes whole, and " + pl.pod.Name + " may not: " + why
		}
	}
	return ""
}

// goesWith returns the members of a gang that are evicted together: all.
func goesWith(pods []podAt) []podAt {
	return pods
}

// enter adds a unit to those that may be evicted, or to those that may not, with the reason.
func (us *candidates) enter(q *Question, u unit, never string, pods ...podAt) {
	if never = whyStays(q, u.priority, never); never != "" {
		if len(us.excluded) < MaxConsidered {
			us.excluded = append(us.excluded, Considered{Gang: u.gang, Pod: pods[0].pod, Pods: len(pods),
				Priority: u.priority, Why: never})
		}
		return
	}
	u.lo = int32(len(us.pods))
	for _, pl := range pods {
		us.tooLarge = us.tooLarge || victim.TooLarge(&pl.pod.Spec.Held)
	}
	us.pods = append(us.pods, pods...)
	u.hi = int32(len(us.pods))
	us.all = append(us.all, u)
}

// dropStuck removes the terminating pods whose capacity must not be counted on, and returns them.
func (us *candidates) dropStuck(q *Question) (stuck []*cluster.Pod) {
	if q.Stuck == nil {
		return nil
	}
	us.terminating = slices.DeleteFunc(us.terminating, func(p *cluster.Pod) bool {
		is := q.Stuck(p)
		if is {
			stuck = append(stuck, p)
		}
		return is
	})
	return stuck
}

// whyStays returns why a unit must not be evicted, given what Question.Never returned and its priority; empty if it
// may.
func whyStays(q *Question, priority int32, never string) string {
	if never == "" && priority >= q.Priority {
		return "it is of no lower priority"
	}
	return never
}

// order sorts the units in the order in which they are spared: those first whose eviction violates a budget if all
// are evicted, then by priority, then the larger ones, then those with the earliest start.
func (us *candidates) order() {
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
		return victim.CompareNames(us.pods[us.all[a.unit].lo].pod, us.pods[us.all[b.unit].lo].pod)
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

// rank is the position of a unit in the order, except for names.
type rank struct {
	key    uint64
	oldest record.Time
	unit   int32
}

// rank encodes the order in the upper bits first: budget violations, priority, size.
func (us *candidates) rank(i int) rank {
	u := &us.all[i]
	key := uint64(math.MaxInt32-int64(u.priority))<<31 | uint64(math.MaxInt32-(u.hi-u.lo))
	if !u.shielded {
		key |= 1 << 63
	}
	return rank{key, u.oldest, int32(i)}
}

// victims returns the units of a list, the most important first.
func (us *candidates) victims(list []int) (victims []Victim) {
	each := map[int]int{} // unit -> pods
	us.violations(list, each)
	for _, i := range list {
		u := &us.all[i]
		v := Victim{Gang: u.gang, Priority: u.priority, Violations: each[i], Agreed: u.agreed}
		if u.agreed {
			v.Priority = us.pods[u.lo].pod.Spec.Priority
		}
		for _, pl := range us.pods[u.lo:u.hi] {
			v.Pods = append(v.Pods, pl.pod)
		}
		victims = append(victims, v)
	}
	slices.SortStableFunc(victims, func(a, b Victim) int { return cmp.Compare(b.Priority, a.Priority) })
	return victims
}
