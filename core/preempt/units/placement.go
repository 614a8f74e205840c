// SPDX-License-Identifier: Apache-2.0

package units

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// manyUnits is the number of units from which on a placement is looked for first, and then the units in its way, if
// the capacity alone does not decide.
const manyUnits = 512

// byPlacement looks for a placement with units evicted up to as low a priority as possible, and evicts the units in
// its way: as few as amounts require, or else all that a dry run shows to be needed. It is for so many units that a
// dry run for each is too expensive. The reference algorithm may find a smaller loss.
func (sk *search) byPlacement() bool {
	pool, where := sk.lowestPriorities()
	if where == nil {
		return false
	}
	near := sk.unitsOn(pool, where)
	if !sk.capacity.known {
		return sk.spareByDryRuns(near)
	}
	if list := sk.blockers(near, where); sk.fitsWithout(list) {
		list = sk.keepNeeded(list)
		sk.offer(list, sk.candidates.loss(list))
		return true
	}
	sk.capacity.setRemoved(near)
	return sk.spareByDryRuns(near)
}

// rowsWithout makes a dry run with the units of a list evicted, and returns the rows of the placement.
func (sk *search) rowsWithout(list []int) []cluster.NodeIdx {
	sk.q.Trial.Rollback(sk.start)
	for _, i := range list {
		sk.evict(i)
	}
	sk.tried++
	return sk.q.Rows()
}

// lowestPriorities finds the lowest priority such that there is a placement with all units up to it evicted, without
// those that violate a budget if that is enough. It returns the units and the rows of the placement.
func (sk *search) lowestPriorities() (pool []int, where []cluster.NodeIdx) {
	var steps []int
	var last *unit
	for at, i := range sk.useful {
		u := &sk.candidates.all[i]
		if last == nil || u.shielded != last.shielded || u.priority != last.priority {
			steps = append(steps, at)
		}
		last = u
	}
	for lo, hi := 0, len(steps)-1; lo <= hi; {
		mid := (lo + hi) / 2
		list := sk.useful[steps[mid]:] // by the order, these are the units of one priority and below
		sk.capacity.setRemoved(list)
		var got []cluster.NodeIdx
		if sk.capacity.enoughFor() {
			got = sk.rowsWithout(list)
		}
		if got == nil {
			hi = mid - 1
			continue
		}
		pool, where, lo = list, got, mid+1
	}
	return pool, where
}

// unitsOn returns the units of a list with a pod on one of the rows.
func (sk *search) unitsOn(list []int, rows []cluster.NodeIdx) (near []int) {
	is := make([]bool, sk.q.Trial.Snapshot().Rows())
	for _, n := range rows {
		if n != cluster.NoNode {
			is[n] = true
		}
	}
	for _, i := range list {
		u := &sk.candidates.all[i]
		if slices.ContainsFunc(sk.candidates.pods[u.lo:u.hi], func(pl podAt) bool { return is[pl.row] }) {
			near = append(near, i)
		}
	}
	return near
}

// blockers spares the units of a list, in order, beside which amounts leave enough for the members in their rows, and
// returns the others.
func (sk *search) blockers(list []int, where []cluster.NodeIdx) (left []int) {
	need := make([]map[cluster.NodeIdx]int64, len(sk.capacity.amounts)) // resource -> row -> what members take there
	for at := range need {
		need[at] = map[cluster.NodeIdx]int64{}
		for m, n := range where {
			if n != cluster.NoNode {
				need[at][n] += sk.capacity.amounts[at].held(sk.q.Members[m])
			}
		}
	}
	sk.capacity.setRemoved(list)
	for _, i := range list {
		sk.capacity.putBack(i)
		u := &sk.candidates.all[i]
		if slices.ContainsFunc(sk.candidates.pods[u.lo:u.hi], func(pl podAt) bool {
			for at := range need {
				if takes := need[at][pl.row]; takes > 0 && sk.capacity.amounts[at].free[pl.row] < takes {
					return true
				}
			}
			return false
		}) {
			sk.capacity.remove(i)
			left = append(left, i)
		}
	}
	return left
}
