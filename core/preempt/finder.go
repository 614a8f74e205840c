// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/preempt/victim"
)

// Finder searches for victims of one pod, node by node. It keeps the victim index and the budgets between searches, in
// line with one store. It must not be used by two goroutines at a time.
type Finder struct {
	// Budgets are the disruption budgets and what was spent of them.
	Budgets victim.Budgets // kept

	index nodeIndex // derived: follows the store

	// Of the search in progress.
	state    cluster.Snapshot    // derived: of one search
	question Question            // derived: of one search
	rows     []cluster.NodeIdx   // derived: of one search. Nodes on which evictions may help
	shortage victim.Shortage     // derived: of one search
	reasons  histogram           // derived: of one search
	tried    int                 // derived: of one search
	bounds   victim.Bounds[Loss] // derived: of one search
	// hopeless are rows on which no eviction helps, for reasons that try reports.
	hopeless []cluster.NodeIdx // derived: of one search
	// protected: pod that may go from the current row -> its eviction violates a budget.
	protected []bool // derived: of one search

	// The victims on the row that was searched last, and their loss.
	victims []victim.Entry // derived: of one search
	loss    Loss           // derived: of one search
}

// try finds the victims on a row by removing pods from its view. ok is false if evictions do not help there
// (upstream: SelectVictimsOnNode).
func (f *Finder) try(n cluster.NodeIdx) (c Candidate, ok bool) {
	f.tried++
	lower := f.index.nodes[n].below(f.question.Pod.Spec.Priority)
	if len(lower) == 0 {
		f.reasons.count(noVictims)
		f.reasons.nodes++
		return Candidate{}, false
	}
	r := f.question.WhatIf
	r.Open(n)
	for i := range lower {
		r.Remove(lower[i].Pod)
	}
	gone := lower
	if ok = f.fits(); ok {
		f.protected = f.Budgets.Protect(lower, f.protected)
		f.spare(lower, func(i int) bool {
			r.Add(lower[i].Pod)
			v, err := r.Verdict()
			if v == plugin.Fits && err == nil {
				return true
			}
			r.Remove(lower[i].Pod)
			return false
		})
		gone = f.victims
	}
	for i := range gone {
		r.Add(gone[i].Pod)
	}
	switch {
	case !ok:
		return Candidate{}, false
	case len(gone) == 0: // an extender or a hosted plugin rejected the node, and no other filter does
		f.reasons.fail(fmt.Sprintf("expected at least one victim pod on node %q", f.state.NodeName(n)))
		return Candidate{}, false
	}
	return candidate(n, gone, f.loss), true
}

// fits reports whether the pod fits the open node as it is now, and counts the reasons if it does not.
func (f *Finder) fits() bool {
	v, err := f.question.WhatIf.Verdict()
	switch {
	case err != nil:
		f.reasons.fail(err.Error())
		return false
	case v != plugin.Fits:
		for _, reason := range f.question.WhatIf.Reasons(v) {
			f.reasons.count(reason)
		}
		f.reasons.nodes++
		return false
	}
	return true
}

// spare goes through the pods that may be evicted, those first that a budget protects. It spares each pod for which
// back reports that the preemptor still fits. The others are left in f.victims, the most important first, and their
// loss in f.loss.
func (f *Finder) spare(lower []victim.Entry, back func(i int) bool) {
	f.victims, f.loss = f.victims[:0], Loss{Highest: math.MinInt32, Oldest: victim.NotStarted}
	for _, turn := range [...]bool{true, false} {
		for i := range lower {
			if f.protected[i] != turn {
				continue
			}
			if back(i) {
				continue
			}
			f.victims = append(f.victims, lower[i])
			f.victims[len(f.victims)-1].Protected = f.protected[i]
			f.loss.Victims++
			f.loss.add(lower[i].Priority, lower[i].Start)
			if f.protected[i] {
				f.loss.Violations++
			}
		}
	}
	sortVictims(f.victims, lower)
}

// sortVictims sorts victims by importance. lower is the pods of the node in that order. Of two pods of one priority
// that have not started, the first there is the more important one: upstream gives each the time at which it lists it.
func sortVictims(victims, lower []victim.Entry) {
	position := func(e victim.Entry) int {
		return slices.IndexFunc(lower, func(l victim.Entry) bool { return l.Pod == e.Pod })
	}
	slices.SortStableFunc(victims, func(a, b victim.Entry) int {
		if order := victim.CompareImportance(a, b); order != 0 || a.Start != victim.NotStarted {
			return order
		}
		return cmp.Compare(position(a), position(b))
	})
}
