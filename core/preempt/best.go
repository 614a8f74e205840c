// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"math"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// bound is a row with a loss that none of its sets of victims can be below.
type bound struct {
	least Loss
	row   cluster.NodeIdx
}

// before orders bounds: the smaller loss first, of equal ones the lower row.
func (b *bound) before(other *bound) bool {
	if d := b.least.compare(other.least); d != 0 {
		return d < 0
	}
	return b.row < other.row
}

// bounds are a heap by before.
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

// pop takes the first bound out.
func (b *bounds) pop() bound {
	first, last := (*b)[0], len(*b)-1
	(*b)[0] = (*b)[last]
	*b = (*b)[:last]
	b.sink(0)
	return first
}

// best finds the candidate of the smallest loss, and tries as few rows as it can.
func (f *Finder) best() (best Candidate, found bool) {
	f.survey()
	f.bounds.order()
	var lowest bound
	for len(f.bounds) > 0 {
		next := f.bounds.pop()
		if found && !next.before(&lowest) {
			break
		}
		if !f.settle(next.row) {
			continue
		}
		if b := (bound{f.loss, next.row}); !found || b.before(&lowest) {
			lowest, found = b, true
			best = candidate(next.row, f.gone, f.loss)
		}
	}
	if !found {
		for _, n := range f.hopeless {
			f.try(n) // to tell why
		}
	}
	return best, found
}

// cheapest finds the candidates of the smallest losses, at most count of them, the smallest first.
func (f *Finder) cheapest(count int) (found []Candidate) {
	f.survey()
	f.bounds.order()
	for len(f.bounds) > 0 {
		next := f.bounds.pop()
		if len(found) == count && !next.before(&bound{found[count-1].Loss, found[count-1].Node}) {
			break
		}
		if !f.settle(next.row) {
			continue
		}
		is := bound{f.loss, next.row}
		at := slices.IndexFunc(found, func(c Candidate) bool { return is.before(&bound{c.Loss, c.Node}) })
		if at < 0 {
			at = len(found)
		}
		found = slices.Insert(found, at, candidate(next.row, f.gone, f.loss))
		found = found[:min(len(found), count)]
	}
	if len(found) == 0 {
		for _, n := range f.hopeless {
			f.try(n) // to tell why
		}
	}
	return found
}

// survey looks at every row once and leaves bounds.
func (f *Finder) survey() {
	f.bounds, f.hopeless = f.bounds[:0], f.hopeless[:0]
	if f.q.Pod.Spec.Priority <= f.shelves.floor {
		f.histo.counts[nobodyToEvict] += len(f.rows)
		f.histo.nodes += len(f.rows)
		return
	}
	sure := bound{row: cluster.NoNode} // the best of those rows that are known exactly
	for _, n := range f.rows {
		shelf := &f.shelves.rows[n]
		lower := shelf.below(f.q.Pod.Spec.Priority)
		if len(lower) == 0 {
			f.histo.count(nobodyToEvict)
			f.histo.nodes++
			continue
		}
		cut := len(lower) - 1
		if !shelf.huge {
			f.sums.look(n)
			for _, other := range f.q.Relief.ExpectedOn(n) { // whoever goes makes room for them too
				f.sums.expect(&other.Spec.Held)
			}
			var enough bool
			if cut, enough = f.sums.level(lower); !enough {
				f.out(n)
				continue
			}
		}
		switch {
		case !f.decides(n):
			if b, ok := f.atLeast(n, lower, lower[cut].priority); ok {
				f.bounds = append(f.bounds, b)
			}
		case len(f.budgets.list) > 0:
			f.bounds = append(f.bounds, bound{least(lower[cut:], lower[cut].priority), n})
		case f.q.Best > 0:
			f.bounds = append(f.bounds, bound{f.sums.loss(lower[cut:]), n})
		case sure.row != cluster.NoNode && lower[cut].priority > sure.least.Highest:
		default:
			if b := (bound{f.sums.loss(lower[cut:]), n}); sure.row == cluster.NoNode || b.before(&sure) {
				sure = b
			}
		}
	}
	if sure.row != cluster.NoNode {
		f.bounds = append(f.bounds, sure)
	}
}

// out notes a row on which all pods that may go do not hold enough.
func (f *Finder) out(n cluster.NodeIdx) {
	if f.decides(n) {
		f.sums.tell(&f.histo)
		return
	}
	f.hopeless = append(f.hopeless, n)
}

