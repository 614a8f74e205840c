// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"cmp"
	"math"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// ways returns the orders in which members are tried, the unit's first. Greedy placement in one order fails where
// another one succeeds: for example large members first, or those with few nodes. Members that must be near others
// come after those. Orders that differ only in equivalent members are one.
func (ks *kinds) ways(rows []cluster.NodeIdx, slack int) [][]int {
	share, scarce, depth := ks.shares(rows), ks.scarcity(rows), ks.depths()
	given := make([]int, len(ks.of))
	for i := range given {
		given[i] = i
	}
	ways := [][]int{given}
	add := func(before func(a, b int) int) {
		order := slices.Clone(given)
		slices.SortStableFunc(order, func(a, b int) int {
			return cmp.Or(cmp.Compare(depth[ks.of[a]], depth[ks.of[b]]), before(ks.of[a], ks.of[b]),
				cmp.Compare(ks.of[a], ks.of[b]))
		})
		if !slices.ContainsFunc(ways, func(way []int) bool { return ks.alike(way, order) }) {
			ways = append(ways, order)
		}
	}
	add(func(a, b int) int { return cmp.Compare(share[b], share[a]) })
	add(func(a, b int) int { return cmp.Or(cmp.Compare(scarce[a], scarce[b]), cmp.Compare(share[b], share[a])) })
	if slack > 0 {
		add(func(a, b int) int { return cmp.Compare(share[a], share[b]) })
	}
	return ways
}

func (ks *kinds) alike(a, b []int) bool {
	return slices.EqualFunc(a, b, func(i, j int) bool { return ks.of[i] == ks.of[j] })
}

// shares returns, by kind, the largest fraction of the rows' free amounts that a member demands, in millionths.
func (ks *kinds) shares(rows []cluster.NodeIdx) []int64 {
	shares := make([]int64, len(ks.all))
	for at := range ks.resources {
		var have int64
		for _, n := range rows {
			have = resource.Add(have, max(ks.free(at, n), 0))
		}
		for i := range ks.all {
			shares[i] = max(shares[i], int64(float64(ks.all[i].amounts[at])/float64(max(have, 1))*1e6))
		}
	}
	return shares
}

// manyPlaces is the number of placements of a kind up to which they are counted.
const manyPlaces = 1024

// scarcity returns, by kind, the number of placements for each of its members, in hundredths.
func (ks *kinds) scarcity(rows []cluster.NodeIdx) []int {
	scarce := make([]int, len(ks.all))
	for i := range ks.all {
		k := &ks.all[i]
		places := 0
		for _, n := range rows {
			if places += ks.copies(k, n, manyPlaces); places >= manyPlaces {
				break
			}
		}
		for _, key := range k.Apart {
			places = min(places, ks.domainsWith(k, ks, rows, key, manyPlaces))
		}
		scarce[i] = min(places, manyPlaces) * 100 / len(k.members)
	}
	return scarce
}

// depths returns, by kind, the length of the longest chain of other kinds that it must be near; cycles are cut off at
// the number of kinds.
func (ks *kinds) depths() []int {
	depths := make([]int, len(ks.all))
	near := ks.near()
	for range ks.all {
		for i, others := range near {
			for _, other := range others {
				depths[i] = max(depths[i], min(depths[other]+1, len(ks.all)))
			}
		}
	}
	return depths
}

// near returns, by kind, the other kinds that its required affinity selects.
func (ks *kinds) near() [][]int {
	near := make([][]int, len(ks.all))
	for i := range ks.all {
		p := ks.all[i].pod
		if p.Spec.PodAffinity == nil {
			continue
		}
		terms, err := cluster.TermsOf(p.Spec, p.Namespace, cluster.RequiredAffinity)
		if err != nil {
			continue
		}
		for j := range ks.all {
			q := ks.all[j].pod
			about := func(t cluster.PodTerm) bool { return t.Matches(q.Namespace, nil, q.Spec.Labels) }
			if i != j && slices.ContainsFunc(terms, about) {
				near[i] = append(near[i], j)
			}
		}
	}
	return near
}

// tightness returns how little capacity a row would have left with one more member of a kind: the less, the tighter.
func (ks *kinds) tightness(k *kind, n cluster.NodeIdx) int64 {
	var left int64
	for at := range ks.resources {
		offers := ks.state.Allocatable(ks.resources[at]).At(n)
		if offers > 0 {
			left += int64(float64(resource.Sub(ks.free(at, n), k.amounts[at])) / float64(offers) * 1e6)
		}
	}
	return left
}

// tightest returns the row with the least capacity left after a member of a kind; NoNode without rows.
func (ks *kinds) tightest(k *kind, rows []cluster.NodeIdx) cluster.NodeIdx {
	best, least := cluster.NoNode, int64(math.MaxInt64)
	for _, n := range rows {
		if left := ks.tightness(k, n); left < least {
			best, least = n, left
		}
	}
	return best
}
