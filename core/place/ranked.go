// SPDX-License-Identifier: Apache-2.0

package place

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// order is the rows of a class by what it keeps of them alone.
type order struct {
	by totals // how the totals in rank are made
	// raws are the raw scores of the rows that fit, by position in by.extra: their largest is what others are
	// measured by.
	raws []ranking
	rank ranking
	made uint64 // how often all rows were ranked anew, from 1
}

// totalOf is a row's total for the ranking.
func (c *class) totalOf(n cluster.NodeIdx) int64 {
	if c.verdicts[n] != plugin.Fits {
		return unranked
	}
	return c.order.by.of(n)
}

// rankAll ranks all rows anew.
func (c *class) rankAll() {
	o := &c.order
	rows := len(c.verdicts)
	o.made++
	o.by = totals{base: c.base, extra: o.by.extra[:0]}
	for i := range c.scorers {
		sc := &c.scorers[i]
		switch {
		case sc.Normal() == plugin.AsIs:
		case sc.nonZero == 0:
			o.by.flat += sc.Weight * sc.Normal().Apply(0, 0)
		default:
			k := len(o.by.extra)
			if k == len(o.raws) {
				o.raws = append(o.raws, ranking{})
			}
			o.raws[k].rebuild(rows, func(n cluster.NodeIdx) int64 { return c.measured(sc, n) })
			o.by.extra = append(o.by.extra, normalised{at: i, raw: sc.raw, normal: sc.Normal(), weight: sc.Weight, largest: o.raws[k].largest()})
		}
	}
	o.rank.rebuild(rows, c.totalOf)
}

// measured is a row's raw score if it counts for what others are measured by.
func (c *class) measured(sc *prepared, n cluster.NodeIdx) int64 {
	if c.verdicts[n] != plugin.Fits {
		return unranked
	}
	return sc.raw[n]
}

// largest is the best score, at least 0.
func (r *ranking) largest() int64 { return max(0, r.top().best) }

// rerank ranks rows that were just judged and scored.
func (c *class) rerank(rows []cluster.NodeIdx) {
	o := &c.order
	o.by.base = c.base
	o.rank.grow(len(c.verdicts))
	for k := range o.by.extra {
		e, raws := &o.by.extra[k], &o.raws[k]
		e.raw = c.scorers[e.at].raw
		raws.grow(len(c.verdicts))
		for _, n := range rows {
			raws.set(n, c.measured(&c.scorers[e.at], n))
		}
	}
	if c.measuresChanged() {
		c.rankAll()
		return
	}
	for _, n := range rows {
		o.rank.set(n, c.totalOf(n))
	}
}

// measuresChanged reports whether rows that did not change have other totals now.
func (c *class) measuresChanged() bool {
	o, k := &c.order, 0
	for i := range c.scorers {
		sc := &c.scorers[i]
		switch {
		case sc.Normal() == plugin.AsIs:
		case k < len(o.by.extra) && o.by.extra[k].at == i:
			if o.raws[k].largest() != o.by.extra[k].largest {
				return true
			}
			k++
		case sc.nonZero > 0:
			return true
		}
	}
	return false
}

// chooseRanked is choose for a decision that depends on the class alone: it reads no row.
func (c *class) chooseRanked(sr *search, out *Outcome, draw func(n int) int) {
	sums, rows := &c.order.rank.stretches, byRow(&c.order.rank)
	if c.coded.kin != nil {
		sums, rows = &c.coded.stretches, &c.coded
	}
	sr.by, out.Path = c.order.by, Ranked
	out.Feasible = sums.ranked
	top := sums.top()
	switch {
	case top.rows == 0:
		return
	case out.Feasible > 1 && c.broken != nil:
		out.Err = c.broken
		return
	}
	out.Total, out.Tied = top.best, int(top.rows)
	if out.Tied == 1 {
		out.Node = sums.kthOf(rows, top.best, 0)
		out.RunnerUp, out.RunnerUpTotal = sums.nextOf(rows, out.Node)
		return
	}
	k := checkedDraw(draw, out.Tied)
	other := 0
	if k == 0 {
		other = 1
	}
	out.Node, out.RunnerUp, out.RunnerUpTotal = sums.kthOf(rows, top.best, k), sums.kthOf(rows, top.best, other), top.best
}

// ranked reports whether the class alone decides.
func (sr *search) ranked() bool {
	return sr.class != nil && sr.rows == nil && len(sr.copied) == 0 && !sr.placer.eachRow
}

// largestOf is what the raw scores of a scorer of the class are measured by.
func (t *totals) largestOf(scorer int) int64 {
	for i := range t.extra {
		if t.extra[i].at == scorer {
			return t.extra[i].largest
		}
	}
	return 0
}
