// SPDX-License-Identifier: Apache-2.0

package units

import "github.com/kumiki-scheduler/kumiki/core/cluster"

// rowBound is a row with a lower bound on its loss, or with the loss itself.
type rowBound struct {
	loss Loss
	row  cluster.NodeIdx
}

// before orders bounds: the smaller loss first; of equal losses, the lower row.
func (l *rowBound) before(other *rowBound) bool {
	if d := l.loss.Compare(other.loss); d != 0 {
		return d < 0
	}
	return l.row < other.row
}

// boundHeap is a heap ordered by before.
type boundHeap []rowBound

func (q boundHeap) order() {
	for i := len(q)/2 - 1; i >= 0; i-- {
		q.sink(i)
	}
}

func (q boundHeap) sink(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(q); child++ {
			if q[child].before(&q[least]) {
				least = child
			}
		}
		if least == i {
			return
		}
		q[i], q[least] = q[least], q[i]
		i = least
	}
}

// pop removes and returns the first bound.
func (q *boundHeap) pop() rowBound {
	first, last := (*q)[0], len(*q)-1
	(*q)[0] = (*q)[last]
	*q = (*q)[:last]
	q.sink(0)
	return first
}
