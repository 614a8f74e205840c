// SPDX-License-Identifier: Apache-2.0

package gang

// conflictSet is a conflict set: positions before one whose choices contributed to a dead end.
type conflictSet struct {
	before int
	all    bool
	bits   []uint64
}

func (d *backtracker) none(before int) conflictSet {
	return conflictSet{before: before, bits: make([]uint64, (before+63)/64)}
}

func (b conflictSet) everything() conflictSet { return conflictSet{before: b.before, all: true} }

func (b *conflictSet) add(pos int) {
	if !b.all && pos < b.before {
		b.bits[pos/64] |= 1 << (pos % 64)
	}
}

func (b *conflictSet) has(pos int) bool { return b.all || b.bits[pos/64]&(1<<(pos%64)) != 0 }

// join adds the positions of another set, except pos and those after it.
func (b *conflictSet) join(other conflictSet, pos int) {
	if other.all {
		*b = b.everything()
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
