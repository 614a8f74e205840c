// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"math"
	"slices"
	"sort"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// leads are a heap by before.
type leads []lead

func (q leads) order() {
	for i := len(q)/2 - 1; i >= 0; i-- {
		q.sink(i)
	}
}

func (q leads) sink(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(q); child++ {
			if q[child].before(&q[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		q[i], q[least] = q[least], q[i]
		i = least
	}
}

// pop takes the first lead out.
func (q *leads) pop() lead {
	first, last := (*q)[0], len(*q)-1
	(*q)[0] = (*q)[last]
	*q = (*q)[:last]
	q.sink(0)
	return first
}

// cheapest works out the cheapest set of each row that may cost less than the best. It is false where that takes too long.
func (o *lone) cheapest() bool {
	o.queue.order()
	for len(o.queue) > 0 {
		next := o.queue.pop()
		if o.found && o.noLess(next) {
			return true
		}
		if o.row(next.row); o.left < 0 {
			return false
		}
	}
	return true
}

// row goes through the sets of a row's units (branch and bound: one more unit never costs less).
func (o *lone) row(n cluster.NodeIdx) {
	o.look(n)
	lacks := o.lacks
	o.all(n)
	o.lacks = lacks
	o.byWorth(o.pool)
	r := &rowSets{lone: o, row: n, list: o.pool}
	if len(o.budgets.list) > 0 {
		o.us.reset()
		o.loadInto(o.pool)
		r.counted = true
	}
	r.from(0, noLoss(), lacks)
}

// all collects all units of a row that may go and be part of a better set.
func (o *lone) all(n cluster.NodeIdx) {
	row := &o.ur.rows[n]
	o.pool = o.pool[:0]
	better := func(priority int32) bool {
		return stays(o.q, priority, "") == "" && (!o.found || o.best.loss.Violations > 0 || priority <= o.best.loss.Highest)
	}
	for i := range row.alone {
		if c := &row.alone[i]; better(c.priority) && (!o.picky || o.mayGo(n, c.pod)) {
			o.enterPod(c)
		}
	}
	for i := range row.parts {
		part := &row.parts[i]
		if better(part.priority) && (!o.picky || o.gangMayGo(part.gang)) {
			o.enterPart(part)
		}
	}
}

// rowSets are the sets of the units of one row.
type rowSets struct {
	*lone
	row     cluster.NodeIdx
	list    []choice
	chosen  []int
	counted bool // violations are counted: the list is loaded, in its order
}

// from goes through the sets that have the units chosen so far and others from a position on.
func (r *rowSets) from(at int, so UnitsLoss, lacks [mostNeeds]int64) {
	for ; at < len(r.list); at++ {
		if r.left -= len(r.list) - at; r.left < 0 || !r.possible(at, so, &lacks) {
			return
		}
		c := &r.list[at]
		with := so
		with.with(c)
		r.chosen = append(r.chosen, at)
		if r.counted {
			with.Violations = r.us.violations(r.chosen, nil)
		}
		if l := (lead{with, r.row}); !r.found || l.before(&r.best) {
			less, met := lacks, true
			for i := range r.sums.needs {
				less[i] -= c.held[i]
				met = met && less[i] <= 0
			}
			switch {
			case met:
				r.best, r.found = l, true
				r.set = r.set[:0]
				for _, k := range r.chosen {
					r.set = append(r.set, r.list[k])
				}
			default:
				r.from(at+1, with, less)
			}
		}
		r.chosen = r.chosen[:len(r.chosen)-1]
	}
}

// possible tells whether the units from a position on may hold what is lacking, at a cost below the best.
func (r *rowSets) possible(at int, so UnitsLoss, lacks *[mostNeeds]int64) bool {
	rest := r.list[at:]
	for i := range r.sums.needs {
		sum := int64(0)
		for k := range rest {
			sum += rest[k].held[i]
		}
		if sum < lacks[i] {
			return false
		}
	}
	more := r.fewest(rest, lacks)
	so.Units, so.Pods = so.Units+more, so.Pods+more
	return !r.found || !r.noLess(lead{so, r.row})
}

// load makes a set the units in hand, and lists them.
func (o *lone) load(set []choice) []int {
	o.us.reset()
	o.loadInto(set)
	return o.us.every()
}

// loadInto enters units in their order.
func (o *lone) loadInto(set []choice) {
	us := o.us
	for i := range set {
		c := &set[i]
		u := unit{priority: c.priority, oldest: c.oldest, lo: int32(len(us.pods))}
		if c.pod != nil {
			us.pods = append(us.pods, placed{c.pod, cluster.NoNode})
		} else {
			u.gang = o.ur.gangs[c.gang].key
			us.pods = append(us.pods, goesWith(o.ur.live(c.gang))...)
		}
		u.hi = int32(len(us.pods))
		us.all = append(us.all, u)
	}
	us.guard(o.budgets)
}

// goingWith are the terminating pods on the row of the best set.
func (o *lone) goingWith() []*cluster.Pod {
	return slices.DeleteFunc(slices.Clone(o.ur.rows[o.best.row].going), o.isStuck)
}

// mayGo tells whether nothing but its priority keeps a pod by itself.
func (o *lone) mayGo(n cluster.NodeIdx, p *cluster.Pod) bool {
	if o.q.Never != nil && stays(o.q, math.MinInt32, o.q.Never(p)) != "" {
		return false
	}
	return !o.isOwn(n, p)
}

// isOwn tells whether a pod on a row is of the preemptor's own gang.
func (o *lone) isOwn(n cluster.NodeIdx, p *cluster.Pod) bool {
	if o.own == noGang || !slices.Contains(o.ur.rows[n].gangs, o.own) {
		return false
	}
	key, in := o.s.HeldGang(p.UID)
	return in && key == o.q.Own
}

// gangMayGo tells whether nothing but its priority keeps a gang that goes whole.
func (o *lone) gangMayGo(id int32) bool {
	if o.barred[id] == unasked {
		o.barred[id] = no
		if id == o.own || stays(o.q, math.MinInt32, keeps(o.q, o.ur.live(id))) != "" {
			o.barred[id] = yes
		}
	}
	return o.barred[id] == no
}

// harm tells whether a pod breaks a budget by itself.
func (o *lone) harm(p *cluster.Pod) bool {
	for _, at := range o.budgets.about(p) {
		b := &o.budgets.list[at]
		if _, granted := b.disrupted[p.Name]; !granted && b.allowed < 1 {
			return true
		}
	}
	return false
}

// harmOf tells whether a gang breaks a budget by one of its pods alone.
func (o *lone) harmOf(id int32) bool {
	if o.harms[id] == unasked {
		o.harms[id] = no
		if slices.ContainsFunc(o.ur.gangs[id].members, func(pl placed) bool { return o.harm(pl.pod) }) {
			o.harms[id] = yes
		}
	}
	return o.harms[id] == yes
}

// count is how many units may go.
func (o *lone) count() (units int) {
	for n := range o.ur.rows {
		alone := o.ur.rows[n].alone
		lower := alone[sort.Search(len(alone), func(i int) bool { return stays(o.q, alone[i].priority, "") == "" }):]
		if !o.picky {
			units += len(lower)
			continue
		}
		for i := range lower {
			if o.mayGo(cluster.NodeIdx(n), lower[i].pod) {
				units++
			}
		}
	}
	for id := range o.ur.gangs {
		if o.lower(int32(id)) {
			units++
		}
	}
	return units
}

// lower tells whether a gang goes whole and may go.
func (o *lone) lower(id int32) bool {
	g := &o.ur.gangs[id]
	return g.goesWhole() && stays(o.q, g.priority, "") == "" && (!o.picky || o.gangMayGo(id))
}
