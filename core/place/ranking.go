// SPDX-License-Identifier: Apache-2.0

package place

import (
	"math"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// fanout is how many rows a block sums up, and how many blocks a wing. Two levels of it serve 100,000 nodes with 25 wings.
const fanout = 64

// unranked is the total of a row that does not fit. No sum of weighted scores comes near it.
const unranked = math.MinInt64

// ranking keeps totals by row so that the best, how many rows have it, the k-th of those and the next best are found
// without a look at every row: a change of one row costs a comparison, rarely a look at its 63 neighbours.
//
// Rejected: a heap or tree by total, which loses the order of rows among equals, and the draw needs that order; a set of
// rows for each total, which takes memory for each total there is.
type ranking struct {
	totals []int64   // row -> total, unranked where it does not fit
	of     []int32   // row -> the ranking that it is in, for rankings that share totals; nil when all rows are in this one
	id     int32     // of this ranking in of
	blocks []summary // of fanout rows each
	wings  []summary // of fanout blocks each
	ranked int       // rows that are not unranked
}

// summary is the best total of a stretch of rows.
type summary struct {
	best int64
	rows int32 // that have it; 0 where best is unranked
}

// add counts one more row, or one more stretch of rows.
func (m *summary) add(total int64, rows int32) {
	switch {
	case total == unranked:
	case total > m.best || m.rows == 0:
		*m = summary{total, rows}
	case total == m.best:
		m.rows += rows
	}
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
	r.blocks, r.wings = r.blocks[:0], r.wings[:0]
	for b := range (len(r.totals) + fanout - 1) / fanout {
		r.blocks = append(r.blocks, r.block(b))
	}
	for w := range (len(r.blocks) + fanout - 1) / fanout {
		r.wings = append(r.wings, r.wing(w))
	}
}

// grow makes room for n rows; new ones are unranked.
func (r *ranking) grow(n int) {
	for len(r.totals) < n {
		if len(r.totals)%fanout == 0 {
			if len(r.blocks)%fanout == 0 {
				r.wings = append(r.wings, summary{best: unranked})
			}
			r.blocks = append(r.blocks, summary{best: unranked})
		}
		r.totals = append(r.totals, unranked)
	}
}

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
	if old == unranked {
		r.ranked++
	} else if total == unranked {
		r.ranked--
	}
	b := int(n) / fanout
	before := r.blocks[b]
	if old == before.best && before.rows == 1 {
		r.blocks[b] = r.block(b)
	} else {
		if old == before.best {
			r.blocks[b].rows--
		}
		r.blocks[b].add(total, 1)
	}
	after := r.blocks[b]
	if after == before || mutant == wingsKept {
		return
	}
	w := b / fanout
	wing := &r.wings[w]
	switch {
	case before.best == wing.best && before.rows == wing.rows:
		*wing = r.wing(w) // the best may have been this block's alone
	default:
		if before.rows > 0 && before.best == wing.best {
			wing.rows -= before.rows
		}
		wing.add(after.best, after.rows)
	}
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

func (r *ranking) wing(w int) summary {
	m := summary{best: unranked}
	for _, b := range r.blocks[w*fanout : min(len(r.blocks), (w+1)*fanout)] {
		m.add(b.best, b.rows)
	}
	return m
}

// top is the best total and how many rows have it.
func (r *ranking) top() summary {
	m := summary{best: unranked}
	for _, w := range r.wings {
		m.add(w.best, w.rows)
	}
	return m
}

// kth is the k-th row, from 0, in index order of those that have the best total.
func (r *ranking) kth(best int64, k int) cluster.NodeIdx {
	for w, wing := range r.wings {
		if wing.best != best {
			continue
		}
		if k >= int(wing.rows) {
			k -= int(wing.rows)
			continue
		}
		for b := w * fanout; ; b++ {
			if block := r.blocks[b]; block.best == best {
				if k < int(block.rows) {
					return r.inBlock(b, best, k)
				}
				k -= int(block.rows)
			}
		}
	}
	return cluster.NoNode
}

func (r *ranking) inBlock(b int, total int64, k int) cluster.NodeIdx {
	for n := b * fanout; ; n++ {
		if r.at(n) == total {
			if k == 0 {
				return cluster.NodeIdx(n)
			}
			k--
		}
	}
}

// next is the first of the rows with the highest total apart from the one row that has the best, NoNode without one.
func (r *ranking) next(winner cluster.NodeIdx) (cluster.NodeIdx, int64) {
	b := int(winner) / fanout
	w := b / fanout
	best := summary{best: unranked}
	for i := range r.wings[:w] {
		best.add(r.wings[i].best, 1)
	}
	for i := w * fanout; i < b; i++ {
		best.add(r.blocks[i].best, 1)
	}
	first, last := b*fanout, min(len(r.totals), (b+1)*fanout)
	for n := first; n < last; n++ {
		if cluster.NodeIdx(n) != winner {
			best.add(r.at(n), 1)
		}
	}
	for i := b + 1; i < min(len(r.blocks), (w+1)*fanout); i++ {
		best.add(r.blocks[i].best, 1)
	}
	for i := w + 1; i < len(r.wings); i++ {
		best.add(r.wings[i].best, 1)
	}
	if best.rows == 0 {
		return cluster.NoNode, 0
	}
	return r.first(best.best, winner), best.best
}

// first is the first row of a total that is the best but for the winner's.
func (r *ranking) first(total int64, winner cluster.NodeIdx) cluster.NodeIdx {
	wb := int(winner) / fanout
	for w, wing := range r.wings {
		if wing.best != total && w != wb/fanout {
			continue
		}
		for b := w * fanout; b < min(len(r.blocks), (w+1)*fanout); b++ {
			if r.blocks[b].best != total && b != wb {
				continue
			}
			for n := b * fanout; n < min(len(r.totals), (b+1)*fanout); n++ {
				if (r.at(n) == total || mutant == nextFirst) && cluster.NodeIdx(n) != winner {
					return cluster.NodeIdx(n)
				}
			}
		}
	}
	return cluster.NoNode
}
