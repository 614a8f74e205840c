// SPDX-License-Identifier: Apache-2.0

package timing

// blockSize is how many values of a ring are allocated at once.
const blockSize = 1024

// ring keeps the newest values. It allocates as it fills.
type ring[T any] struct {
	blocks [][]T
	max    uint64
	// next is the position of the next value; the first one had position 0.
	next uint64
	// block is the one into which next goes, unless it is the first of its block.
	block []T
}

// newRing returns a ring of at least max values, rounded up to whole blocks.
func newRing[T any](max int) ring[T] {
	return ring[T]{max: uint64((max + blockSize - 1) / blockSize * blockSize)}
}

// push returns the place of the next value, which holds an old one, and its position. It divides by a constant alone:
// a division by max would take longer than the rest.
func (r *ring[T]) push() (*T, uint64) {
	at := r.next % blockSize
	if at == 0 {
		r.turn()
	}
	r.next++
	return &r.block[at], r.next - 1
}

// turn makes the block of next the one that is written.
func (r *ring[T]) turn() {
	i := r.next % r.max / blockSize
	if i == uint64(len(r.blocks)) {
		r.blocks = append(r.blocks, make([]T, blockSize))
	}
	r.block = r.blocks[i]
}

// add appends a value and returns its position.
func (r *ring[T]) add(v T) uint64 {
	slot, pos := r.push()
	*slot = v
	return pos
}

// first is the position of the oldest value that is kept, which is also the number of those that are not.
func (r *ring[T]) first() uint64 {
	if r.next > r.max {
		return r.next - r.max
	}
	return 0
}

// at returns the value at a position that is kept.
func (r *ring[T]) at(pos uint64) *T {
	i := pos % r.max
	return &r.blocks[i/blockSize][i%blockSize]
}
