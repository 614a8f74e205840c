// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"math"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/preempt/victim"
)

// sparedLoss spares pods behind the cut where no budget protects any, and returns the loss of the others.
func sparedLoss(sm *victim.Shortage, behind []victim.Entry) Loss {
	l := Loss{Highest: math.MinInt32, Oldest: victim.NotStarted}
	for i := range behind {
		if !sm.PutBack(&behind[i]) {
			l.Victims++
			l.add(behind[i].Priority, behind[i].Start)
		}
	}
	return l
}

// best finds the candidate of the smallest loss and tries as few rows as possible.
func (f *Finder) best() (best Candidate, found bool) {
	f.boundAll()
	f.bounds.Order()
	var lowest victim.Bound[Loss]
	for len(f.bounds) > 0 {
		next := f.bounds.Pop()
		if found && !victim.Before(&next, &lowest) {
			break
		}
		if !f.findOn(next.Row) {
			continue
		}
		if b := victim.On(next.Row, f.loss); !found || victim.Before(&b, &lowest) {
			lowest, found = b, true
			best = candidate(next.Row, f.victims, f.loss)
		}
	}
	if !found {
		for _, n := range f.hopeless {
			f.try(n) // for the reasons
		}
	}
	return best, found
}

func boundOf(c *Candidate) victim.Bound[Loss] { return victim.On(c.Node, c.Loss) }

// cheapest finds at most count candidates of the smallest losses, the smallest first.
func (f *Finder) cheapest(count int) (found []Candidate) {
	f.boundAll()
	f.bounds.Order()
	for len(f.bounds) > 0 {
		next := f.bounds.Pop()
		if len(found) == count {
			if last := boundOf(&found[count-1]); !victim.Before(&next, &last) {
				break
			}
		}
		if !f.findOn(next.Row) {
			continue
		}
		is := victim.On(next.Row, f.loss)
		at := slices.IndexFunc(found, func(c Candidate) bool {
			other := boundOf(&c)
			return victim.Before(&is, &other)
		})
		if at < 0 {
			at = len(found)
		}
		found = slices.Insert(found, at, candidate(next.Row, f.victims, f.loss))
		found = found[:min(len(found), count)]
	}
	if len(found) == 0 {
		for _, n := range f.hopeless {
			f.try(n) // for the reasons
		}
	}
	return found
}

// boundAll goes through all rows once and leaves a bound for each on which evictions may help.
func (f *Finder) boundAll() {
	f.bounds, f.hopeless = f.bounds[:0], f.hopeless[:0]
	if f.question.Pod.Spec.Priority <= f.index.floor {
		f.reasons.counts[noVictims] += len(f.rows)
		f.reasons.nodes += len(f.rows)
		return
	}
	sure := victim.On(cluster.NoNode, Loss{}) // the best of the rows whose loss is known exactly
	for _, n := range f.rows {
		shelf := &f.index.nodes[n]
		lower := shelf.below(f.question.Pod.Spec.Priority)
		if len(lower) == 0 {
			f.reasons.count(noVictims)
			f.reasons.nodes++
			continue
		}
		cut := len(lower) - 1
		if !shelf.tooLarge {
			f.shortage.Measure(n)
			for _, other := range f.question.WhatIf.ExpectedOn(n) { // the evictions must free capacity for them too
				f.shortage.AddExpected(&other.Spec.Held)
			}
			var enough bool
			if cut, enough = f.shortage.Level(lower); !enough {
				f.noteTooFew(n)
				continue
			}
		}
		switch {
		case !f.amountsDecide(n):
			if b, ok := f.lowerBound(n, lower, lower[cut].Priority); ok {
				f.bounds = append(f.bounds, b)
			}
		case f.Budgets.Len() > 0:
			f.bounds = append(f.bounds, victim.On(n, least(lower[cut:], lower[cut].Priority)))
		case f.question.Best > 0:
			f.bounds = append(f.bounds, victim.On(n, sparedLoss(&f.shortage, lower[cut:])))
		case sure.Row != cluster.NoNode && lower[cut].Priority > sure.Loss.Highest:
		default:
			b := victim.On(n, sparedLoss(&f.shortage, lower[cut:]))
			if sure.Row == cluster.NoNode || victim.Before(&b, &sure) {
				sure = b
			}
		}
	}
	if sure.Row != cluster.NoNode {
		f.bounds = append(f.bounds, sure)
	}
}

// noteTooFew counts a row on which all pods that may be evicted do not hold enough.
func (f *Finder) noteTooFew(n cluster.NodeIdx) {
	if f.amountsDecide(n) {
		f.reasons.countShortage(&f.shortage)
		return
	}
	f.hopeless = append(f.hopeless, n)
}

