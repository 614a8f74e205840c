// SPDX-License-Identifier: Apache-2.0

package gang

// blame is a conflict set: positions before one whose choices contributed to a dead end.
type blame struct {
	before int
	all    bool
	bits   []uint64
}

func (d *dig) none(before int) blame {
	return blame{before: before, bits: make([]uint64, (before+63)/64)}
}

func (b blame) everyone() blame { return blame{before: b.before, all: true} }

func (b *blame) add(pos int) {
	if !b.all && pos < b.before {
		b.bits[pos/64] |= 1 << (pos % 64)
	}
}

func (b *blame) has(pos int) bool { return b.all || b.bits[pos/64]&(1<<(pos%64)) != 0 }

// join adds the positions of another set, except pos and those after it.
func (b *blame) join(other blame, pos int) {
	if other.all {
		*b = b.everyone()
	}
	if b.all {
		return
	}
	for w := range b.bits {
		b.bits[w] |= other.bits[w]
	}
	if pos/64 < len(b.bits) {
		b.bits[pos/64] &^= 1 << (pos % 64)
	}
}
