// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"container/heap"
	"math"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// bound is a row with a loss that none of its sets of victims can be below.
type bound struct {
	least Loss
	row   cluster.NodeIdx
}

// before orders bounds: the smaller loss first, of equal ones the lower row.
func (b bound) before(other bound) bool {
	if d := b.least.compare(other.least); d != 0 {
		return d < 0
	}
	return b.row < other.row != (mutant == lastRow)
}

// bounds are a heap by before.
type bounds []bound

func (b bounds) Len() int           { return len(b) }
func (b bounds) Less(i, j int) bool { return b[i].before(b[j]) }
func (b bounds) Swap(i, j int)      { b[i], b[j] = b[j], b[i] }
func (b *bounds) Push(x any)        { *b = append(*b, x.(bound)) }
func (b *bounds) Pop() any {
	last := (*b)[len(*b)-1]
	*b = (*b)[:len(*b)-1]
	return last
}

// best finds the candidate of the smallest loss, and tries as few rows as it can.
func (f *Finder) best() (best Candidate, found bool) {
	sure, found := f.survey()
	if found {
		best = f.sum(sure)
	}
	heap.Init(&f.bounds)
	for len(f.bounds) > 0 {
		next := heap.Pop(&f.bounds).(bound)
		if found && !next.before(bound{best.Loss, best.Node}) {
			break
		}
		c, ok := f.settle(next.row)
		if ok && (!found || bound{c.Loss, c.Node}.before(bound{best.Loss, best.Node})) {
			best, found = c, true
		}
	}
	if !found {
		for _, n := range f.hopeless {
			f.try(n) // to tell why
		}
	}
	return best, found
}

// survey looks at every row once. It returns the best of those on which sums decide and no budget has a say, and leaves
// bounds of the others.
func (f *Finder) survey() (row cluster.NodeIdx, found bool) {
	f.bounds, f.hopeless = f.bounds[:0], f.hopeless[:0]
	var sure bound
	for _, n := range f.rows {
		shelf := &f.shelves.rows[n]
		lower := shelf.below(f.q.Pod.Spec.Priority)
		if len(lower) == 0 {
			f.histo.count(nobodyToEvict)
			f.histo.nodes++
			continue
		}
		if shelf.huge {
			f.bounds = append(f.bounds, bound{atLeast(lower, lower[len(lower)-1].priority), n})
			continue
		}
		f.sums.look(n)
		cut, enough := f.sums.level(lower)
		switch {
		case !enough && f.decides(n):
			f.sums.tell(&f.histo)
		case !enough:
			f.hopeless = append(f.hopeless, n)
		case !f.decides(n) || len(f.budgets.list) > 0:
			f.bounds = append(f.bounds, bound{atLeast(lower[cut:], lower[cut].priority), n})
		case found && lower[cut].priority > sure.least.Highest:
		default:
			if b := (bound{f.sums.loss(lower[cut:]), n}); !found || b.before(sure) {
				sure, found = b, true
			}
		}
	}
	return sure.row, found
}

// decides tells whether sums alone say who must go from a row.
func (f *Finder) decides(n cluster.NodeIdx) bool {
	return f.sums.exact && !f.shelves.rows[n].huge && f.q.Relief.ByAmounts(n)
}

// settle finds who must go from a row, by sums where they decide.
func (f *Finder) settle(n cluster.NodeIdx) (Candidate, bool) {
	if f.decides(n) {
		return f.sum(n), true
	}
	return f.try(n)
}

// sum is try for a row on which sums decide and the pods that may go hold enough.
func (f *Finder) sum(n cluster.NodeIdx) Candidate {
	lower := f.shelves.rows[n].below(f.q.Pod.Spec.Priority)
	f.sums.look(n)
	for i := range lower {
		f.sums.take(&lower[i])
	}
	f.shielded = f.budgets.protect(lower, f.shielded)
	gone, violations := f.spare(lower, func(i int) bool { return f.sums.back(&lower[i]) })
	return candidate(n, gone, violations)
}

// atLeast is what it costs at least when some of the pods go, one of this priority or more among them.
func atLeast(pods []cell, highest int32) Loss {
	l := Loss{Highest: highest, Sum: int64(highest) + raise, Victims: 1, Oldest: math.MinInt64}
	for i := range pods {
		if pods[i].priority == highest {
			l.Oldest = max(l.Oldest, pods[i].start)
		}
	}
	if mutant == boundHigh {
		l.Victims++
	}
	return l
}
