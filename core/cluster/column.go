// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"math"
	"math/big"
	"math/bits"
)

// column sums amounts per row. A cell holds the exact sum where int64 can, and the nearest end of int64 where it
// cannot; wide then holds the exact one, so that taking an amount out again restores what was there before.
type column struct {
	v    []int64
	wide map[NodeIdx]*big.Int // row -> exact sum, for the rows whose sum int64 cannot hold
}

func (c *column) add(row NodeIdx, delta int64) {
	old := c.v[row]
	exact, isWide := c.wide[row]
	if !isWide {
		sum := old + delta
		if (delta >= 0) == (sum >= old) {
			c.v[row] = sum
			return
		}
		exact = big.NewInt(old)
		if c.wide == nil {
			c.wide = map[NodeIdx]*big.Int{}
		}
		c.wide[row] = exact
	}
	exact.Add(exact, big.NewInt(delta))
	switch {
	case exact.IsInt64():
		c.v[row] = exact.Int64()
		delete(c.wide, row)
	case exact.Sign() > 0:
		c.v[row] = math.MaxInt64
	default:
		c.v[row] = math.MinInt64
	}
}

func (c *column) grow(rows int) {
	for len(c.v) < rows {
		c.v = append(c.v, 0)
	}
}

// Bitmap is a set of rows.
type Bitmap []uint64

// Has tells whether row is in the set.
func (b Bitmap) Has(row NodeIdx) bool {
	w := int(row) / 64
	return w < len(b) && b[w]&(1<<(uint(row)%64)) != 0
}

// Set puts row in.
func (b *Bitmap) Set(row NodeIdx) {
	for int(row)/64 >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[row/64] |= 1 << (uint(row) % 64)
}

// Clear takes row out.
func (b Bitmap) Clear(row NodeIdx) {
	if w := int(row) / 64; w < len(b) {
		b[w] &^= 1 << (uint(row) % 64)
	}
}

// Count is the number of rows in the set.
func (b Bitmap) Count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}
