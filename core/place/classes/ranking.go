// SPDX-License-Identifier: Apache-2.0

package classes

import "github.com/kumiki-scheduler/kumiki/core/cluster"

// ranking keeps totals by row so that the best, how many rows have it, the k-th of those and the next best are found
// without a scan of all rows: a change of one row costs a comparison, rarely a scan of its 63 neighbours.
//
// Rejected: a heap or tree by total, which loses the order of rows among equals, and the draw needs that order; a set
// of rows for each total, which takes memory for each total there is.
type ranking struct {
	maxTree
	totals []int64 // row -> total, unranked where it does not fit
	// row -> the ranking that it is in, for rankings that share totals; nil when all rows are in this one
	of []int32
	id int32 // of this ranking in of
}

// rebuild ranks n rows by their totals.
func (r *ranking) rebuild(n int, total func(cluster.NodeIdx) int64) {
	r.totals, r.ranked = r.totals[:0], 0
	r.epoch++
	for row := range n {
		v := total(cluster.NodeIdx(row))
		r.totals = append(r.totals, v)
		if v != unranked {
			r.ranked++
		}
	}
	r.summarize()
}

// summarize recomputes all summaries.
func (r *ranking) summarize() {
	r.blocks = r.blocks[:0]
	for b := range (len(r.totals) + fanout - 1) / fanout {
		r.blocks = append(r.blocks, r.summarizeBlock(b))
	}
	r.summarizeBlocks()
}

// grow extends the ranking to n rows; new ones are unranked.
func (r *ranking) grow(n int) {
	for len(r.totals) < n {
		r.totals = append(r.totals, unranked)
	}
	r.growTo(n)
}

func (r *ranking) len() int { return len(r.totals) }

// at is a row's total in this ranking.
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

// changed brings the summaries up to date after a row's total here has changed.
func (r *ranking) changed(n cluster.NodeIdx, old, total int64) {
	if old == total {
		return
	}
	r.count(old, total)
	b := int(n) / fanout
	before := r.blocks[b]
	if old == before.best && before.rows == 1 {
		r.blocks[b] = r.summarizeBlock(b)
	} else {
		r.blocks[b].replace(old, total)
	}
	r.updateSuperblock(b, before)
}

// summarizeBlock is the summary of block b by the totals of its rows.
func (r *ranking) summarizeBlock(b int) summary {
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

// first is the first row with the best total. There must be a ranked row.
func (r *ranking) first() cluster.NodeIdx { return r.kth(r.top().best, 0) }

// largest is the best total, at least 0.
func (r *ranking) largest() int64 { return max(0, r.top().best) }
