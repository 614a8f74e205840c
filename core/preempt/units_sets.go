// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"cmp"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

const (
	// DefaultUnitsLimit is how many dry runs a search for a smaller loss may take at 1,000 nodes or fewer; where there are
	// more nodes it is less in proportion, for then each takes longer.
	DefaultUnitsLimit = 256
	// fewUnits is up to how many units every set of them is thought of, and fewSteps how long that may take in all: a set
	// takes as many steps as there are units left to choose among.
	fewUnits = 16
	fewSteps = 1 << 18
)

// sets looks for a smaller loss by thinking of every set of units that may have one (branch and bound: one more unit never
// costs less, and what the room says is too little stays so with units put back).
type sets struct {
	*seeker
	pick   []int // the units to choose among
	chosen []int
	left   int  // steps
	runs   int  // dry runs that may be made
	cut    bool // something was left out
}

// improve looks for a smaller loss than that found so far, and tells whether it is proved that there is none. Where one
// row, or one domain, must have room for all that is asked, each is looked at by itself.
func (sk *seeker) improve() (proved bool) {
	limit := sk.q.Limit
	if limit == 0 {
		limit = max(8, DefaultUnitsLimit*1000/max(1000, sk.q.Trial.Snapshot().Nodes()))
	}
	st := &sets{seeker: sk, left: fewSteps, runs: limit}
	confirmed, unproved, regions := sk.best, sk.unproved, sk.regions()
	sk.r.suppose(nil)
	if sk.found && len(regions) > 1 {
		for _, region := range regions {
			if len(region) > fewUnits {
				st.sweep(region)
			}
		}
	}
	for _, region := range regions {
		st.think(region)
	}
	if slices.Equal(confirmed, sk.best) {
		return sk.proved(st.cut)
	}
	if sk.r.exact && !sk.fitsWithout(sk.best) {
		sk.best, sk.unproved, st.cut = confirmed, unproved, true
	} else if st.cut {
		sk.best = sk.needed(sk.best) // a smaller set of them may not have come up
		sk.unproved, sk.open = sk.open, 0
	}
	return sk.proved(st.cut)
}

// proved tells whether the best answer is the least, unless something was left out.
func (sk *seeker) proved(cut bool) bool {
	return !cut && sk.found
}

// regions are the useful units by where they are, where it takes one row, or one domain, to hold all that is asked;
// otherwise they are together.
func (sk *seeker) regions() [][]int {
	r := sk.r
	if !r.known || !r.local || r.quorum > 1 && len(r.domains) == 1 {
		return [][]int{sk.useful}
	}
	r.suppose(sk.useful)
	of, count := func(n cluster.NodeIdx) int { return int(r.domain[n]) }, len(r.domains)
	if r.quorum == 1 {
		of, count = func(n cluster.NodeIdx) int { return int(n) }, len(r.domain)
	}
	regions := make([][]int, count)
	for _, i := range sk.useful {
		u := &sk.us.all[i]
		for _, pl := range sk.us.pods[u.lo:u.hi] {
			if r.domain[pl.row] == noDomain || r.slotsOn(pl.row) == 0 {
				continue
			}
			if at := of(pl.row); len(regions[at]) == 0 || regions[at][len(regions[at])-1] != i {
				regions[at] = append(regions[at], i)
			}
		}
	}
	return slices.DeleteFunc(regions, func(list []int) bool { return len(list) == 0 })
}

// sweep spares the units of one region in both orders, by the room. Nobody is gone in the room before and after.
func (st *sets) sweep(region []int) {
	st.r.suppose(region)
	if !st.r.fit() {
		st.r.suppose(nil)
		return
	}
	plain := st.sift(region)
	st.hear(plain, st.us.loss(plain))
	st.r.suppose(nil)
	other := st.sift(st.frugal(region, plain))
	st.hear(other, st.us.loss(other))
	st.r.suppose(nil)
}

// hear takes a set for the best if it costs less and, where the room is no proof, a dry run agrees.
func (st *sets) hear(list []int, loss UnitsLoss) (fits bool) {
	if st.found && loss.Compare(st.lowest) >= 0 {
		return true
	}
	if !st.r.exact {
		if st.runs <= 0 {
			st.cut = true
			return false
		}
		if st.runs--; !st.fitsWithout(list) {
			return false
		}
	}
	st.offer(list, loss)
	return true
}

// think goes through the sets of a region's units.
func (st *sets) think(region []int) {
	st.pick = st.pick[:0]
	for _, i := range region {
		if !st.found || st.lowest.Violations > 0 || st.us.all[i].priority <= st.lowest.Highest {
			st.pick = append(st.pick, i)
		}
	}
	if len(st.pick) > fewUnits {
		st.cut = true
		return
	}
	slices.SortStableFunc(st.pick, func(i, j int) int { return cmp.Compare(st.r.frees(j), st.r.frees(i)) })
	st.from(0, noLoss())
}

// from goes through the sets that have the units chosen so far and others from a position on.
func (st *sets) from(at int, so UnitsLoss) {
	next := so // at least, with one more
	next.Units, next.Pods = next.Units+1, next.Pods+1
	if at == len(st.pick) || st.found && next.Compare(st.lowest) >= 0 || !st.possible(at) {
		return
	}
	for ; at < len(st.pick); at++ {
		if st.left -= len(st.pick) - at; st.left < 0 || st.cut {
			st.cut = true
			return
		}
		i := st.pick[at]
		st.chosen = append(st.chosen, i)
		with := so
		with.add(&st.us.all[i])
		with.Violations = st.us.violations(st.chosen, nil)
		if !st.found || with.Compare(st.lowest) < 0 {
			st.r.move(i, 1)
			if !st.r.fit() || !st.hear(st.chosen, with) {
				st.from(at+1, with)
			}
			st.r.move(i, -1)
		}
		st.chosen = st.chosen[:len(st.chosen)-1]
	}
}

// possible tells whether there may be room with all units gone that can still be chosen.
func (st *sets) possible(at int) bool {
	if st.r.fit() {
		return true
	}
	for _, i := range st.pick[at:] {
		st.r.move(i, 1)
	}
	ok := st.r.fit()
	for _, i := range st.pick[at:] {
		st.r.move(i, -1)
	}
	return ok
}
