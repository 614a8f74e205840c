// SPDX-License-Identifier: Apache-2.0

package instances

import "math/rand/v2"

// view is how many slots of each node are used, as one instance sees it, with the nodes grouped by that number.
type view struct {
	slots int
	parts int     // how many partitions there are; a node is in partition node % parts
	used  []uint8 // node -> used slots. It may exceed slots where nothing prevents overcommit.
	index []int32 // node -> its index in its group
	// groups[part][used] are the nodes of a partition with so many used slots.
	groups [][][]int32
}

func newView(nodes, slots, parts int) *view {
	v := &view{slots: slots, parts: parts, used: make([]uint8, nodes), index: make([]int32, nodes)}
	v.groups = make([][][]int32, parts)
	for p := range v.groups {
		v.groups[p] = make([][]int32, slots+1)
	}
	for node := range int32(nodes) {
		v.insert(node)
	}
	return v
}

func (v *view) group(node int32) *[]int32 {
	return &v.groups[int(node)%v.parts][min(int(v.used[node]), v.slots)]
}

func (v *view) insert(node int32) {
	g := v.group(node)
	v.index[node] = int32(len(*g))
	*g = append(*g, node)
}

// take uses one slot more of a node.
func (v *view) take(node int32) {
	g := v.group(node)
	last := (*g)[len(*g)-1]
	(*g)[v.index[node]] = last
	v.index[last] = v.index[node]
	*g = (*g)[:len(*g)-1]
	v.used[node]++
	v.insert(node)
}

// Strategy is which nodes an instance prefers.
type Strategy string

const (
	Spread Strategy = "spread" // the nodes with the fewest used slots
	Pack   Strategy = "pack"   // the nodes with the most used slots that have a free one
)

// Prefer is what an instance does with its partition of the nodes.
type Prefer string

const (
	PreferNone Prefer = "none" // there are no partitions
	PreferTies Prefer = "ties" // among equal nodes those of its partition
	PreferOwn  Prefer = "own"  // its partition, while it has a free slot
	PreferOnly Prefer = "only" // its partition and nothing else
)

// pick returns the node that an instance chooses; false if it sees no free slot. open are its own placements that the
// view does not show yet: node -> how many.
func (v *view) pick(r *rand.Rand, s Strategy, p Prefer, own int, open map[int32]int) (int32, bool) {
	everywhere := func() (int32, bool) { return v.pickAmong(r, s, -1, -1, open) }
	switch p {
	case PreferOwn, PreferOnly:
		if node, ok := v.pickAmong(r, s, own, -1, open); ok || p == PreferOnly {
			return node, ok
		}
	case PreferTies:
		node, ok := everywhere()
		if !ok {
			return node, false
		}
		if tied, ok := v.pickAmong(r, s, own, int(v.used[node])+open[node], open); ok {
			return tied, true
		}
		return node, true
	}
	return everywhere()
}

// tries is how many nodes of a group are looked at before the next group: the view does not index open placements.
const tries = 8

// pickAmong chooses in one partition, or in all for -1; only nodes with exactly so many used slots, or any for -1.
func (v *view) pickAmong(r *rand.Rand, s Strategy, part, exactly int, open map[int32]int) (best int32, found bool) {
	least := v.slots // the fewest used slots of a node that was found, for Spread
	for i := range v.slots {
		used := i
		if s == Pack {
			used = v.slots - 1 - i
		}
		if s == Spread && found && used >= least {
			break
		}
		for range tries {
			node, ok := v.random(r, part, used)
			if !ok {
				break
			}
			after := used + open[node]
			if after >= v.slots || exactly >= 0 && after != exactly {
				continue
			}
			if s == Pack || after == used {
				return node, true
			}
			if after < least {
				best, found, least = node, true, after
			}
		}
	}
	return best, found
}

// random returns a random node with so many used slots, of one partition or of all.
func (v *view) random(r *rand.Rand, part, used int) (int32, bool) {
	if part >= 0 {
		g := v.groups[part][used]
		if len(g) == 0 {
			return 0, false
		}
		return g[r.IntN(len(g))], true
	}
	total := 0
	for p := range v.groups {
		total += len(v.groups[p][used])
	}
	if total == 0 {
		return 0, false
	}
	i := r.IntN(total)
	for p := range v.groups {
		g := v.groups[p][used]
		if i < len(g) {
			return g[i], true
		}
		i -= len(g)
	}
	panic("instances: a group changed while it was counted")
}
