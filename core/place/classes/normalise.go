// SPDX-License-Identifier: Apache-2.0

package classes

import (
	"math"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// findLargest finds the largest raw scores of rows that fit, in a scan of all rows.
func (c *compact) findLargest() {
	c.largest = rawSet{}
	if len(c.shared.sets) == 1 {
		return
	}
	for n, id := range c.shared.setOf[:len(c.codes)] {
		if id == 0 || !c.fits(n) {
			continue
		}
		for i, raw := range c.shared.sets[id] {
			if raw > c.largest[i] {
				c.largest[i], c.witness[i] = raw, cluster.NodeIdx(n)
			}
		}
	}
}

// updateLargest brings the largest raw scores up to date after rows were coded. It reports whether they changed. As a
// rule the witness stays and no other row exceeds it, which takes no scan.
func (c *compact) updateLargest() bool {
	if len(c.shared.sets) == 1 && c.largest == (rawSet{}) {
		return false
	}
	again := c.exceeded
	c.exceeded = false
	for i, most := range c.largest {
		if w := c.witness[i]; most > 0 && (!c.fits(int(w)) || c.shared.sets[c.shared.setOf[w]][i] != most) {
			again = true
		}
	}
	if !again {
		return false
	}
	was := c.largest
	c.findLargest()
	return c.largest != was
}

// normalise is what a set of raw scores adds to a total. A raw score above the largest counts as the largest until
// renormalise.
func (c *compact) normalise(set *rawSet) (sum int64) {
	for i := range c.shared.raws {
		r := &c.shared.raws[i]
		sum += r.weight * r.normal.Apply(min(set[i], c.largest[i]), c.largest[i])
	}
	return sum
}

// normaliseNew normalises the sets that are new.
func (c *compact) normaliseNew() {
	for len(c.normalised) < len(c.shared.sets) {
		c.normalised = append(c.normalised, c.normalise(&c.shared.sets[len(c.normalised)]))
	}
}

// renormalise normalises all sets anew and corrects the total of each row. Until now the totals contain the former
// values; nothing for a set that has none.
func (c *compact) renormalise() {
	old := c.difference[:0]
	for id := range c.shared.sets {
		var was int64
		if id < len(c.normalised) {
			was = c.normalised[id]
		}
		old = append(old, was)
	}
	c.difference, c.normalised = old, c.normalised[:0]
	c.normaliseNew()
	for id := range old {
		old[id] = c.normalised[id] - old[id]
	}
	for n, id := range c.shared.setOf[:len(c.codes)] {
		if c.codes[n] < 0 {
			continue
		}
		total := int64(c.codes[n]) + old[id]
		if uint64(total) > math.MaxInt16 {
			c.shared.overflowed = true
			total = 0
		}
		c.codes[n] = rowCode(total)
	}
	c.summarize()
}

// addNormalised adds to sums what rows get for their sets, and notes whether a raw score of one exceeds the largest.
func (c *compact) addNormalised(rows []cluster.NodeIdx, sums []int64) {
	for i, n := range rows {
		if n == cluster.NoNode {
			continue
		}
		id := c.shared.setOf[n]
		sums[i] += c.normalised[id]
		for k, raw := range c.shared.sets[id] {
			c.exceeded = c.exceeded || raw > c.largest[k]
		}
	}
}

// totals is how the totals are computed. extra is space.
func (c *compact) totals(extra []normalisedScore) Totals {
	t := Totals{extra: extra}
	for i := range c.shared.raws {
		r := &c.shared.raws[i]
		if c.largest[i] == 0 {
			t.flat += r.weight * r.normal.Apply(0, 0)
		} else {
			t.extra = append(t.extra, normalisedScore{
				scorer: c.own.rawAt[i], normal: r.normal, weight: r.weight, largest: c.largest[i],
			})
		}
	}
	return t
}

// rawIndex is the index in shared.raws of a scorer of the class; ok is false if its scores are not normalised.
func (c *compact) rawIndex(scorer int) (i int, ok bool) {
	for i, at := range c.own.rawAt {
		if at == scorer {
			return i, true
		}
	}
	return 0, false
}

// raw is a row's raw score by a scorer of the class whose scores are normalised.
func (c *compact) raw(scorer int, n cluster.NodeIdx) int64 {
	if i, ok := c.rawIndex(scorer); ok {
		return c.shared.sets[c.shared.setOf[n]][i]
	}
	return 0
}

// expand writes verdicts and scores of rows out by row; nil means all rows.
func (c *compact) expand(into *expanded, rows []cluster.NodeIdx) {
	into.grow(len(c.codes))
	if rows != nil {
		for _, n := range rows {
			c.expandRow(into, n)
		}
		return
	}
	for n := range c.codes {
		c.expandRow(into, cluster.NodeIdx(n))
	}
}

func (c *compact) expandRow(into *expanded, n cluster.NodeIdx) {
	set := c.shared.setOf[n]
	into.verdicts[n] = c.shared.verdict(c.codes[n])
	into.base[n] = int64(c.codes[n]) - c.normalised[set]
	for i := range c.shared.raws {
		into.raws[i][n] = c.shared.sets[set][i]
	}
}
