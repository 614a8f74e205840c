// SPDX-License-Identifier: Apache-2.0

package view

// ring keeps the newest items, numbered from 1 on.
type ring[T any] struct {
	items []T // Invariant: item n is items[n % len(items)].
	// last is the number of the newest item, 0 if there is none.
	last uint64
}

func newRing[T any](size int) ring[T] { return ring[T]{items: make([]T, size)} }

// add appends an item and returns its number, and the item that it replaced.
func (r *ring[T]) add(item T) (number uint64, fell T) {
	r.last++
	at := &r.items[r.last%uint64(len(r.items))]
	fell = *at
	*at = item
	return r.last, fell
}

// first returns the number of the oldest item that is kept; last+1 if there is none.
func (r *ring[T]) first() uint64 {
	if r.last <= uint64(len(r.items)) {
		return 1
	}
	return r.last - uint64(len(r.items)) + 1
}

// at returns the item with a number between first and last.
func (r *ring[T]) at(number uint64) T { return r.items[number%uint64(len(r.items))] }
