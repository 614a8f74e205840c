// SPDX-License-Identifier: Apache-2.0

package place

import (
	"math"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// counts reports whether what a row has of scores that are normalised counts for what others are measured by.
func (c *coded) counts(n int) bool { return c.codes[n] >= 0 }

// measure looks at each row for what scores that are normalised are measured by.
func (c *coded) measure() {
	c.largest = rawSet{}
	if len(c.kin.sets) == 1 {
		return
	}
	for n, id := range c.kin.setOf[:len(c.codes)] {
		if id == 0 || !c.counts(n) {
			continue
		}
		for i, raw := range c.kin.sets[id] {
			if raw > c.largest[i] {
				c.largest[i], c.witness[i] = raw, cluster.NodeIdx(n)
			}
		}
	}
}

// remeasure reports whether rows that were just coded change what others are measured by, and brings that up to date.
// As a rule the row that is measured by stays and no other is above it.
func (c *coded) remeasure() bool {
	if len(c.kin.sets) == 1 && c.largest == (rawSet{}) {
		return false
	}
	again := c.higher
	c.higher = false
	for i, most := range c.largest {
		if w := c.witness[i]; most > 0 && (!c.counts(int(w)) || c.kin.sets[c.kin.setOf[w]][i] != most) {
			again = true
		}
	}
	if !again {
		return false
	}
	was := c.largest
	c.measure()
	return c.largest != was
}

// priceOf is what a set of raw scores gives to a total. A raw score above what is measured by is as good as that
// until all rows are priced anew.
func (c *coded) priceOf(set *rawSet) (sum int64) {
	for i := range c.kin.raws {
		r := &c.kin.raws[i]
		sum += r.weight * r.normal.Apply(min(set[i], c.largest[i]), c.largest[i])
	}
	return sum
}

// priceNew prices sets that are new.
func (c *coded) priceNew() {
	for len(c.prices) < len(c.kin.sets) {
		c.prices = append(c.prices, c.priceOf(&c.kin.sets[len(c.prices)]))
	}
}

// price prices all sets anew and all rows with them. Rows hold the prices until now, none if there are none.
func (c *coded) price() {
	old := c.priced[:0]
	for id := range c.kin.sets {
		var was int64
		if id < len(c.prices) {
			was = c.prices[id]
		}
		old = append(old, was)
	}
	c.priced, c.prices = old, c.prices[:0]
	c.priceNew()
	for id := range old {
		old[id] = c.prices[id] - old[id]
	}
	for n, id := range c.kin.setOf[:len(c.codes)] {
		if c.codes[n] < 0 {
			continue
		}
		total := int64(c.codes[n]) + old[id]
		if uint64(total) > math.MaxInt16 {
			c.kin.closed = true
			total = 0
		}
		c.codes[n] = code(total)
	}
	c.sumUp()
}

// addPrices adds to sums what rows get for their sets, and notes whether one of them is above what is measured by.
func (c *coded) addPrices(rows []cluster.NodeIdx, sums []int64) {
	for i, n := range rows {
		if n == cluster.NoNode {
			continue
		}
		id := c.kin.setOf[n]
		sums[i] += c.prices[id]
		for k, raw := range c.kin.sets[id] {
			c.higher = c.higher || raw > c.largest[k]
		}
	}
}

// by is how totals are made.
func (c *coded) by(extra []normalised) totals {
	t := totals{extra: extra}
	for i := range c.kin.raws {
		r := &c.kin.raws[i]
		if c.largest[i] == 0 {
			t.flat += r.weight * r.normal.Apply(0, 0)
		} else {
			t.extra = append(t.extra, normalised{at: c.own.rawAt[i], normal: r.normal, weight: r.weight, largest: c.largest[i]})
		}
	}
	return t
}

// raw is a row's raw score by a scorer of the class that is normalised.
func (c *coded) raw(scorer int, n cluster.NodeIdx) int64 {
	for i, at := range c.own.rawAt {
		if at == scorer {
			return c.kin.sets[c.kin.setOf[n]][i]
		}
	}
	return 0
}

// unfolded is verdicts and scores of a class in its short form, written out by row.
type unfolded struct {
	verdicts []plugin.Verdict
	base     []int64
	raws     [maxRaws][]int64 // in the order of `kin.raws`
}

// unfold writes out what a class in its short form has, for a search that has to look at it.
func (sr *search) unfold() {
	if !sr.folded {
		return
	}
	sr.folded = false
	c, space := sr.coded, &sr.placer.unfolded
	rows := len(c.codes)
	if more := rows - len(space.verdicts); more > 0 {
		space.verdicts, space.base = append(space.verdicts, make([]plugin.Verdict, more)...), append(space.base, make([]int64, more)...)
		for i := range space.raws {
			space.raws[i] = append(space.raws[i], make([]int64, more)...)
		}
	}
	sr.verdicts, sr.base = space.verdicts[:rows], space.base[:rows]
	one := func(n cluster.NodeIdx) {
		set := c.kin.setOf[n]
		sr.verdicts[n] = c.kin.verdict(c.codes[n])
		sr.base[n] = int64(c.codes[n]) - c.prices[set]
		for i := range c.kin.raws {
			space.raws[i][n] = c.kin.sets[set][i]
		}
	}
	for _, n := range sr.rows {
		one(n)
	}
	if sr.rows == nil {
		for n := range c.codes {
			one(cluster.NodeIdx(n))
		}
	}
}

// raws is the column of raw scores of a scorer of the class that is normalised, nil where they are 0 everywhere.
func (sr *search) raws(scorer int) []int64 {
	sc := &sr.kept.scorers[scorer]
	if sr.coded == nil {
		if sc.nonZero == 0 {
			return nil
		}
		return sc.raw
	}
	if len(sr.coded.kin.sets) == 1 {
		return nil
	}
	for i, at := range sr.coded.own.rawAt {
		if at == scorer {
			return sr.placer.unfolded.raws[i][:len(sr.coded.codes)]
		}
	}
	return nil
}
