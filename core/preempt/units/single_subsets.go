// SPDX-License-Identifier: Apache-2.0

package units

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/preempt/victim"
)

// cheapest finds the cheapest set of each row that may cost less than the best one. It is false if that takes too
// many steps.
func (o *singlePod) cheapest() bool {
	o.queue.Order()
	for len(o.queue) > 0 {
		next := o.queue.Pop()
		if o.found && o.noLess(next) {
			return true
		}
		if o.searchRow(next.Row); o.stepsLeft < 0 {
			return false
		}
	}
	return true
}

// searchRow goes through the sets of a row's units (branch and bound: a larger set never costs less).
func (o *singlePod) searchRow(n cluster.NodeIdx) {
	o.measure(n)
	lacks := o.lacks
	o.collect(n)
	o.lacks = lacks
	o.byWorth(o.pool)
	r := &rowSets{singlePod: o, row: n, list: o.pool}
	if o.budgets.Len() > 0 {
		o.candidates.reset()
		o.loadInto(o.pool)
		r.counted = true
	}
	r.from(0, noLoss(), lacks)
}

// collect adds all units of a row to the pool that may be evicted and be part of a better set.
func (o *singlePod) collect(n cluster.NodeIdx) {
	row := &o.index.rows[n]
	o.pool = o.pool[:0]
	better := func(priority int32) bool {
		return whyStays(o.q, priority, "") == "" &&
			(!o.found || o.best.Loss.Violations > 0 || priority <= o.best.Loss.Highest)
	}
	for i := range row.pods {
		if c := &row.pods[i]; better(c.Priority) && (!o.selective || o.mayGo(n, c.Pod)) {
			o.addPod(c)
		}
	}
	for i := range row.parts {
		part := &row.parts[i]
		if better(part.priority) && (!o.selective || o.gangMayGo(part.gang)) {
			o.addGangPart(part)
		}
	}
}

// rowSets goes through the sets of the units of one row.
type rowSets struct {
	*singlePod
	row     cluster.NodeIdx
	list    []choice
	chosen  []int
	counted bool // violations are counted: the list is loaded as candidates, in order
}

// from goes through the sets that have the units chosen so far and others from a position on.
func (r *rowSets) from(at int, so Loss, lacks [mostNeeds]int64) {
	for ; at < len(r.list); at++ {
		if r.stepsLeft -= len(r.list) - at; r.stepsLeft < 0 || !r.possible(at, so, &lacks) {
			return
		}
		c := &r.list[at]
		with := so
		with.with(c)
		r.chosen = append(r.chosen, at)
		if r.counted {
			with.Violations = r.candidates.violations(r.chosen, nil)
		}
		if l := victim.On(r.row, with); !r.found || victim.Before(&l, &r.best) {
			less, met := lacks, true
			for i := range r.shortage.Needs {
				less[i] -= c.held[i]
				met = met && less[i] <= 0
			}
			switch {
			case met:
				r.best, r.found = l, true
				r.victims = r.victims[:0]
				for _, k := range r.chosen {
					r.victims = append(r.victims, r.list[k])
				}
			default:
				r.from(at+1, with, less)
			}
		}
		r.chosen = r.chosen[:len(r.chosen)-1]
	}
}

// possible reports whether the units from a position on may hold what is lacking, at a loss below the best one.
func (r *rowSets) possible(at int, so Loss, lacks *[mostNeeds]int64) bool {
	rest := r.list[at:]
	for i := range r.shortage.Needs {
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
	return !r.found || !r.noLess(victim.On(r.row, so))
}
