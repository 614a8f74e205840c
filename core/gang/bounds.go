// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"fmt"
	"math"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// capacity is the capacity against which bounds are computed: of the rows as they are now, or as if no pod were on
// them.
type capacity interface {
	// copies returns how many members of a kind fit a row without other members, at most most. It never
	// underestimates.
	copies(k *kind, n cluster.NodeIdx, most int) int
	// free returns the free amount of a resource, by position, on a row.
	free(at int, n cluster.NodeIdx) int64
}

// emptyCapacity is the capacity of the cluster without pods.
type emptyCapacity struct {
	*kinds
	g *Ground
}

func (r emptyCapacity) copies(k *kind, n cluster.NodeIdx, most int) int {
	if now := r.kinds.copies(k, n, most); now == most {
		return now // removing pods makes no row worse
	}
	if k.emptyNodes == nil {
		k.emptyNodes = r.g.Placer.EmptyNodes(r.state, k.pod)
	}
	return k.emptyNodes.Copies(r.state, n, most)
}

func (r emptyCapacity) free(at int, n cluster.NodeIdx) int64 {
	return r.offered(at, n)
}

// tooFew proves that fewer members than the quorum fit rows, and returns the proof in words; empty without a proof.
// All its bounds hold whatever other plugins do, because those only reduce the capacity:
//
//   - for each kind, the number of copies that rows hold, with no two members that repel each other in one domain;
//   - the quorum's members with the smallest demands of a resource against the sum of its free amounts;
//   - the members that demand at least an amount against the number of times that the amount fits into the rows.
func tooFew(ks *kinds, r capacity, rows []cluster.NodeIdx, quorum int) string {
	if !ks.known {
		return ""
	}
	most := 0
	var short *kind
	for i := range ks.all {
		k := &ks.all[i]
		have := ks.hold(k, r, rows)
		if most += have; have < len(k.members) && short == nil {
			short = k
		}
	}
	if most < quorum {
		return fmt.Sprintf("there is room for at most %d members, %d are needed; pods like %s have too few nodes",
			most, quorum, short.pod.Key())
	}
	if ks.uniform() {
		return "" // the bounds below do not apply
	}
	for at := range ks.resources {
		if words := ks.tooMuch(at, r, rows, quorum); words != "" {
			return words
		}
		if words := ks.tooLarge(at, r, rows, quorum); words != "" {
			return words
		}
	}
	return ""
}

// hold returns how many members of a kind fit rows without other members. It never underestimates.
func (ks *kinds) hold(k *kind, r capacity, rows []cluster.NodeIdx) int {
	want, have := len(k.members), 0
	for _, n := range rows {
		if have += r.copies(k, n, want-have); have == want {
			break
		}
	}
	for _, key := range k.Apart {
		if have == 0 {
			break
		}
		have = min(have, ks.domainsWith(k, r, rows, key, have))
	}
	return have
}

// domainsWith counts the domains that have capacity for a kind, at most most; rows in no domain count by their
// copies.
func (ks *kinds) domainsWith(k *kind, r capacity, rows []cluster.NodeIdx, key string, most int) int {
	t := ks.state.Topology(key)
	of, seen, count := t.Column(), make([]bool, t.Size()), 0
	for _, n := range rows {
		switch id := of[n]; {
		case count >= most:
			return most
		case id == cluster.NoValue:
			count += r.copies(k, n, most-count)
		case !seen[id] && r.copies(k, n, 1) > 0:
			seen[id] = true
			count++
		}
	}
	return count
}

// tooMuch compares the sum of the smallest demands with the sum of the free amounts of rows.
func (ks *kinds) tooMuch(at int, r capacity, rows []cluster.NodeIdx, quorum int) string {
	var amounts []int64
	for _, k := range ks.of {
		amounts = append(amounts, ks.all[k].amounts[at])
	}
	slices.Sort(amounts)
	var need, have int64
	for _, a := range amounts[:quorum] {
		need = resource.Add(need, a)
	}
	for _, n := range rows {
		if have = resource.Add(have, max(r.free(at, n), 0)); have >= need {
			return ""
		}
	}
	return fmt.Sprintf("%d members ask for at least %d of %s, and there is %d", quorum, need,
		ks.state.Names().Name(ks.resources[at]), have)
}

// tooLarge counts, for each demanded amount, the members that demand at least as much and the placements for them.
func (ks *kinds) tooLarge(at int, r capacity, rows []cluster.NodeIdx, quorum int) string {
	var amounts []int64
	for i := range ks.all {
		if a := ks.all[i].amounts[at]; a > 0 {
			amounts = append(amounts, a)
		}
	}
	slices.Sort(amounts)
	for _, amount := range slices.Backward(slices.Compact(amounts)) {
		asking := 0
		for i := range ks.all {
			if ks.all[i].amounts[at] >= amount {
				asking += len(ks.all[i].members)
			}
		}
		need := int64(asking - (len(ks.of) - quorum)) // if all members without a node were among them
		if have := ks.places(at, amount, r, rows, need); have < need {
			return fmt.Sprintf("%d members ask for %d of %s or more, and there is room for %d such", asking, amount,
				ks.state.Names().Name(ks.resources[at]), have)
		}
	}
	return ""
}

// places returns how often an amount fits into the free amounts of rows, counted up to enough.
func (ks *kinds) places(at int, amount int64, r capacity, rows []cluster.NodeIdx, enough int64) int64 {
	var have int64
	for _, n := range rows {
		if have >= enough {
			break
		}
		have += min(max(r.free(at, n), 0)/amount, math.MaxInt32)
	}
	return have
}
