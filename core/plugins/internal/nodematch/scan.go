// SPDX-License-Identifier: Apache-2.0

package nodematch

import (
	"math/bits"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// RangeMask has the bits of word w that stand for rows lo to hi-1.
func RangeMask(w int, lo, hi cluster.NodeIdx) uint64 {
	mask := ^uint64(0)
	if first := int(lo) - w*64; first > 0 {
		mask <<= uint(first)
	}
	if beyond := w*64 + 64 - int(hi); beyond > 0 {
		mask = mask << uint(beyond) >> uint(beyond)
	}
	return mask
}

// LongRange is from how many rows on label bitmaps beat looking at the node records.
const LongRange cluster.NodeIdx = 128

// Rows computes which rows of a range match a nodeAnd, 64 rows at a time. Its memory is used again.
type Rows struct {
	Words []uint64 // word -> rows of lo/64*64 onwards that match
	term  []uint64 // the same for the term in hand
	Rule  []uint64 // the same for the rule in hand
}

// Run fills words. Rows without a node, and rows outside the range, may come out either way.
func (b *Rows) Run(s cluster.Snapshot, lo, hi cluster.NodeIdx, and *Selector) {
	first, n := int(lo)/64, (int(hi)+63)/64-int(lo)/64
	b.Words, b.term, b.Rule = Sized(b.Words, n), Sized(b.term, n), Sized(b.Rule, n)
	if !and.HasTerms {
		Fill(b.Words)
	} else {
		clear(b.Words)
		for i := range and.AnyOf {
			b.scanTerm(s, first, hi, &and.AnyOf[i])
			for w := range b.Words {
				b.Words[w] |= b.term[w]
			}
		}
	}
	for i := range and.pairs {
		b.scanRule(s, first, &and.pairs[i])
		for w := range b.Words {
			b.Words[w] &= b.Rule[w]
		}
	}
}

func (b *Rows) scanTerm(s cluster.Snapshot, first int, hi cluster.NodeIdx, t *Term) {
	Fill(b.term)
	for i := range t.Labels {
		r := &t.Labels[i]
		if r.Op == v1.NodeSelectorOpGt || r.Op == v1.NodeSelectorOpLt {
			// Only nodes with the label can match; the numbers are compared below.
			b.loadKey(s, first, r.Key)
		} else {
			b.scanRule(s, first, r)
		}
		for w := range b.term {
			b.term[w] &= b.Rule[w]
		}
	}
	for i := range t.Fields {
		b.applyField(s, first, &t.Fields[i])
	}
	for i := range t.Labels {
		if r := &t.Labels[i]; r.Op == v1.NodeSelectorOpGt || r.Op == v1.NodeSelectorOpLt {
			b.compare(s, first, hi, r)
		}
	}
}

// scanRule fills rule with the rows that match a rule without numbers.
func (b *Rows) scanRule(s cluster.Snapshot, first int, r *LabelRule) {
	switch r.Op {
	case v1.NodeSelectorOpExists, v1.NodeSelectorOpDoesNotExist:
		b.loadKey(s, first, r.Key)
	default:
		clear(b.Rule)
		for _, v := range r.Values {
			Or(b.Rule, s.WithLabel(r.Key, v), first)
		}
	}
	if r.Op == v1.NodeSelectorOpNotIn || r.Op == v1.NodeSelectorOpDoesNotExist {
		for w := range b.Rule {
			b.Rule[w] = ^b.Rule[w]
		}
	}
}

func (b *Rows) loadKey(s cluster.Snapshot, first int, key string) {
	clear(b.Rule)
	Or(b.Rule, s.WithLabelKey(key), first)
}

// applyField narrows term to the rows that match a field rule: one row or all others.
func (b *Rows) applyField(s cluster.Snapshot, first int, f *fieldRule) {
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
func (b *Rows) compare(s cluster.Snapshot, first int, hi cluster.NodeIdx, r *LabelRule) {
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

// Reject writes v where a row of the range that fits so far does not match.
func (b *Rows) Reject(lo, hi cluster.NodeIdx, v plugin.Verdict, out []plugin.Verdict) {
	first := int(lo) / 64
	for w, matching := range b.Words {
		for word := ^matching & RangeMask(first+w, lo, hi); word != 0; word &= word - 1 {
			if n := (first+w)*64 + bits.TrailingZeros64(word); out[n] == plugin.Fits {
				out[n] = v
			}
		}
	}
}

// Add adds weight to the rows of the range that match.
func (b *Rows) Add(lo, hi cluster.NodeIdx, weight int64, out []int64) {
	first := int(lo) / 64
	for w, matching := range b.Words {
		for word := matching & RangeMask(first+w, lo, hi); word != 0; word &= word - 1 {
			out[(first+w)*64+bits.TrailingZeros64(word)] += weight
		}
	}
}

func Sized(words []uint64, n int) []uint64 {
	if cap(words) < n {
		return make([]uint64, n)
	}
	return words[:n]
}

func Fill(words []uint64) {
	for w := range words {
		words[w] = ^uint64(0)
	}
}

// Or joins the words of b from first on to words.
func Or(words []uint64, b cluster.Bitmap, first int) {
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
