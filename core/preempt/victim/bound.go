// SPDX-License-Identifier: Apache-2.0

package victim

import "github.com/kumiki-scheduler/kumiki/core/cluster"

// loss is what victims cost. Compare is negative if the receiver is smaller.
type loss[L any] interface{ Compare(other L) int }

// Bound is a row with a lower bound on the loss of each of its sets of victims, or with the loss itself.
type Bound[L loss[L]] struct {
	Loss L
	Row  cluster.NodeIdx
}

// On returns the bound of a row.
func On[L loss[L]](row cluster.NodeIdx, least L) Bound[L] { return Bound[L]{least, row} }

// Before orders bounds: the smaller loss first; of equal losses, the lower row.
func Before[L loss[L]](a, b *Bound[L]) bool {
	if d := a.Loss.Compare(b.Loss); d != 0 {
		return d < 0
	}
	return a.Row < b.Row
}

// Bounds is a heap ordered by Before, once Order was called.
type Bounds[L loss[L]] []Bound[L]

// Order makes a list of bounds a heap.
func (b Bounds[L]) Order() {
	for i := len(b)/2 - 1; i >= 0; i-- {
		b.sink(i)
	}
}

// Pop removes and returns the first bound. The heap must not be empty.
func (b *Bounds[L]) Pop() Bound[L] {
	first, last := (*b)[0], len(*b)-1
	(*b)[0] = (*b)[last]
	*b = (*b)[:last]
	b.sink(0)
	return first
}

func (b Bounds[L]) sink(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(b); child++ {
			if Before(&b[child], &b[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		b[i], b[least] = b[least], b[i]
		i = least
	}
}
