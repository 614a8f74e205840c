// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
)

// column holds the sum of amounts for each row. A cell holds the exact sum if int64 can represent it, and the nearest
// limit of int64 otherwise; wide then holds the exact sum, so that subtracting an amount restores the earlier value.
//
// A column starts sparse: it lists only the rows with an amount. If every node offers a resource of its own, the
// columns take memory by amounts, not by nodes times resources. A column with amounts in many rows becomes dense and
// stays dense; at and some are then empty.
type column struct {
	v    []int64              // row -> amount, 0 beyond its end; nil while the column is sparse
	at   []NodeIdx            // rows that have or had an amount; ascending
	some []int64              // their amounts
	wide map[NodeIdx]*big.Int // row -> exact sum, for the rows whose sum int64 cannot hold
}

// A column becomes dense when one row in thinShare has an amount, and more rows than thinRows.
const (
	thinShare = 16
	thinRows  = 16
)

// get returns a row's amount.
func (c *column) get(row NodeIdx) int64 {
	if int(row) < len(c.v) {
		return c.v[row]
	}
	if len(c.at) == 0 {
		return 0
	}
	if i, has := slices.BinarySearch(c.at, row); has {
		return c.some[i]
	}
	return 0
}

// put sets a row's amount.
func (c *column) put(row NodeIdx, amount int64) {
	switch {
	case int(row) < len(c.v):
		c.v[row] = amount
		return
	case c.v != nil && amount != 0:
		c.grow(int(row) + 1)
		c.v[row] = amount
		return
	case c.v != nil:
		return
	}
	i, has := slices.BinarySearch(c.at, row)
	switch {
	case has:
		c.some[i] = amount
	case amount != 0 && c.fills(row):
		c.put(row, amount)
	case amount != 0:
		i, _ = slices.BinarySearch(c.at, row) // fills may have given up some
		c.at, c.some = slices.Insert(c.at, i, row), slices.Insert(c.some, i, amount)
	}
}

// fills makes a sparse column dense if it has no capacity for another row, and reports whether it is dense.
func (c *column) fills(row NodeIdx) bool {
	if len(c.at) < thinRows {
		return false
	}
	most := max(thinRows, int(max(row, c.at[len(c.at)-1]))/thinShare)
	if len(c.at) < most {
		return false
	}
	kept := 0
	for i, amount := range c.some {
		if amount != 0 {
			c.at[kept], c.some[kept] = c.at[i], amount
			kept++
		}
	}
	c.at, c.some = c.at[:kept], c.some[:kept]
	if kept < most-most/4 {
		return false
	}
	c.v = make([]int64, c.at[kept-1]+1, max(c.at[kept-1], row)+1)
	for i, n := range c.at {
		c.v[n] = c.some[i]
	}
	c.at, c.some = nil, nil
	return true
}

// size returns the number of bytes that the amounts take.
func (c *column) size() int { return 8*len(c.v) + 16*len(c.at) }

// drop removes the first rows; the others move up.
func (c *column) drop(rows NodeIdx) {
	if c.v != nil {
		c.v = c.v[:copy(c.v, c.v[min(int(rows), len(c.v)):])]
		if len(c.v) == 0 {
			c.v = nil
		}
		return
	}
	i, _ := slices.BinarySearch(c.at, rows)
	c.at, c.some = c.at[:copy(c.at, c.at[i:])], c.some[:copy(c.some, c.some[i:])]
	for i := range c.at {
		c.at[i] -= rows
	}
}

// Column is a read-only view of the amounts of one resource by row. It is valid as long as its Snapshot.
type Column struct{ c *column }

// At returns a row's amount.
func (c Column) At(row NodeIdx) int64 { return c.c.get(row) }

// Cut returns the amounts of rows lo to hi-1. The slice belongs to the store, or is written into space if the store
// keeps the amounts in another form: read it, and do not keep it.
func (c Column) Cut(lo, hi NodeIdx, space *[]int64) []int64 {
	if int(hi) <= len(c.c.v) {
		return c.c.v[lo:hi]
	}
	*space = slices.Grow((*space)[:0], int(hi-lo))[:hi-lo]
	out := *space
	if int(lo) < len(c.c.v) {
		clear(out[copy(out, c.c.v[lo:]):])
		return out
	}
	clear(out)
	i, _ := slices.BinarySearch(c.c.at, lo)
	for ; i < len(c.c.at) && c.c.at[i] < hi; i++ {
		out[c.c.at[i]-lo] = c.c.some[i]
	}
	return out
}

func (c *column) add(row NodeIdx, delta int64) {
	if int(row) < len(c.v) && len(c.wide) == 0 {
		if sum := c.v[row] + delta; (delta >= 0) == (sum >= c.v[row]) {
			c.v[row] = sum
			return
		}
	}
	old := c.get(row)
	exact, isWide := c.wide[row]
	if !isWide {
		sum := old + delta
		if (delta >= 0) == (sum >= old) {
			c.put(row, sum)
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
		c.put(row, exact.Int64())
		delete(c.wide, row)
	case exact.Sign() > 0:
		c.put(row, math.MaxInt64)
	default:
		c.put(row, math.MinInt64)
	}
}

func (c *column) grow(rows int) {
	for len(c.v) < rows {
		c.v = append(c.v, 0)
	}
}

// Bitmap is a set of rows.
type Bitmap []uint64

// Has reports whether row is in the set.
func (b Bitmap) Has(row NodeIdx) bool {
	w := int(row) / 64
	return w < len(b) && b[w]&(1<<(uint(row)%64)) != 0
}

// Set adds a row.
func (b *Bitmap) Set(row NodeIdx) {
	for int(row)/64 >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[row/64] |= 1 << (uint(row) % 64)
}

// Clear removes a row.
func (b Bitmap) Clear(row NodeIdx) {
	if w := int(row) / 64; w < len(b) {
		b[w] &^= 1 << (uint(row) % 64)
	}
}

// Count returns the number of rows in the set.
func (b Bitmap) Count() int {
	n := 0
	for _, w := range b {
		n += bits.OnesCount64(w)
	}
	return n
}
