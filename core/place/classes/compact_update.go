// SPDX-License-Identifier: Apache-2.0

package classes

import (
	"math"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// rebuild evaluates all rows anew. The sharedClass must be up to date.
func (c *compact) rebuild(w *workspace, s cluster.Snapshot) {
	w.recent.Follow(s)
	c.seq, c.generation = w.recent.Next(), c.shared.generation
	w.meter.Plugin(plugin.AtFilter, "")
	w.meter.Did(record.RowsEvaluated, s.Rows())
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
	w.meter.Did(record.RowsCaughtUp, len(changed))
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
			p.score.ColumnWithPart(s, lo, hi, recent.Aside(p.id, p.fill), into)
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
