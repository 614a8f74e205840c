// SPDX-License-Identifier: Apache-2.0

package classes

import (
	"math"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

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
	// if largest[i] > 0 and no row was coded since updateLargest, witness[i] is a row that fits and has it.
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

// rebuild evaluates all rows anew. The sharedClass must be up to date.
func (c *compact) rebuild(w *workspace, s cluster.Snapshot) {
	w.recent.Follow(s)
	c.seq, c.generation = w.recent.Next(), c.shared.generation
	w.meter.Plugin(plugin.AtFilter, "")
	c.evaluate(w, s, 0, cluster.NodeIdx(s.Rows()), nil)
	c.codes = append(c.codes[:0], c.shared.codes...)
	for n := range c.codes {
		c.codes[n] = c.shared.combine(c.codes[n], w.verdicts[n], w.sums[n])
	}
	c.normalised = c.normalised[:0]
	c.findLargest()
	c.renormalise()
}

// stride is the number of changes that are evaluated at once: their columns then stay in the fastest cache.
const stride = 256

// update brings the rows up to date that changed. The sharedClass must be up to date. renormalised is set if rows that
// did not change have other totals now; ok is false, and nothing is done, if rebuild has to do it.
func (c *compact) update(w *workspace, s cluster.Snapshot) (renormalised, ok bool) {
	w.recent.Follow(s)
	changed, lo, ok := w.recent.Since(c.seq)
	if !ok || len(changed) > s.Rows() || c.shared.generation != c.generation {
		return false, false
	}
	c.seq = w.recent.Next()
	c.grow(s.Rows())
	c.normaliseNew()
	w.meter.Plugin(plugin.AtFilter, "")
	columns := w.recent.Columns()
	if len(changed) > len(c.codes)/line {
		c.prefetch()
	}
	for len(changed) > 0 {
		part := changed[:min(stride, len(changed))]
		changed = changed[len(part):]
		c.evaluate(w, columns, lo, lo+cluster.NodeIdx(len(part)), &w.recent)
		c.apply(w, part, lo)
		lo += cluster.NodeIdx(len(part))
	}
	if c.updateLargest() {
		c.renormalise()
		renormalised = true
	}
	return renormalised, true
}

// evaluate computes the class's own verdicts and sums of rows lo to hi-1 into the workspace. If recent is not nil, s is
// its columns, and the rows are positions in it.
func (c *compact) evaluate(w *workspace, s cluster.Snapshot, lo, hi cluster.NodeIdx, recent *cluster.Recent) {
	w.grow(int(hi))
	verdicts, sums, scores := w.verdicts[:hi], w.sums[:hi], w.scores[:hi]
	clear(verdicts[lo:hi])
	for _, f := range c.own.filters {
		f.Column(s, lo, hi, f.tag, verdicts)
	}
	if len(c.own.scores) == 0 {
		clear(sums[lo:hi])
	}
	for i, score := range c.own.scores {
		into := scores
		if i == 0 {
			into = sums
		}
		if p := c.own.partials[i]; recent != nil && p.score != nil {
			p.score.ColumnWith(s, lo, hi, recent.Aside(p.id, p.fill), into)
		} else {
			score.Column(s, lo, hi, into)
		}
		if i > 0 {
			addWeighted(sums[lo:hi], scores[lo:hi], c.own.scorers[i].Weight)
			continue
		}
		if weight := c.own.scorers[i].Weight; weight != 1 {
			for n := lo; n < hi; n++ {
				sums[n] *= weight
			}
		}
	}
}

// line is about how many rows a line of the CPU cache holds.
const line = 64

// prefetch reads all that is held by row, in order. The class of a thousand that is used next is in slow memory, and a
// thousand changed rows one by one take several times as long from there as all rows in order.
func (c *compact) prefetch() {
	var sum int64
	for i := 0; i < len(c.codes); i += line / 2 {
		sum += int64(c.codes[i])
	}
	for i := 0; i < len(c.blocks); i += line / 16 {
		sum += c.blocks[i].best
	}
	c.prefetched = sum
}

func (c *compact) grow(rows int) {
	none := c.shared.codeOf(plugin.NoNode)
	for len(c.codes) < rows {
		c.codes = append(c.codes, none)
	}
	c.growTo(rows)
}

// apply sets the codes of rows that were just evaluated; their columns begin at lo.
func (c *compact) apply(w *workspace, rows []cluster.NodeIdx, lo cluster.NodeIdx) {
	// What is there is read first: loads that no branch waits for overlap.
	var was, shared [stride]rowCode
	codes, sharedCodes := c.codes, c.shared.codes[:len(c.codes)]
	for i, n := range rows {
		if uint(n) < uint(len(codes)) {
			was[i], shared[i] = codes[n], sharedCodes[n]
		}
	}
	verdicts, sums := w.verdicts[lo:][:len(rows)], w.sums[lo:][:len(rows)]
	flat := c.normalised[0]
	if len(c.shared.sets) > 1 {
		c.addNormalised(rows, sums)
		flat = 0 // sums contain it
	}
	for i, n := range rows {
		if n == cluster.NoNode {
			continue
		}
		is := shared[i]
		total := int64(is) + sums[i] + flat
		if is >= 0 && verdicts[i] == plugin.Fits && uint64(total) <= math.MaxInt16 {
			is = rowCode(total) // as combine does it, for most rows
		} else {
			is = c.shared.combine(is, verdicts[i], sums[i]+flat)
		}
		if is != was[i] {
			c.set(n, is)
		}
	}
}
