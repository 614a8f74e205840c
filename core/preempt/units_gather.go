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

// reset forgets the units of the search before.
func (us *units) reset() {
	*us = units{all: us.all[:0], pods: us.pods[:0], guarded: us.guarded[:0], turn: us.turn, allowed: us.allowed, left: us.left}
}

// gather finds the units that may go for a question.
func (us *units) gather(s cluster.Snapshot, q *UnitsQuestion, ur *unitRows, b *budgets) {
	us.reset()
	own := int32(noGang)
	if id, is := ur.ids[q.Own]; is {
		own = id
	}
	seen := make([]bool, len(ur.gangs)) // id of a gang that goes whole -> it was met
	for n := range ur.rows {
		row := &ur.rows[n]
		us.going = append(us.going, row.going...)
		some := own != noGang && slices.Contains(row.gangs, own) // of the preemptor's own
		for i := range row.alone {
			c := &row.alone[i]
			if some {
				if key, in := s.HeldGang(c.pod.UID); in && key == q.Own {
					continue
				}
			}
			never := ""
			if q.Never != nil {
				never = q.Never(c.pod)
			}
			us.enter(q, unit{priority: c.priority, oldest: c.start}, never, placed{c.pod, cluster.NodeIdx(n)})
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

// noGang is the id of none.
const noGang = -1

// whole enters a gang all of which goes.
func (us *units) whole(q *UnitsQuestion, ur *unitRows, id int32) {
	g, pods := &ur.gangs[id], ur.live(id)
	us.enter(q, unit{gang: g.key, priority: g.priority, oldest: g.oldest}, keeps(q, pods), goesWith(pods)...)
}

// keeps is why a gang that goes whole may not go: one of its members may not. It is empty if it may.
func keeps(q *UnitsQuestion, pods []placed) string {
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

// goesWith are the members of a gang that go with each other: all.
func goesWith(pods []placed) []placed {
	return pods
}

// enter keeps a unit among those that may go, or among those of which it is told why not.
func (us *units) enter(q *UnitsQuestion, u unit, never string, pods ...placed) {
	if never = stays(q, u.priority, never); never != "" {
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

// stays is why a unit may not go, from what was said of its pods and its priority; empty if it may.
func stays(q *UnitsQuestion, priority int32, never string) string {
	if never == "" && priority >= q.Power {
		return "it is of no lower priority"
	}
	return never
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