// atLeast bounds a row on which whoever goes must reach a priority, and where a pod that matters to the filter which
// rejected the row must be among them. ok is false where there is no such pod.
func (f *Finder) atLeast(n cluster.NodeIdx, lower []cell, highest int32) (b bound, ok bool) {
	matters, known := f.q.Relief.RejectedFor(n)
	if !known || !f.q.Relief.Selective(n) {
		return bound{least(lower, highest), n}, true
	}
	for i := len(lower) - 1; i >= 0; i-- {
		c := &lower[i]
		if !matters(c.pod) {
			continue
		}
		// The least important of those that matter. Should the highest priority of all victims be its own, it is the last
		// started of those one of which must go.
		if c.priority >= highest {
			return bound{Loss{Highest: c.priority, Sum: int64(c.priority) + raise, Victims: 1, Oldest: c.start}, n}, true
		}
		return bound{least(lower, highest), n}, true
	}
	reasons, stands := f.q.Relief.Stands(n, func(visit func(*cluster.Pod)) {
		for i := range lower {
			visit(lower[i].pod)
		}
	})
	if !stands {
		f.hopeless = append(f.hopeless, n)
		return b, false
	}
	for _, reason := range reasons {
		f.histo.count(reason)
	}
	f.histo.nodes++
	return b, false
}

// least is what it costs at least when some of the pods go, one of this priority or more among them.
func least(pods []cell, highest int32) Loss {
	l := Loss{Highest: highest, Sum: int64(highest) + raise, Victims: 1, Oldest: math.MinInt64}
	for i := range pods {
		if pods[i].priority == highest {
			l.Oldest = max(l.Oldest, pods[i].start)
		}
	}
	return l
}

// decides tells whether sums alone say who must go from a row.
func (f *Finder) decides(n cluster.NodeIdx) bool {
	return f.sums.exact && !f.shelves.rows[n].huge && f.q.Relief.ByAmounts(n)
}

// settle finds who must go from a row, and leaves them in gone and what it costs in loss.
func (f *Finder) settle(n cluster.NodeIdx) bool {
	switch {
	case f.decides(n):
		f.sum(n)
		return true
	case !f.shelves.rows[n].huge && f.sums.known && f.q.Relief.Selective(n):
		return f.sift(n)
	}
	_, ok := f.try(n)
	return ok
}

// sum is try for a row on which sums decide and the pods that may go hold enough.
func (f *Finder) sum(n cluster.NodeIdx) {
	lower := f.takeAll(n)
	f.shielded = f.budgets.protect(lower, f.shielded)
	f.spare(lower, func(i int) bool { return f.sums.back(&lower[i]) })
}

// takeAll supposes in the sums that all pods of a row have gone that may go.
func (f *Finder) takeAll(n cluster.NodeIdx) (lower []cell) {
	lower = f.shelves.rows[n].below(f.q.Pod.Spec.Priority)
	f.sums.look(n)
	for i := range lower {
		f.sums.take(&lower[i])
	}
	return lower
}

// sift is try for a row on which the pods that may go hold enough, and where most pods matter to no filter: those are left
// to sums, and the filters are asked about the others alone. Where it finds nobody, it leaves it to try to tell why.
func (f *Finder) sift(n cluster.NodeIdx) bool {
	f.tried++
	lower, r := f.takeAll(n), f.q.Relief
	r.Open(n)
	for i := range lower {
		if r.Matters(lower[i].pod) {
			r.Remove(lower[i].pod)
		}
	}
	gone := lower
	fits := r.FitsBesides()
	if fits {
		f.shielded = f.budgets.protect(lower, f.shielded)
		f.spare(lower, func(i int) bool {
			c := &lower[i]
			if !f.sums.back(c) {
				return false
			}
			if !r.Matters(c.pod) {
				return true
			}
			r.Add(c.pod)
			if r.FitsBesides() {
				return true
			}
			r.Remove(c.pod)
			f.sums.take(c)
			return false
		})
		gone = f.gone
	}
	for i := range gone {
		if r.Matters(gone[i].pod) {
			r.Add(gone[i].pod)
		}
	}
	if !fits || len(gone) == 0 {
		f.hopeless = append(f.hopeless, n)
		return false
	}
	return true
}
