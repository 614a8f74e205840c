// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"math/bits"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// longRange is from how many rows on label bitmaps beat looking at the node records.
const longRange cluster.NodeIdx = 128

// scanSet computes which rows of a range match a nodeAnd, 64 rows at a time. Its memory is used again.
type scanSet struct {
	words []uint64 // word -> rows of lo/64*64 onwards that match
	term  []uint64 // the same for the term in hand
	rule  []uint64 // the same for the rule in hand
}

// scan fills words. Rows without a node, and rows outside the range, may come out either way.
func (b *scanSet) scan(s cluster.Snapshot, lo, hi cluster.NodeIdx, and *nodeAnd) {
	first, n := int(lo)/64, (int(hi)+63)/64-int(lo)/64
	b.words, b.term, b.rule = sized(b.words, n), sized(b.term, n), sized(b.rule, n)
	if !and.hasTerms {
		ones(b.words)
	} else {
		clear(b.words)
		for i := range and.anyOf {
			b.scanTerm(s, first, hi, &and.anyOf[i])
			for w := range b.words {
				b.words[w] |= b.term[w]
			}
		}
	}
	for i := range and.pairs {
		b.scanRule(s, first, &and.pairs[i])
		for w := range b.words {
			b.words[w] &= b.rule[w]
		}
	}
}

func (b *scanSet) scanTerm(s cluster.Snapshot, first int, hi cluster.NodeIdx, t *selectorTerm) {
	ones(b.term)
	for i := range t.labels {
		r := &t.labels[i]
		if r.op == v1.NodeSelectorOpGt || r.op == v1.NodeSelectorOpLt {
			// Only nodes with the label can match; the numbers are compared below.
			b.loadKey(s, first, r.key)
		} else {
			b.scanRule(s, first, r)
		}
		for w := range b.term {
			b.term[w] &= b.rule[w]
		}
	}
	for i := range t.fields {
		b.applyField(s, first, &t.fields[i])
	}
	for i := range t.labels {
		if r := &t.labels[i]; r.op == v1.NodeSelectorOpGt || r.op == v1.NodeSelectorOpLt {
			b.compare(s, first, hi, r)
		}
	}
}

// scanRule fills rule with the rows that match a rule without numbers.
func (b *scanSet) scanRule(s cluster.Snapshot, first int, r *labelRule) {
	switch r.op {
	case v1.NodeSelectorOpExists, v1.NodeSelectorOpDoesNotExist:
		b.loadKey(s, first, r.key)
	default:
		clear(b.rule)
		for _, v := range r.values {
			or(b.rule, s.WithLabel(r.key, v), first)
		}
	}
	if r.op == v1.NodeSelectorOpNotIn || r.op == v1.NodeSelectorOpDoesNotExist {
		for w := range b.rule {
			b.rule[w] = ^b.rule[w]
		}
	}
}

func (b *scanSet) loadKey(s cluster.Snapshot, first int, key string) {
	clear(b.rule)
	or(b.rule, s.WithLabelKey(key), first)
}

// applyField narrows term to the rows that match a field rule: one row or all others.
func (b *scanSet) applyField(s cluster.Snapshot, first int, f *fieldRule) {
	row, found := cluster.NoNode, false
	if f.isName {
		row, found = s.Find(f.value)
	}
	switch w := int(row)/64 - first; {
	case !f.isName: // the field is empty on every node
		if (f.value == "") != f.equal {
			clear(b.term)
		}
	case found && w >= 0 && w < len(b.term):
		bit := uint64(1) << (uint(row) % 64)
		if !f.equal {
			b.term[w] &^= bit
			return
		}
		keep := b.term[w] & bit
		clear(b.term)
		b.term[w] = keep
	case f.equal:
		clear(b.term)
	}
}

// compare keeps the rows of term that satisfy a rule with numbers.
func (b *scanSet) compare(s cluster.Snapshot, first int, hi cluster.NodeIdx, r *labelRule) {
	for w := range b.term {
		for word := b.term[w]; word != 0; word &= word - 1 {
			n := cluster.NodeIdx((first+w)*64 + bits.TrailingZeros64(word))
			if n >= hi {
				return
			}
			if node := s.Node(n); node == nil || !r.matches(node) {
				b.term[w] &^= word & -word
			}
		}
	}
}

// reject writes v where a row of the range that fits so far does not match.
func (b *scanSet) reject(lo, hi cluster.NodeIdx, v Verdict, out []Verdict) {
	first := int(lo) / 64
	for w, matching := range b.words {
		for word := ^matching & rangeMask(first+w, lo, hi); word != 0; word &= word - 1 {
			if n := (first+w)*64 + bits.TrailingZeros64(word); out[n] == Fits {
				out[n] = v
			}
		}
	}
}

// add adds weight to the rows of the range that match.
func (b *scanSet) add(lo, hi cluster.NodeIdx, weight int64, out []int64) {
	first := int(lo) / 64
	for w, matching := range b.words {
		for word := matching & rangeMask(first+w, lo, hi); word != 0; word &= word - 1 {
			out[(first+w)*64+bits.TrailingZeros64(word)] += weight
		}
	}
}

func sized(words []uint64, n int) []uint64 {
	if cap(words) < n {
		return make([]uint64, n)
	}
	return words[:n]
}

func ones(words []uint64) {
	for w := range words {
		words[w] = ^uint64(0)
	}
}

// or joins the words of b from first on to words.
func or(words []uint64, b cluster.Bitmap, first int) {
	if first >= len(b) {
		return
	}
	b = b[first:]
	if len(b) > len(words) {
		b = b[:len(words)]
	}
	for w, word := range b {
		words[w] |= word
	}
}
