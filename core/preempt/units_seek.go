// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"cmp"
	"slices"
)

// seeker looks for units to evict with the room as a guide.
type seeker struct {
	*dryRuns
	r *room
	// many is from how many units on places are looked for first.
	many int
	// useful are the units whose going might help, in order.
	useful []int
	// best is who goes in the best answer so far, once one is found, and lowest what it costs.
	found  bool
	best   []int
	lowest UnitsLoss
}

// pool finds the units whose going might help, and leaves them gone in the room. Where the pods of a row alone decide what
// fits there, those do not help that are on no row which has more room for members with all units gone.
func (sk *seeker) pool() {
	us, r := sk.us, sk.r
	if !r.known || !r.local {
		sk.useful = us.every()
		r.suppose(sk.useful)
		return
	}
	before := r.slots()
	r.suppose(us.every())
	after := r.slots()
	for i := range us.all {
		u := &us.all[i]
		u.idle = !slices.ContainsFunc(us.pods[u.lo:u.hi], func(pl placed) bool {
			return after[pl.row] > before[pl.row] || after[pl.row] > 0 && r.unsure(pl.row)
		})
		if u.idle {
			r.back(i)
		} else {
			sk.useful = append(sk.useful, i)
		}
	}
}

// offer makes a set of units the best one if it costs least.
func (sk *seeker) offer(list []int, loss UnitsLoss) {
	if !sk.found || loss.Compare(sk.lowest) < 0 {
		sk.best, sk.lowest, sk.found = slices.Sorted(slices.Values(list)), loss, true
		sk.unproved = sk.open
	}
	sk.open = 0
}

// first finds the plain form's answer, and a smaller loss where sparing in another order leads to one. All useful units are
// gone in the room.
func (sk *seeker) first() bool {
	if len(sk.useful) == 0 || !sk.r.fit() {
		return false
	}
	if sk.r.known && sk.byRoom() {
		return true
	}
	if sk.q.Where != nil && len(sk.useful) >= sk.many {
		if sk.found || sk.byPlaces() {
			return true
		}
	}
	sk.r.suppose(sk.useful)
	return sk.gallop(sk.useful) || sk.found
}

// byRoom lets the room choose, and confirms its choice by a dry run each. It tells whether no more is left to do: the plain
// form would not find another answer than the room does.
func (sk *seeker) byRoom() bool {
	plain := sk.sift(sk.useful)
	sk.r.suppose(nil)
	other := sk.sift(sk.frugal(sk.useful, plain))
	costs, less := sk.us.loss(plain), sk.us.loss(other)
	better := less.Compare(costs) < 0
	if better && sk.fitsWithout(other) {
		sk.offer(other, less)
		if sk.r.exact {
			return true
		}
	}
	if sk.fitsWithout(plain) {
		sk.offer(plain, costs)
		return true
	}
	sk.r.exact = false
	return false
}

// sift spares units of a list, in its order, by the room alone, and returns who is left. Other units are there.
func (sk *seeker) sift(list []int) (left []int) {
	sk.r.suppose(list)
	for _, i := range list {
		if !sk.r.spare(i) {
			left = append(left, i)
		}
	}
	slices.Sort(left)
	return left
}

// frugal is an order in which few units are left: of those that are no more important than the most important victim of an
// answer, and break no budget that it does not break, those first that hold least of what is needed. Of those that hold as
// much, the larger are spared first, then those that have run longest.
func (sk *seeker) frugal(among, answer []int) (list []int) {
	ceiling := sk.us.loss(answer).Highest
	type entry struct{ unit, frees int }
	var order []entry
	for _, i := range among {
		_, chosen := slices.BinarySearch(answer, i)
		if u := &sk.us.all[i]; chosen || u.priority <= ceiling && !u.shielded {
			order = append(order, entry{i, int(sk.r.frees(i))})
		}
	}
	slices.SortStableFunc(order, func(i, j entry) int {
		a, b := &sk.us.all[i.unit], &sk.us.all[j.unit]
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

// gallop finds the plain form's answer by dry runs, where one more unit gone never makes less fit: it spares as many units
// at once as it can, and asks about none that the room says are needed. It ends with a check unit by unit, for where that
// does not hold. All units of the list are gone in the room.
func (sk *seeker) gallop(list []int) bool {
	st := sk.pile(list)
	if !st.fits() {
		return false
	}
	for at, step := 0, 1; at < len(list); {
		if st.spent() {
			return false
		}
		run := 0
		for run < step && at+run < len(list) && sk.r.spare(list[at+run]) {
			run++
		}
		switch {
		case run == 0:
			st.decide(at)
			at++
		case st.spares(at, at+run):
			at, step = at+run, 2*step
		case run == 1:
			sk.r.take(list[at])
			st.decide(at)
			at, step = at+1, 1
		default:
			for _, i := range list[at : at+run] {
				sk.r.take(i)
			}
			step = run / 2
		}
	}
	left := sk.needed(st.sure)
	sk.offer(left, sk.us.loss(left))
	return true
}

// needed spares units of an answer until each that is left is needed: by the room, or by a dry run.
func (sk *seeker) needed(list []int) []int {
	sk.r.suppose(list)
	for spared := true; spared; {
		spared, sk.open = false, 0
		for _, i := range slices.Clone(list) {
			if !sk.r.spare(i) {
				continue
			}
			if sk.spent() {
				sk.r.take(i)
				sk.open++
				continue
			}
			if rest := without(list, i); sk.fitsWithout(rest) {
				list, spared = rest, true
			} else {
				sk.r.take(i)
			}
		}
	}
	return list
}
