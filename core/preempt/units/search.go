// SPDX-License-Identifier: Apache-2.0

package units

import (
	"cmp"
	"slices"
)

// search looks for the units to evict, with the capacity as a guide.
type search struct {
	*dryRuns
	capacity *capacity
	// many is the number of units from which on a placement is looked for first.
	many int
	// useful are the units whose eviction may help, in order.
	useful []int
	// best are the victims of the best answer so far and lowest their loss; both are set once found is.
	found  bool
	best   []int
	lowest Loss
}

// selectUseful finds the units whose eviction may help, and leaves them removed in the capacity. If only the pods of
// a node decide what fits there, a unit does not help if it is on no node that fits more members with all units
// removed.
func (sk *search) selectUseful() {
	us, r := sk.candidates, sk.capacity
	if !r.known || !r.local {
		sk.useful = us.every()
		r.setRemoved(sk.useful)
		return
	}
	before := r.slots()
	r.setRemoved(us.every())
	after := r.slots()
	for i := range us.all {
		u := &us.all[i]
		u.idle = !slices.ContainsFunc(us.pods[u.lo:u.hi], func(pl podAt) bool {
			return after[pl.row] > before[pl.row] || after[pl.row] > 0 && r.unsure(pl.row)
		})
		if u.idle {
			r.putBack(i)
		} else {
			sk.useful = append(sk.useful, i)
		}
	}
}

// offer makes a set of units the best answer if it has the smallest loss.
func (sk *search) offer(list []int, loss Loss) {
	if !sk.found || loss.Compare(sk.lowest) < 0 {
		sk.best, sk.lowest, sk.found = slices.Sorted(slices.Values(list)), loss, true
		sk.unproved = sk.open
	}
	sk.open = 0
}

// spareByCapacity spares units of a list, in order, by the capacity alone, and returns the others. Units outside of
// the list are present.
func (sk *search) spareByCapacity(list []int) (left []int) {
	sk.capacity.setRemoved(list)
	for _, i := range list {
		if !sk.capacity.spare(i) {
			left = append(left, i)
		}
	}
	slices.Sort(left)
	return left
}

// leastFreedFirst returns the order that spares units so that few are left. It has the units that are no more
// important than the most important victim of an answer and that violate no budget which the answer does not violate.
// Units that hold the least of what is needed come first; of equal ones the larger, then those with the earliest
// start.
func (sk *search) leastFreedFirst(among, answer []int) (list []int) {
	ceiling := sk.candidates.loss(answer).Highest
	type entry struct{ unit, frees int }
	var order []entry
	for _, i := range among {
		_, chosen := slices.BinarySearch(answer, i)
		if u := &sk.candidates.all[i]; chosen || u.priority <= ceiling && !u.shielded {
			order = append(order, entry{i, int(sk.capacity.frees(i))})
		}
	}
	slices.SortStableFunc(order, func(i, j entry) int {
		a, b := &sk.candidates.all[i.unit], &sk.candidates.all[j.unit]
		if a.shielded != b.shielded {
			if a.shielded {
				return -1
			}
			return 1
		}
		return cmp.Or(cmp.Compare(i.frees, j.frees), cmp.Compare(b.hi-b.lo, a.hi-a.lo), cmp.Compare(a.oldest, b.oldest))
	})
	for _, e := range order {
		list = append(list, e.unit)
	}
	return list
}

// spareByDryRuns finds the answer of the reference algorithm by dry runs, assuming that one more evicted unit never
// fits less. It spares as many units at once as it can, and makes no dry run for those that the capacity shows to be
// needed. A check unit by unit follows, in case the assumption does not hold. All units of the list must be removed
// in the capacity.
func (sk *search) spareByDryRuns(list []int) bool {
	st := sk.newRemovalStack(list)
	if !st.fits() {
		return false
	}
	for at, step := 0, 1; at < len(list); {
		if st.spent() {
			return false
		}
		run := 0
		for run < step && at+run < len(list) && sk.capacity.spare(list[at+run]) {
			run++
		}
		switch {
		case run == 0:
			st.decide(at)
			at++
		case st.spares(at, at+run):
			at, step = at+run, 2*step
		case run == 1:
			sk.capacity.remove(list[at])
			st.decide(at)
			at, step = at+1, 1
		default:
			for _, i := range list[at : at+run] {
				sk.capacity.remove(i)
			}
			step = run / 2
		}
	}
	left := sk.keepNeeded(st.victims)
	sk.offer(left, sk.candidates.loss(left))
	return true
}

// keepNeeded spares units of an answer until each unit that is left is needed, by the capacity or by a dry run.
func (sk *search) keepNeeded(list []int) []int {
	sk.capacity.setRemoved(list)
	for spared := true; spared; {
		spared, sk.open = false, 0
		for _, i := range slices.Clone(list) {
			if !sk.capacity.spare(i) {
				continue
			}
			if sk.spent() {
				sk.capacity.remove(i)
				sk.open++
				continue
			}
			if rest := without(list, i); sk.fitsWithout(rest) {
				list, spared = rest, true
			} else {
				sk.capacity.remove(i)
			}
		}
	}
	return list
}
