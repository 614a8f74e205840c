// SPDX-License-Identifier: Apache-2.0

package classes

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Totals computes the weighted total of a row by the node-local scorers: a base, and what normalised scores add. It is
// valid until the Cache is used again.
type Totals struct {
	base  []int64 // row -> weighted sum of the scores that need no normalising; nil for a class in its compact form
	flat  int64   // what every row gets from scorers whose raw score is 0 everywhere
	extra []normalisedScore
}

// normalisedScore is a scorer whose raw scores are normalised.
type normalisedScore struct {
	scorer  int     // index in the scorers of the class. Invariant: increasing
	raw     []int64 // row -> raw score; nil for a class in its compact form
	normal  plugin.Normal
	weight  int64
	largest int64 // raw score of the rows that fit. Invariant: 0 <= largest
}

// Of returns the total of a row that fits. Must not be called on the totals of a ranking.
func (t *Totals) Of(n cluster.NodeIdx) int64 {
	total := t.base[n] + t.flat
	for i := range t.extra {
		e := &t.extra[i]
		total += e.weight * e.normal.Apply(e.raw[n], e.largest)
	}
	return total
}

// Flat returns the column and the constant whose sum is the total of a row. ok is false if scores are normalised.
func (t *Totals) Flat() (base []int64, constant int64, ok bool) {
	return t.base, t.flat, len(t.extra) == 0
}

// largestOf is the largest raw score of a scorer of the class, by which its scores are normalised.
func (t *Totals) largestOf(scorer int) int64 {
	for i := range t.extra {
		if t.extra[i].scorer == scorer {
			return t.extra[i].largest
		}
	}
	return 0
}