// lowerBound bounds the loss on a row where one victim must have at least the given priority, and where one must
// matter to the filter that rejected the row. ok is false if no pod does.
func (f *Finder) lowerBound(n cluster.NodeIdx, lower []victim.Entry, highest int32) (b victim.Bound[Loss], ok bool) {
	matters, known := f.question.WhatIf.RejectedFor(n)
	if !known || !f.question.WhatIf.Selective(n) {
		return victim.On(n, least(lower, highest)), true
	}
	for i := len(lower) - 1; i >= 0; i-- {
		c := &lower[i]
		if !matters(c.Pod) {
			continue
		}
		// The least important pod that matters. If its priority is the highest of all victims, the bound has the
		// latest start of the pods of which one must be evicted.
		if c.Priority >= highest {
			least := Loss{Highest: c.Priority, Sum: int64(c.Priority) + raise, Victims: 1, Oldest: c.Start}
			return victim.On(n, least), true
		}
		return victim.On(n, least(lower, highest)), true
	}
	reasons, stands := f.question.WhatIf.RejectedWithout(n, func(visit func(*cluster.Pod)) {
		for i := range lower {
			visit(lower[i].Pod)
		}
	})
	if !stands {
		f.hopeless = append(f.hopeless, n)
		return b, false
	}
	for _, reason := range reasons {
		f.reasons.count(reason)
	}
	f.reasons.nodes++
	return b, false
}

// least is the smallest possible loss if some of the pods are evicted, among them one of the given priority or above.
func least(pods []victim.Entry, highest int32) Loss {
	l := Loss{Highest: highest, Sum: int64(highest) + raise, Victims: 1, Oldest: math.MinInt64}
	for i := range pods {
		if pods[i].Priority == highest {
			l.Oldest = max(l.Oldest, pods[i].Start)
		}
	}
	return l
}

// amountsDecide reports whether sums alone determine the victims on a row.
func (f *Finder) amountsDecide(n cluster.NodeIdx) bool {
	return f.shortage.Exact && !f.index.nodes[n].tooLarge && f.question.WhatIf.ByAmounts(n)
}

// findOn finds the victims on a row, and leaves them in f.victims and their loss in f.loss.
func (f *Finder) findOn(n cluster.NodeIdx) bool {
	switch {
	case f.amountsDecide(n):
		f.findByAmounts(n)
		return true
	case !f.index.nodes[n].tooLarge && f.shortage.Known && f.question.WhatIf.Selective(n):
		return f.findByRelevance(n)
	}
	_, ok := f.try(n)
	return ok
}

// findByAmounts is try for a row on which sums decide and the pods that may be evicted hold enough.
func (f *Finder) findByAmounts(n cluster.NodeIdx) {
	lower := f.removeLower(n)
	f.protected = f.Budgets.Protect(lower, f.protected)
	f.spare(lower, func(i int) bool { return f.shortage.PutBack(&lower[i]) })
}

// removeLower removes all pods from the sums of a row that may be evicted, and returns them.
func (f *Finder) removeLower(n cluster.NodeIdx) (lower []victim.Entry) {
	lower = f.index.nodes[n].below(f.question.Pod.Spec.Priority)
	f.shortage.Measure(n)
	for i := range lower {
		f.shortage.Remove(&lower[i])
	}
	return lower
}

// findByRelevance is try for a row on which the pods that may be evicted hold enough and most matter to no filter.
// Sums decide about those; the filters are run for the others alone. If it finds no victims, the row is kept for try,
// which has the reasons.
func (f *Finder) findByRelevance(n cluster.NodeIdx) bool {
	f.tried++
	lower, r := f.removeLower(n), f.question.WhatIf
	r.Open(n)
	for i := range lower {
		if r.Matters(lower[i].Pod) {
			r.Remove(lower[i].Pod)
		}
	}
	gone := lower
	fits := r.FitsApartFromAmounts()
	if fits {
		f.protected = f.Budgets.Protect(lower, f.protected)
		f.spare(lower, func(i int) bool {
			c := &lower[i]
			if !f.shortage.PutBack(c) {
				return false
			}
			if !r.Matters(c.Pod) {
				return true
			}
			r.Add(c.Pod)
			if r.FitsApartFromAmounts() {
				return true
			}
			r.Remove(c.Pod)
			f.shortage.Remove(c)
			return false
		})
		gone = f.victims
	}
	for i := range gone {
		if r.Matters(gone[i].Pod) {
			r.Add(gone[i].Pod)
		}
	}
	if !fits || len(gone) == 0 {
		f.hopeless = append(f.hopeless, n)
		return false
	}
	return true
}
