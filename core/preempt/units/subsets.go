// SPDX-License-Identifier: Apache-2.0

package units

import (
	"cmp"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

const (
	// DefaultLimit is the default of Question.Limit at up to 1,000 nodes. With more nodes it is less in proportion,
	// because each dry run takes longer.
	DefaultLimit = 256
	// fewUnits is the largest number of units of which every set is considered, and fewSteps bounds the steps for all
	// of them: a set takes as many steps as there are units left to choose among.
	fewUnits = 16
	fewSteps = 1 << 18
)

// subsets looks for a smaller loss among all sets of units (branch and bound: a larger set never costs less, and a
// set with too little capacity has too little with units put back).
type subsets struct {
	*search
	pick        []int // units to choose among
	chosen      []int
	stepsLeft   int  // see fewSteps
	dryRunsLeft int  // see Question.Limit
	cut         bool // some sets were left out
}

// improve looks for a smaller loss than the one found so far, and reports whether it is proved that there is none. If
// one node, or one domain, must have all the capacity, each is searched by itself.
func (sk *search) improve() (proved bool) {
	limit := sk.q.Limit
	if limit == 0 {
		limit = max(8, DefaultLimit*1000/max(1000, sk.q.Trial.Snapshot().Nodes()))
	}
	st := &subsets{search: sk, stepsLeft: fewSteps, dryRunsLeft: limit}
	confirmed, unproved, regions := sk.best, sk.unproved, sk.regions()
	sk.capacity.setRemoved(nil)
	if sk.found && len(regions) > 1 {
		for _, region := range regions {
			if len(region) > fewUnits {
				st.spareRegion(region)
			}
		}
	}
	for _, region := range regions {
		st.enumerate(region)
	}
	if slices.Equal(confirmed, sk.best) {
		return st.proved()
	}
	if sk.capacity.exact && !sk.fitsWithout(sk.best) {
		sk.best, sk.unproved, st.cut = confirmed, unproved, true
	} else if st.cut {
		sk.best = sk.keepNeeded(sk.best) // a smaller set of them may have been left out
		sk.unproved, sk.open = sk.open, 0
	}
	return st.proved()
}

// proved reports whether the best answer has the smallest loss: no set was left out.
func (st *subsets) proved() bool {
	return !st.cut && st.found
}

// regions groups the useful units by node or domain if one of them must have all the capacity; otherwise they are one
// group.
func (sk *search) regions() [][]int {
	r := sk.capacity
	if !r.known || !r.local || r.quorum > 1 && len(r.domains) == 1 {
		return [][]int{sk.useful}
	}
	r.setRemoved(sk.useful)
	of, count := func(n cluster.NodeIdx) int { return int(r.domain[n]) }, len(r.domains)
	if r.quorum == 1 {
		of, count = func(n cluster.NodeIdx) int { return int(n) }, len(r.domain)
	}
	regions := make([][]int, count)
	for _, i := range sk.useful {
		u := &sk.candidates.all[i]
		for _, pl := range sk.candidates.pods[u.lo:u.hi] {
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

// spareRegion spares the units of one region in both orders, by the capacity. No unit is removed in the capacity
// before and after.
func (st *subsets) spareRegion(region []int) {
	st.capacity.setRemoved(region)
	if !st.capacity.enoughFor() {
		st.capacity.setRemoved(nil)
		return
	}
	plain := st.spareByCapacity(region)
	st.consider(plain, st.candidates.loss(plain))
	st.capacity.setRemoved(nil)
	other := st.spareByCapacity(st.leastFreedFirst(region, plain))
	st.consider(other, st.candidates.loss(other))
	st.capacity.setRemoved(nil)
}

// consider makes a set the best answer if it has a smaller loss and, unless the capacity is exact, a dry run confirms
// it.
func (st *subsets) consider(list []int, loss Loss) (fits bool) {
	if st.found && loss.Compare(st.lowest) >= 0 {
		return true
	}
	if !st.capacity.exact {
		if st.dryRunsLeft <= 0 {
			st.cut = true
			return false
		}
		if st.dryRunsLeft--; !st.fitsWithout(list) {
			return false
		}
	}
	st.offer(list, loss)
	return true
}

// enumerate goes through the sets of a region's units.
func (st *subsets) enumerate(region []int) {
	st.pick = st.pick[:0]
	for _, i := range region {
		if !st.found || st.lowest.Violations > 0 || st.candidates.all[i].priority <= st.lowest.Highest {
			st.pick = append(st.pick, i)
		}
	}
	if len(st.pick) > fewUnits {
		st.cut = true
		return
	}
	slices.SortStableFunc(st.pick, func(i, j int) int {
		return cmp.Compare(st.capacity.frees(j), st.capacity.frees(i))
	})
	st.from(0, noLoss())
}

// from goes through the sets that have the units chosen so far and others from a position on.
func (st *subsets) from(at int, so Loss) {
	next := so // the smallest loss with one more unit
	next.Units, next.Pods = next.Units+1, next.Pods+1
	if at == len(st.pick) || st.found && next.Compare(st.lowest) >= 0 || !st.possible(at) {
		return
	}
	for ; at < len(st.pick); at++ {
		if st.stepsLeft -= len(st.pick) - at; st.stepsLeft < 0 || st.cut {
			st.cut = true
			return
		}
		i := st.pick[at]
		st.chosen = append(st.chosen, i)
		with := so
		with.add(&st.candidates.all[i])
		with.Violations = st.candidates.violations(st.chosen, nil)
		if !st.found || with.Compare(st.lowest) < 0 {
			st.capacity.move(i, 1)
			if !st.capacity.enoughFor() || !st.consider(st.chosen, with) {
				st.from(at+1, with)
			}
			st.capacity.move(i, -1)
		}
		st.chosen = st.chosen[:len(st.chosen)-1]
	}
}

// possible reports whether there may be enough capacity with all units removed that can still be chosen.
func (st *subsets) possible(at int) bool {
	if st.capacity.enoughFor() {
		return true
	}
	for _, i := range st.pick[at:] {
		st.capacity.move(i, 1)
	}
	ok := st.capacity.enoughFor()
	for _, i := range st.pick[at:] {
		st.capacity.move(i, -1)
	}
	return ok
}
