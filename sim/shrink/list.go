// SPDX-License-Identifier: Apache-2.0

package shrink

// List returns a part of a list, in its order, for which holds is true and from which no single entry can be removed.
// holds must be true for the whole list; it is not called for it again.
func List[T any](whole []T, holds func([]T) bool) []T {
	parts := 2
	for len(whole) > 0 {
		size := (len(whole) + parts - 1) / parts
		removed := false
		for from := 0; from < len(whole); {
			to := min(from+size, len(whole))
			rest := make([]T, 0, len(whole)-(to-from))
			rest = append(append(rest, whole[:from]...), whole[to:]...)
			if holds(rest) {
				whole, removed = rest, true
				continue // what follows is at from now
			}
			from = to
		}
		switch {
		case removed && size > 1:
			parts = max(2, parts-1)
		case size > 1:
			parts = min(2*parts, len(whole))
		case !removed:
			return whole
		}
	}
	return whole
}

// Number returns a number from least to n for which holds is true, tried downwards: the least, and then halves of the
// distance. holds must be true for n.
func Number(least, n int, holds func(int) bool) int {
	if n <= least {
		return n
	}
	if holds(least) {
		return least
	}
	for low := least; n-low > 1; {
		if middle := low + (n-low)/2; holds(middle) {
			n = middle
		} else {
			low = middle
		}
	}
	return n
}
