// SPDX-License-Identifier: Apache-2.0

package place

import (
	"math"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// fanout is the number of rows in a block, and of blocks in a superblock. Two levels serve 100,000 nodes with 25
// superblocks.
const fanout = 64

// unranked is the total of a row that does not fit. No sum of weighted scores comes near it.
const unranked = math.MinInt64

// ranking keeps totals by row so that the best, how many rows have it, the k-th of those and the next best are found
// without a scan of all rows: a change of one row costs a comparison, rarely a scan of its 63 neighbours.
//
// Rejected: a heap or tree by total, which loses the order of rows among equals, and the draw needs that order; a set
// of rows for each total, which takes memory for each total there is.
type ranking struct {
	stretches
	totals []int64 // row -> total, unranked where it does not fit
	// row -> the ranking that it is in, for rankings that share totals; nil when all rows are in this one
	of []int32
	id int32 // of this ranking in of
}

// rebuild makes the ranking that of n rows.
func (r *ranking) rebuild(n int, total func(cluster.NodeIdx) int64) {
	r.totals, r.ranked = r.totals[:0], 0
	for row := range n {
		v := total(cluster.NodeIdx(row))
		r.totals = append(r.totals, v)
		if v != unranked {
			r.ranked++
		}
	}
	r.sumUp()
}

// sumUp makes the summaries anew.
func (r *ranking) sumUp() {
	r.blocks = r.blocks[:0]
	for b := range (len(r.totals) + fanout - 1) / fanout {
		r.blocks = append(r.blocks, r.block(b))
	}
	r.sumUpBlocks()
}

// grow extends the ranking to n rows; new ones are unranked.
func (r *ranking) grow(n int) {
	for len(r.totals) < n {
		r.totals = append(r.totals, unranked)
	}
	r.growTo(n)
}

func (r *ranking) len() int { return len(r.totals) }

// at is a row's total here.
func (r *ranking) at(n int) int64 {
	if r.of != nil && r.of[n] != r.id {
		return unranked
	}
	return r.totals[n]
}

// set gives a row another total.
func (r *ranking) set(n cluster.NodeIdx, total int64) {
	old := r.totals[n]
	r.totals[n] = total
	r.changed(n, old, total)
}

// changed sums up anew after a row's total here has changed.
func (r *ranking) changed(n cluster.NodeIdx, old, total int64) {
	if old == total {
		return
	}
	r.count(old, total)
	b := int(n) / fanout
	before := r.blocks[b]
	if old == before.best && before.rows == 1 {
		r.blocks[b] = r.block(b)
	} else {
		r.blocks[b].replace(old, total)
	}
	r.wingOf(b, before)
}

func (r *ranking) block(b int) summary {
	m := summary{best: unranked}
	lo, hi := b*fanout, min(len(r.totals), (b+1)*fanout)
	if r.of != nil {
		for n := lo; n < hi; n++ {
			m.add(r.at(n), 1)
		}
		return m
	}
	for _, total := range r.totals[lo:hi] {
		m.add(total, 1)
	}
	return m
}

// kth is the k-th row, from 0, in index order of those that have the best total.
func (r *ranking) kth(best int64, k int) cluster.NodeIdx { return r.kthOf(r, best, k) }

// next is the first of the rows with the highest total apart from the one row that has the best, NoNode without one.
func (r *ranking) next(winner cluster.NodeIdx) (cluster.NodeIdx, int64) { return r.nextOf(r, winner) }
