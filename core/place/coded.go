// SPDX-License-Identifier: Apache-2.0

package place

import (
	"math"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// coded is a class in its short form, two bytes for each row. A class that has a `kin` is in this form. A thousand
// classes of 50,000 rows fit into the memory of a hundred in the long form, and what changes in a row that they all
// have to catch up on costs each of them a few columns of amounts.
type coded struct {
	stretches
	kin   *kin // nil while the class is in its long form
	own   sized
	codes []code
	ahead int64  // the result of readAhead; it means nothing
	made  uint64 // `kin.made` when the rows were judged
	// largest is what the scores in `kin.raws` are measured by, their largest on rows that fit, and witness a row
	// that has it.
	largest rawSet
	witness [maxRaws]cluster.NodeIdx
	prices  []int64 // `kin.sets` -> what they give to the total of a row
	priced  []int64 // space for price
	higher  bool    // a row that was just coded may be above largest
	seq     uint64  // changes are applied up to here, by the Placer's recent
}

// at is a row's total.
func (c *coded) at(n int) int64 {
	if v := c.codes[n]; v >= 0 {
		return int64(v)
	}
	return unranked
}

func (c *coded) len() int { return len(c.codes) }

// set gives a row another code.
func (c *coded) set(n cluster.NodeIdx, is code) {
	was := c.codes[n]
	c.codes[n] = is
	if was|is >= 0 && c.moved(int(n)/fanout, int64(was), int64(is)) {
		return
	}
	if was < 0 && is < 0 {
		return // it did not fit and does not
	}
	old, total := widened(was), widened(is)
	c.count(old, total)
	b := int(n) / fanout
	before := c.blocks[b]
	if old == before.best && before.rows == 1 {
		c.blocks[b] = c.block(b)
	} else {
		c.blocks[b].replace(old, total)
	}
	c.wingOf(b, before)
}

func widened(v code) int64 {
	if v < 0 {
		return unranked
	}
	return int64(v)
}

func (c *coded) block(b int) summary {
	best, rows := code(-1), int32(0)
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

// sumUp makes the summaries anew.
func (c *coded) sumUp() {
	c.ranked = 0
	for _, v := range c.codes {
		if v >= 0 {
			c.ranked++
		}
	}
	c.blocks = c.blocks[:0]
	for b := range (len(c.codes) + fanout - 1) / fanout {
		c.blocks = append(c.blocks, c.block(b))
	}
	c.sumUpBlocks()
}

// encode judges all rows of a class that was just prepared, in the short form; false when it has to be in the long one.
func (pl *Placer) encode(s cluster.Snapshot, c *class) bool {
	d := &c.coded
	pl.leave(d.kin)
	if d.kin, d.own = pl.kinOf(s, c.spec, &c.kept); d.kin == nil {
		return false
	}
	if !pl.encodeRows(s, c) {
		pl.leave(d.kin)
		d.kin, d.codes = nil, d.codes[:0]
		return false
	}
	return true
}

// encodeRows judges all rows of a class whose `kin` is up to date; false if codes cannot represent it.
func (pl *Placer) encodeRows(s cluster.Snapshot, c *class) bool {
	d := &c.coded
	pl.recent.Follow(s)
	d.seq, d.made = pl.recent.Next(), d.kin.made
	pl.meter.Plugin(plugin.AtFilter, "")
	d.judge(pl, s, 0, cluster.NodeIdx(s.Rows()), false)
	d.codes = append(d.codes[:0], d.kin.codes...)
	for n := range d.codes {
		d.codes[n] = d.kin.join(d.codes[n], pl.verdicts[n], pl.sums[n])
	}
	d.prices = d.prices[:0]
	d.measure()
	d.price()
	c.order.made++
	c.order.by = d.by(c.order.by.extra[:0])
	return !d.kin.closed
}

// judge brings what the class has for itself of rows lo to hi-1, or of so many recent changes, into the Placer's
// columns.
func (c *coded) judge(pl *Placer, s cluster.Snapshot, lo, hi cluster.NodeIdx, recent bool) {
	pl.makeRoom(int(hi))
	verdicts, sums, column := pl.verdicts[:hi], pl.sums[:hi], pl.column[:hi]
	clear(verdicts[lo:hi])
	for _, f := range c.own.filters {
		f.Column(s, lo, hi, f.tag, verdicts)
	}
	if len(c.own.scores) == 0 {
		clear(sums[lo:hi])
	}
	for i, score := range c.own.scores {
		into := column
		if i == 0 {
			into = sums
		}
		if h := c.own.halves[i]; recent && h.is != nil {
			h.is.ColumnWith(s, lo, hi, pl.recent.Aside(h.of, h.fill), into)
		} else {
			score.Column(s, lo, hi, into)
		}
		if i > 0 {
			addWeighted(sums[lo:hi], column[lo:hi], c.own.scorers[i].Weight)
			continue
		}
		if weight := c.own.scorers[i].Weight; weight != 1 {
			for n := lo; n < hi; n++ {
				sums[n] *= weight
			}
		}
	}
}

// stride is up to how many changes are judged at once: their columns then stay in the fastest cache.
const stride = 256

// followCoded brings a class in its short form up to date; false when it has to be filled anew.
func (pl *Placer) followCoded(s cluster.Snapshot, c *class) bool {
	d := &c.coded
	pl.bytes -= d.kin.size()
	d.kin.follow(s, pl)
	pl.bytes += d.kin.size()
	if d.kin.closed {
		return false
	}
	pl.recent.Follow(s)
	changed, lo, ok := pl.recent.Since(d.seq)
	if !ok || len(changed) > s.Rows() || d.kin.made != d.made {
		return pl.encodeRows(s, c)
	}
	d.seq = pl.recent.Next()
	d.grow(s.Rows())
	d.priceNew()
	pl.meter.Plugin(plugin.AtFilter, "")
	columns := pl.recent.Columns()
	if len(changed) > len(d.codes)/line {
		d.readAhead()
	}
	for len(changed) > 0 {
		part := changed[:min(stride, len(changed))]
		changed = changed[len(part):]
		d.judge(pl, columns, lo, lo+cluster.NodeIdx(len(part)), true)
		d.take(pl, part, lo)
		lo += cluster.NodeIdx(len(part))
	}
	if d.remeasure() {
		d.price()
		c.order.made++
		c.order.by = d.by(c.order.by.extra[:0])
	}
	return !d.kin.closed
}

// line is about how many rows a line of the cache holds.
const line = 64

// readAhead touches all that is kept by row, in order. A class of a thousand that take turns is in slow memory when its
// turn comes, and a thousand changed rows one by one take several times as long from there as all rows in order.
func (c *coded) readAhead() {
	var sum int64
	for i := 0; i < len(c.codes); i += line / 2 {
		sum += int64(c.codes[i])
	}
	for i := 0; i < len(c.blocks); i += line / 16 {
		sum += c.blocks[i].best
	}
	c.ahead = sum
}

func (c *coded) grow(rows int) {
	none := c.kin.codeOf(plugin.NoNode)
	for len(c.codes) < rows {
		c.codes = append(c.codes, none)
	}
	c.growTo(rows)
}

// take ranks rows that were just judged.
func (c *coded) take(pl *Placer, rows []cluster.NodeIdx, lo cluster.NodeIdx) {
	// What is there is read first: loads that no branch waits for overlap.
	var was, shared [stride]code
	codes, kins := c.codes, c.kin.codes[:len(c.codes)]
	for i, n := range rows {
		if uint(n) < uint(len(codes)) {
			was[i], shared[i] = codes[n], kins[n]
		}
	}
	verdicts, sums := pl.verdicts[lo:][:len(rows)], pl.sums[lo:][:len(rows)]
	flat := c.prices[0]
	if len(c.kin.sets) > 1 {
		c.addPrices(rows, sums)
		flat = 0 // it is among them
	}
	faulty := false
	for i, n := range rows {
		if n == cluster.NoNode {
			continue
		}
		is := shared[i]
		if total := int64(is) + sums[i] + flat; is >= 0 && verdicts[i] == plugin.Fits && uint64(total) <= math.MaxInt16 {
			is = code(total) // as join does it, for most rows
		} else {
			is = c.kin.join(is, verdicts[i], sums[i]+flat)
		}
		if is != was[i] && !faulty {
			c.set(n, is)
		}
	}
}
