// SPDX-License-Identifier: Apache-2.0

package classes

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// order is the rows of a class by their totals.
type order struct {
	totals Totals // how the totals are computed
	// generation is how often all rows were ranked anew, from 1.
	generation uint64
	// ranking and raws are those of a class in its full form. raws are the raw scores of the rows that fit, by position
	// in totals.extra: their largest is by what they are normalised.
	ranking ranking
	raws    []ranking
}

// rankAll ranks all rows anew.
func (o *order) rankAll(r *results) {
	rows := len(r.verdicts)
	o.generation++
	o.totals = Totals{base: r.base, extra: o.totals.extra[:0]}
	for i := range r.scorers {
		sc := &r.scorers[i]
		switch {
		case sc.Normal() == plugin.AsIs:
		case sc.nonZero == 0:
			o.totals.flat += sc.Weight * sc.Normal().Apply(0, 0)
		default:
			k := len(o.totals.extra)
			if k == len(o.raws) {
				o.raws = append(o.raws, ranking{})
			}
			o.raws[k].rebuild(rows, func(n cluster.NodeIdx) int64 { return r.feasibleRaw(sc, n) })
			o.totals.extra = append(o.totals.extra, normalisedScore{
				scorer: i, raw: sc.raw, normal: sc.Normal(), weight: sc.Weight, largest: o.raws[k].largest(),
			})
		}
	}
	o.ranking.rebuild(rows, func(n cluster.NodeIdx) int64 { return o.totalOf(r, n) })
}

// rank ranks rows that were just evaluated.
func (o *order) rank(r *results, rows []cluster.NodeIdx) {
	o.totals.base = r.base
	o.ranking.grow(len(r.verdicts))
	for k := range o.totals.extra {
		e, raws := &o.totals.extra[k], &o.raws[k]
		e.raw = r.scorers[e.scorer].raw
		raws.grow(len(r.verdicts))
		for _, n := range rows {
			raws.set(n, r.feasibleRaw(&r.scorers[e.scorer], n))
		}
	}
	if o.largestChanged(r) {
		o.rankAll(r)
		return
	}
	for _, n := range rows {
		o.ranking.set(n, o.totalOf(r, n))
	}
}

// totalOf is a row's total for the ranking.
func (o *order) totalOf(r *results, n cluster.NodeIdx) int64 {
	if r.verdicts[n] != plugin.Fits {
		return unranked
	}
	return o.totals.Of(n)
}

// feasibleRaw is a row's raw score, unranked if the row does not fit.
func (r *results) feasibleRaw(sc *scorer, n cluster.NodeIdx) int64 {
	if r.verdicts[n] != plugin.Fits {
		return unranked
	}
	return sc.raw[n]
}

// largestChanged reports whether rows that did not change have other totals now.
func (o *order) largestChanged(r *results) bool {
	k := 0
	for i := range r.scorers {
		sc := &r.scorers[i]
		switch {
		case sc.Normal() == plugin.AsIs:
		case k < len(o.totals.extra) && o.totals.extra[k].scorer == i:
			if o.raws[k].largest() != o.totals.extra[k].largest {
				return true
			}
			k++
		case sc.nonZero > 0:
			return true
		}
	}
	return false
}
