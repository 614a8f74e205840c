// SPDX-License-Identifier: Apache-2.0

package classes

import (
	"math"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// fanout is the number of rows in a block, and of blocks in a superblock. Two levels serve 100,000 nodes with 25
// superblocks.
const fanout = 64

// unranked is the total of a row that does not fit. No sum of weighted scores comes near it.
const unranked = math.MinInt64

// summary is the best total of a range of rows.
type summary struct {
	best int64
	rows int32 // that have it. Invariant: 0 exactly where best is unranked
}

// add counts one more row, or one more range of rows.
func (m *summary) add(total int64, rows int32) {
	switch {
	case total == unranked:
	case total > m.best || m.rows == 0:
		*m = summary{total, rows}
	case total == m.best:
		m.rows += rows
	}
}

// replace counts a row that had one total and has another now, while others have the best one too, or it had another.
func (m *summary) replace(old, total int64) {
	if old == m.best {
		m.rows--
	}
	m.add(total, 1)
}

// maxTree has the summaries of a max tree over the totals of rows, which byRow holds.
type maxTree struct {
	blocks      []summary // of fanout rows each. Invariant: blocks[b] is the summary of rows b*fanout to (b+1)*fanout-1
	superblocks []summary // of fanout blocks each. Invariant: as that of blocks
	ranked      int       // rows that are not unranked. Invariant: 0 <= ranked <= rows
	// epoch counts changes of which rows are ranked. Invariant: it differs where the ranked rows differ.
	epoch uint64
}

// byRow holds the totals of rows.
type byRow interface {
	len() int
	at(n int) int64
}

// summarizeBlocks recomputes the summaries of superblocks.
func (t *maxTree) summarizeBlocks() {
	t.superblocks = t.superblocks[:0]
	for w := range (len(t.blocks) + fanout - 1) / fanout {
		t.superblocks = append(t.superblocks, t.summarizeSuperblock(w))
	}
}

// growTo extends the blocks to n rows; new ones are unranked.
func (t *maxTree) growTo(n int) {
	for len(t.blocks)*fanout < n {
		if len(t.blocks)%fanout == 0 {
			t.superblocks = append(t.superblocks, summary{best: unranked})
		}
		t.blocks = append(t.blocks, summary{best: unranked})
	}
}

// count counts a row that had one total and has another now.
func (t *maxTree) count(old, total int64) {
	if old == unranked {
		t.ranked++
		t.epoch++
	} else if total == unranked {
		t.ranked--
		t.epoch++
	}
}

// adjust counts a row of block b that had one total and has another now, where that is cheap: the best total of the
// block stays unchanged. It reports whether that was so.
func (t *maxTree) adjust(b int, old, total int64) bool {
	block := &t.blocks[b]
	if old > block.best || total > block.best {
		return false
	}
	by := int32(0)
	if total == block.best {
		by = 1
	}
	if old == block.best {
		by--
	}
	if block.rows+by == 0 {
		return false // the second best is the best now
	}
	block.rows += by
	if superblock := &t.superblocks[b/fanout]; superblock.best == block.best {
		superblock.rows += by
	}
	return true
}

// updateSuperblock brings the superblock of block b up to date after the block has changed.
func (t *maxTree) updateSuperblock(b int, before summary) {
	after := t.blocks[b]
	if after == before {
		return
	}
	superblock := &t.superblocks[b/fanout]
	if before.best == superblock.best && before.rows == superblock.rows {
		*superblock = t.summarizeSuperblock(b / fanout) // the best may have been this block's alone
		return
	}
	if before.rows > 0 && before.best == superblock.best {
		superblock.rows -= before.rows
	}
	superblock.add(after.best, after.rows)
}

// summarizeSuperblock is the summary of superblock w by those of its blocks.
func (t *maxTree) summarizeSuperblock(w int) summary {
	m := summary{best: unranked}
	for _, b := range t.blocks[w*fanout : min(len(t.blocks), (w+1)*fanout)] {
		m.add(b.best, b.rows)
	}
	return m
}

// top is the best total and how many rows have it.
func (t *maxTree) top() summary {
	m := summary{best: unranked}
	for _, w := range t.superblocks {
		m.add(w.best, w.rows)
	}
	return m
}

// kthOf is the k-th row, from 0, in index order of those that have the best total.
func (t *maxTree) kthOf(rows byRow, best int64, k int) cluster.NodeIdx {
	for w, superblock := range t.superblocks {
		if superblock.best != best {
			continue
		}
		if k >= int(superblock.rows) {
			k -= int(superblock.rows)
			continue
		}
		for b := w * fanout; ; b++ {
			if block := t.blocks[b]; block.best == best {
				if k < int(block.rows) {
					return kthInBlock(rows, b, best, k)
				}
				k -= int(block.rows)
			}
		}
	}
	return cluster.NoNode
}

// kthInBlock is the k-th row, from 0, of block b that has the total. There must be one.
func kthInBlock(rows byRow, b int, total int64, k int) cluster.NodeIdx {
	for n := b * fanout; ; n++ {
		if rows.at(n) == total {
			if k == 0 {
				return cluster.NodeIdx(n)
			}
			k--
		}
	}
}

// nextOf is the first of the rows with the highest total apart from the one row that has the best, NoNode without one.
func (t *maxTree) nextOf(rows byRow, winner cluster.NodeIdx) (cluster.NodeIdx, int64) {
	b := int(winner) / fanout
	w := b / fanout
	best := summary{best: unranked}
	for i := range t.superblocks[:w] {
		best.add(t.superblocks[i].best, 1)
	}
	for i := w * fanout; i < b; i++ {
		best.add(t.blocks[i].best, 1)
	}
	first, last := b*fanout, min(rows.len(), (b+1)*fanout)
	for n := first; n < last; n++ {
		if cluster.NodeIdx(n) != winner {
			best.add(rows.at(n), 1)
		}
	}
	for i := b + 1; i < min(len(t.blocks), (w+1)*fanout); i++ {
		best.add(t.blocks[i].best, 1)
	}
	for i := w + 1; i < len(t.superblocks); i++ {
		best.add(t.superblocks[i].best, 1)
	}
	if best.rows == 0 {
		return cluster.NoNode, 0
	}
	return t.firstOf(rows, best.best, winner), best.best
}

// firstOf is the first row of a total that is the best but for the winner's.
func (t *maxTree) firstOf(rows byRow, total int64, winner cluster.NodeIdx) cluster.NodeIdx {
	wb := int(winner) / fanout
	for w, superblock := range t.superblocks {
		if superblock.best != total && w != wb/fanout {
			continue
		}
		for b := w * fanout; b < min(len(t.blocks), (w+1)*fanout); b++ {
			if t.blocks[b].best != total && b != wb {
				continue
			}
			for n := b * fanout; n < min(rows.len(), (b+1)*fanout); n++ {
				if rows.at(n) == total && cluster.NodeIdx(n) != winner {
					return cluster.NodeIdx(n)
				}
			}
		}
	}
	return cluster.NoNode
}
