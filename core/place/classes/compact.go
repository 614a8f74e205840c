// SPDX-License-Identifier: Apache-2.0

package classes

import "github.com/kumiki-scheduler/kumiki/core/cluster"

// compact is a class in its compact form, two bytes for each row. A class that has a sharedClass is in this form. A
// thousand classes of 50,000 rows fit into the memory of a hundred in the full form, and a changed row that all of them
// have to catch up on costs each of them a few columns of amounts.
type compact struct {
	maxTree
	shared *sharedClass // nil while the class is in its full form
	own    amountPlugins
	codes  []rowCode // row -> code by all filters and scorers. Invariant: no longer than shared.codes

	generation uint64 // shared.generation when the rows were evaluated
	seq        uint64 // changes are applied up to here, by the log of recent changes
	prefetched int64  // the result of prefetch; it has no meaning

	// largest is by what the scores in shared.raws are normalised: the largest raw scores of rows that fit. Invariant:
	// after update or rebuild, if largest[i] > 0, witness[i] is a row that fits and has it.
	largest rawSet
	witness [maxRaws]cluster.NodeIdx
	// exceeded is set if a row that was coded since updateLargest has a larger raw score.
	exceeded bool
	// normalised: shared.sets -> what the set adds to the total of a row. Invariant: codes contain it.
	normalised []int64
	difference []int64 // space for renormalise
}

// at is a row's total.
func (c *compact) at(n int) int64 { return totalOf(c.codes[n]) }

func (c *compact) len() int { return len(c.codes) }

// fits reports whether a row fits.
func (c *compact) fits(n int) bool { return c.codes[n] >= 0 }

// totalOf is the total of a code, unranked for a verdict.
func totalOf(code rowCode) int64 {
	if code < 0 {
		return unranked
	}
	return int64(code)
}

// set gives a row another code.
func (c *compact) set(n cluster.NodeIdx, is rowCode) {
	was := c.codes[n]
	c.codes[n] = is
	if was|is >= 0 && c.adjust(int(n)/fanout, int64(was), int64(is)) {
		return
	}
	if was < 0 && is < 0 {
		return // it did not fit and does not
	}
	old, total := totalOf(was), totalOf(is)
	c.count(old, total)
	b := int(n) / fanout
	before := c.blocks[b]
	if old == before.best && before.rows == 1 {
		c.blocks[b] = c.summarizeBlock(b)
	} else {
		c.blocks[b].replace(old, total)
	}
	c.updateSuperblock(b, before)
}

// summarizeBlock is the summary of block b by the codes of its rows.
func (c *compact) summarizeBlock(b int) summary {
	best, rows := rowCode(-1), int32(0)
	for _, v := range c.codes[b*fanout : min(len(c.codes), (b+1)*fanout)] {
		switch {
		case v > best:
			best, rows = v, 1
		case v == best:
			rows++
		}
	}
	if best < 0 {
		return summary{best: unranked}
	}
	return summary{int64(best), rows}
}

// summarize recomputes all summaries.
func (c *compact) summarize() {
	c.ranked = 0
	c.epoch++
	for _, v := range c.codes {
		if v >= 0 {
			c.ranked++
		}
	}
	c.blocks = c.blocks[:0]
	for b := range (len(c.codes) + fanout - 1) / fanout {
		c.blocks = append(c.blocks, c.summarizeBlock(b))
	}
	c.summarizeBlocks()
}
