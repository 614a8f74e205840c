// SPDX-License-Identifier: Apache-2.0

// Package sparse owns the form of a list of counts by small ids of which most are 0. Counters of pods have thousands of
// such lists: per row for the pods of one spec, per row and per topology value for a term of inter-pod affinity.
package sparse

import "slices"

// Counts are counts by id, most of them 0: a short one is kept as sorted pairs, a long one as a column.
type Counts struct {
	pairs []idCount // Invariant: ascending by id, no count is 0; nil once dense is set.
	dense []int32   // nil while pairs suffice
	sum   int       // of all counts. Invariant: sum is the sum over pairs and dense.
}

type idCount struct{ id, n int32 }

// maxPairs is the number of non-zero counts up to which Counts use pairs.
const maxPairs = 64

// Sum returns the sum of all counts.
func (c *Counts) Sum() int { return c.sum }

// Get returns the count of an id.
func (c *Counts) Get(id int32) int32 {
	if c.dense != nil {
		if int(id) < len(c.dense) {
			return c.dense[id]
		}
		return 0
	}
	if i, ok := c.find(id); ok {
		return c.pairs[i].n
	}
	return 0
}

func (c *Counts) find(id int32) (int, bool) {
	return slices.BinarySearchFunc(c.pairs, id, func(p idCount, id int32) int { return int(p.id) - int(id) })
}

// Add adds to the count of an id.
func (c *Counts) Add(id, delta int32) {
	if delta == 0 {
		return
	}
	c.sum += int(delta)
	if c.dense == nil {
		i, ok := c.find(id)
		switch {
		case ok:
			if c.pairs[i].n += delta; c.pairs[i].n == 0 {
				c.pairs = slices.Delete(c.pairs, i, i+1)
			}
			return
		case len(c.pairs) < maxPairs:
			c.pairs = slices.Insert(c.pairs, i, idCount{id, delta})
			return
		}
		c.dense = make([]int32, c.pairs[len(c.pairs)-1].id+1)
		for _, p := range c.pairs {
			c.dense[p.id] = p.n
		}
		c.pairs = nil
	}
	if more := int(id) + 1 - len(c.dense); more > 0 {
		c.dense = append(c.dense, make([]int32, more)...)
	}
	c.dense[id] += delta
}

// Each calls f for the non-zero counts, by ascending id.
func (c *Counts) Each(f func(id, n int32)) {
	for _, p := range c.pairs {
		f(p.id, p.n)
	}
	for id, n := range c.dense {
		if n != 0 {
			f(int32(id), n)
		}
	}
}
