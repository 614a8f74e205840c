// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// manyUnits is from how many units on places are looked for first, and then who is in their way, where the room alone does
// not say who must go.
const manyUnits = 512

// byPlaces looks for places with units gone up to as low a priority as leaves any, and lets those go that are in the way
// there: as few as amounts demand, or else all that a dry run cannot do without. It is for many units, where asking about
// each is too dear; the plain form may find a smaller loss.
func (sk *seeker) byPlaces() bool {
	pool, where := sk.lowestPool()
	if where == nil {
		return false
	}
	near := sk.on(pool, where)
	if !sk.r.known {
		return sk.gallop(near)
	}
	if list := sk.inTheWay(near, where); sk.fitsWithout(list) {
		list = sk.needed(list)
		sk.offer(list, sk.us.loss(list))
		return true
	}
	sk.r.suppose(near)
	return sk.gallop(near)
}

// whereWithout makes a dry run with the units of a list gone, and returns its places.
func (sk *seeker) whereWithout(list []int) []cluster.NodeIdx {
	sk.q.Trial.Rollback(sk.start)
	for _, i := range list {
		sk.evict(i)
	}
	sk.tried++
	return sk.q.Where()
}

// lowestPool finds the units of the lowest priority and below with which gone there are places, without those whose going
// breaks a budget if there are places then, and returns them with the places.
func (sk *seeker) lowestPool() (pool []int, where []cluster.NodeIdx) {
	var steps []int
	for at, i := range sk.useful {
		if at == 0 || sk.us.all[i].shielded != sk.us.all[sk.useful[at-1]].shielded || sk.us.all[i].priority != sk.us.all[sk.useful[at-1]].priority {
			steps = append(steps, at)
		}
	}
	for lo, hi := 0, len(steps)-1; lo <= hi; {
		mid := (lo + hi) / 2
		list := sk.useful[steps[mid]:] // by the order these are a priority and those below
		sk.r.suppose(list)
		var got []cluster.NodeIdx
		if sk.r.fit() {
			got = sk.whereWithout(list)
		}
		if got == nil {
			hi = mid - 1
			continue
		}
		pool, where, lo = list, got, mid+1
	}
	return pool, where
}

// on are the units of a list with a pod on one of some rows.
func (sk *seeker) on(list []int, rows []cluster.NodeIdx) (near []int) {
	is := make([]bool, sk.q.Trial.Snapshot().Rows())
	for _, n := range rows {
		if n != cluster.NoNode {
			is[n] = true
		}
	}
	for _, i := range list {
		u := &sk.us.all[i]
		if slices.ContainsFunc(sk.us.pods[u.lo:u.hi], func(pl placed) bool { return is[pl.row] }) {
			near = append(near, i)
		}
	}
	return near
}

// inTheWay spares the units of a list, in its order, beside which amounts leave room for the members in their places.
func (sk *seeker) inTheWay(list []int, where []cluster.NodeIdx) (left []int) {
	need := make([]map[cluster.NodeIdx]int64, len(sk.r.amounts)) // amount -> row -> what members take there
	for at := range need {
		need[at] = map[cluster.NodeIdx]int64{}
		for m, n := range where {
			if n != cluster.NoNode {
				need[at][n] += sk.r.amounts[at].held(sk.q.Members[m])
			}
		}
	}
	sk.r.suppose(list)
	for _, i := range list {
		sk.r.back(i)
		u := &sk.us.all[i]
		if slices.ContainsFunc(sk.us.pods[u.lo:u.hi], func(pl placed) bool {
			for at := range need {
				if takes := need[at][pl.row]; takes > 0 && sk.r.amounts[at].free[pl.row] < takes {
					return true
				}
			}
			return false
		}) {
			sk.r.take(i)
			left = append(left, i)
		}
	}
	return left
}
