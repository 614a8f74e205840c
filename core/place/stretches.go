// SPDX-License-Identifier: Apache-2.0

package place

import "github.com/kumiki-scheduler/kumiki/core/cluster"

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

// replace counts a row that had one total and has another now, while others have the best one too, or it had another.
func (m *summary) replace(old, total int64) {
	if old == m.best {
		m.rows--
	}
	m.add(total, 1)
}

// stretches are the blocks and superblocks of a max tree over the totals of rows, which byRow holds.
type stretches struct {
	blocks []summary // of fanout rows each
	wings  []summary // of fanout blocks each
	ranked int       // rows that are not unranked
}

// byRow holds the totals of rows.
type byRow interface {
	len() int
	at(n int) int64
}

// sumUpBlocks recomputes the summaries of superblocks.
func (s *stretches) sumUpBlocks() {
	s.wings = s.wings[:0]
	for w := range (len(s.blocks) + fanout - 1) / fanout {
		s.wings = append(s.wings, s.wing(w))
	}
}

// growTo extends the blocks to n rows; new ones are unranked.
func (s *stretches) growTo(n int) {
	for len(s.blocks)*fanout < n {
		if len(s.blocks)%fanout == 0 {
			s.wings = append(s.wings, summary{best: unranked})
		}
		s.blocks = append(s.blocks, summary{best: unranked})
	}
}

// count counts a row that had one total and has another now.
func (s *stretches) count(old, total int64) {
	if old == unranked {
		s.ranked++
	} else if total == unranked {
		s.ranked--
	}
}

// moved counts a row of block b that had one total and has another now, where that is cheap: the best total of the
// block stays unchanged. It reports whether that was so.
func (s *stretches) moved(b int, old, total int64) bool {
	block := &s.blocks[b]
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
	if wing := &s.wings[b/fanout]; wing.best == block.best {
		wing.rows += by
	}
	return true
}

// wingOf sums up anew after block b has changed.
func (s *stretches) wingOf(b int, before summary) {
	after := s.blocks[b]
	if after == before {
		return
	}
	wing := &s.wings[b/fanout]
	if before.best == wing.best && before.rows == wing.rows {
		*wing = s.wing(b / fanout) // the best may have been this block's alone
		return
	}
	if before.rows > 0 && before.best == wing.best {
		wing.rows -= before.rows
	}
	wing.add(after.best, after.rows)
}

func (s *stretches) wing(w int) summary {
	m := summary{best: unranked}
	for _, b := range s.blocks[w*fanout : min(len(s.blocks), (w+1)*fanout)] {
		m.add(b.best, b.rows)
	}
	return m
}

// top is the best total and how many rows have it.
func (s *stretches) top() summary {
	m := summary{best: unranked}
	for _, w := range s.wings {
		m.add(w.best, w.rows)
	}
	return m
}

// kthOf is the k-th row, from 0, in index order of those that have the best total.
func (s *stretches) kthOf(rows byRow, best int64, k int) cluster.NodeIdx {
	for w, wing := range s.wings {
		if wing.best != best {
			continue
		}
		if k >= int(wing.rows) {
			k -= int(wing.rows)
			continue
		}
		for b := w * fanout; ; b++ {
			if block := s.blocks[b]; block.best == best {
				if k < int(block.rows) {
					return inBlock(rows, b, best, k)
				}
				k -= int(block.rows)
			}
		}
	}
	return cluster.NoNode
}

func inBlock(rows byRow, b int, total int64, k int) cluster.NodeIdx {
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
func (s *stretches) nextOf(rows byRow, winner cluster.NodeIdx) (cluster.NodeIdx, int64) {
	b := int(winner) / fanout
	w := b / fanout
	best := summary{best: unranked}
	for i := range s.wings[:w] {
		best.add(s.wings[i].best, 1)
	}
	for i := w * fanout; i < b; i++ {
		best.add(s.blocks[i].best, 1)
	}
	first, last := b*fanout, min(rows.len(), (b+1)*fanout)
	for n := first; n < last; n++ {
		if cluster.NodeIdx(n) != winner {
			best.add(rows.at(n), 1)
		}
	}
	for i := b + 1; i < min(len(s.blocks), (w+1)*fanout); i++ {
		best.add(s.blocks[i].best, 1)
	}
	for i := w + 1; i < len(s.wings); i++ {
		best.add(s.wings[i].best, 1)
	}
	if best.rows == 0 {
		return cluster.NoNode, 0
	}
	return s.first(rows, best.best, winner), best.best
}

// first is the first row of a total that is the best but for the winner's.
func (s *stretches) first(rows byRow, total int64, winner cluster.NodeIdx) cluster.NodeIdx {
	wb := int(winner) / fanout
	for w, wing := range s.wings {
		if wing.best != total && w != wb/fanout {
			continue
		}
		for b := w * fanout; b < min(len(s.blocks), (w+1)*fanout); b++ {
			if s.blocks[b].best != total && b != wb {
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
