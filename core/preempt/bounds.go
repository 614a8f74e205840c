// SPDX-License-Identifier: Apache-2.0

package preempt

import "github.com/kumiki-scheduler/kumiki/core/cluster"

// bound is a row with a lower bound on the loss of all its sets of victims.
type bound struct {
	least Loss
	row   cluster.NodeIdx
}

// before orders bounds: the smaller loss first; of equal losses, the lower row.
func (b *bound) before(other *bound) bool {
	if d := b.least.Compare(other.least); d != 0 {
		return d < 0
	}
	return b.row < other.row
}

// bounds is a heap ordered by before.
type bounds []bound

func (b bounds) order() {
	for i := len(b)/2 - 1; i >= 0; i-- {
		b.sink(i)
	}
}

func (b bounds) sink(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(b); child++ {
			if b[child].before(&b[least]) {
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

// pop removes and returns the first bound.
func (b *bounds) pop() bound {
	first, last := (*b)[0], len(*b)-1
	(*b)[0] = (*b)[last]
	*b = (*b)[:last]
	b.sink(0)
	return first
}
