// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"fmt"
	"math"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Finder searches for victims. It keeps what it knows of pods and budgets between searches, in line with one store. It
// belongs to one goroutine.
type Finder struct {
	shelves  shelves
	unitRows unitRows
	budgets  budgets

	// Of the search in hand.
	state    cluster.Snapshot
	q        Question
	rows     []cluster.NodeIdx
	sums     sums
	histo    histogram
	tried    int
	bounds   bounds
	hopeless []cluster.NodeIdx // rows on which nobody's going helps, for reasons that try tells
	shielded []bool            // of the row in hand: its eviction would violate a budget

	// Who must go from the row that was looked at last, and what it costs.
	gone []cell
	loss Loss

	// Of the search for units in hand.
	units units
	room  room
	lone  lone
	// byLone tells that the last search was lone's, refuted that a dry run once did not confirm one: a fault, for which the
	// search that gangs need steps in. Tests read them.
	byLone, refuted bool
	scale           unitsScale
}

// Question is what a search for victims is asked.
type Question struct {
	Pod *cluster.Pod
	// Nominated is the node that was nominated for the pod before, empty for none.
	Nominated string
	// Awaited tells that pods which were evicted for this one are still there, whether or not that shows on them.
	Awaited bool
	// Relief is of the search that found no node for the pod.
	Relief *place.Relief
	// Limit ends the search once there are enough candidates; nil looks at all nodes. Draw(n) says at which of n nodes a
	// limited search begins.
	Limit *Limit
	Draw  func(n int) int
	// All lists every candidate in the answer, each found by trying its node: for foreign code that has a say.
	All bool
	// Best, when not 0, lists so many candidates of the smallest losses, the smallest first: for people, who ask what else
	// was thought of. Limit and All must be unset.
	Best int
	// Strict lets nobody go against a disruption budget.
	Strict bool
}

// Verdict is how a search ended.
type Verdict uint8

// The verdicts. What becomes of the pod's nomination follows upstream (preemption.go, Preempt).
const (
	// Evict: there is a node on which evictions make room. It is nominated.
	Evict Verdict = iota + 1
	// NotEligible: the pod may evict nobody, or not now. Its nomination stands.
	NotEligible
	// NotHelpful: no evictions make room anywhere. A nomination is taken back.
	NotHelpful
	// Failed: a filter met an error, and no candidate was found. The nomination stands.
	Failed
)

// Answer is what a search found.
type Answer struct {
	Verdict Verdict
	// Best is the candidate of the smallest loss, for Evict.
	Best Candidate
	// Candidates are all of them, for a Question of All; those found, for one with a Limit. Those that violate no budget
	// come first. For a question of the Best they are those.
	Candidates []Candidate
	// Message is upstream's text, for everything but Evict.
	Message string
	// Nodes is on how many nodes evictions might have helped, Tried how many of them were tried.
	Nodes, Tried int
}

// Candidate is a node on which the pod fits once the victims are gone.
type Candidate struct {
	Node cluster.NodeIdx
	// Victims, the most important first; at least one.
	Victims []*cluster.Pod
	Loss    Loss
	// shielded: by index in Victims, a disruption budget protects it; nil when none does, or that is not known.
	shielded []bool
}

// Shielded tells whether a disruption budget protects a victim, by its index. Of a candidate that foreign code has chosen it
// is not known.
func (c *Candidate) Shielded(victim int) bool { return c.shielded != nil && c.shielded[victim] }

// Find answers a question about the cluster as it is.
func (f *Finder) Find(s cluster.Snapshot, q Question) Answer {
	f.state, f.q, f.tried = s, q, 0
	defer func() { f.state, f.q = cluster.Snapshot{}, Question{} }()
	if why := f.notEligible(); why != "" {
		return Answer{Verdict: NotEligible, Message: heading + why}
	}
	f.rows = q.Relief.Rows(f.rows[:0])
	f.histo.begin(s.Nodes())
	if len(f.rows) == 0 {
		return Answer{Verdict: NotHelpful, Message: heading + f.histo.message()}
	}
	f.shelves.follow(s)
	f.budgets.follow(s)
	f.sums.begin(s, q.Relief)

	var a Answer
	found := false
	switch {
	case q.Limit != nil:
		a.Candidates = f.all(q.Limit.of(len(f.rows)), q.Draw(len(f.rows)))
	case q.All:
		a.Candidates = f.all(len(f.rows), 0)
	case q.Best > 0:
		a.Candidates = f.cheapest(q.Best)
	default:
		a.Best, found = f.best()
	}
	if len(a.Candidates) > 0 {
		a.Best, found = Choose(a.Candidates), true
	}
	a.Nodes, a.Tried = len(f.rows), f.tried
	switch {
	case found:
		a.Verdict = Evict
	case len(f.histo.errors) > 0:
		a.Verdict, a.Message = Failed, heading+f.histo.failure()
	default:
		a.Verdict, a.Message = NotHelpful, heading+f.histo.message()
	}
	if q.Strict {
		return strictly(a)
	}
	return a
}

// heading is how upstream begins what preemption has to say.
const heading = "preemption: "

// notEligible is why the pod may evict nobody; empty when it may (upstream: PodEligibleToPreemptOthers).
func (f *Finder) notEligible() string {
	p := f.q.Pod
	if p.Spec.NeverPreempts {
		return "not eligible due to preemptionPolicy=Never."
	}
	n, ok := f.state.Find(f.q.Nominated)
	if f.q.Nominated == "" || !ok || f.q.Relief.Hopeless(n) {
		return ""
	}
	going := f.q.Awaited
	f.state.EachPod(n, func(other *cluster.Pod, _ bool) {
		going = going || other.Preempted && other.Spec.Priority < p.Spec.Priority
	})
	if going {
		return "not eligible due to a terminating pod on the nominated node."
	}
	return ""
}

// Choose returns the candidate of the smallest loss, of several the first.
func Choose(candidates []Candidate) Candidate {
	best := candidates[0]
	for _, c := range candidates[1:] {
		if d := c.Loss.compare(best.Loss); d < 0 {
			best = c
		}
	}
	return best
}

// all tries rows, from an offset on, until there are enough candidates of which one violates no budget (upstream:
// DryRunPreemption; parallelism 1).
func (f *Finder) all(enough, offset int) []Candidate {
	var sound, violating []Candidate
	for i := range f.rows {
		c, ok := f.try(f.rows[(offset+i)%len(f.rows)])
		switch {
		case !ok:
			continue
		case c.Loss.Violations == 0:
			sound = append(sound, c)
		case len(violating) < enough:
			violating = append(violating, c)
		}
		if len(sound) > 0 && len(sound)+len(violating) >= enough {
			break
		}
	}
	return append(sound, violating...)
}

// try finds who would have to go from a row, by supposing it; ok is false when evictions do not help there (upstream:
// SelectVictimsOnNode).
func (f *Finder) try(n cluster.NodeIdx) (c Candidate, ok bool) {
	f.tried++
	lower := f.shelves.rows[n].below(f.q.Pod.Spec.Priority)
	if len(lower) == 0 {
		f.histo.count(nobodyToEvict)
		f.histo.nodes++
		return Candidate{}, false
	}
	r := f.q.Relief
	r.Open(n)
	for i := range lower {
		r.Remove(lower[i].pod)
	}
	gone := lower
	if ok = f.fits(); ok {
		f.shielded = f.budgets.protect(lower, f.shielded)
		f.spare(lower, func(i int) bool {
			r.Add(lower[i].pod)
			v, err := r.Verdict()
			if v == plugin.Fits && err == nil {
				return true
			}
			r.Remove(lower[i].pod)
			return false
		})
		gone = f.gone
	}
	for i := range gone {
		r.Add(gone[i].pod)
	}
	switch {
	case !ok:
		return Candidate{}, false
	case len(gone) == 0: // foreign code rejected the node, and nobody else does
		f.histo.fail(fmt.Sprintf("expected at least one victim pod on node %q", f.state.NodeName(n)))
		return Candidate{}, false
	}
	return candidate(n, gone, f.loss), true
}

// fits tells whether the pod fits the open node as it is supposed, and notes why it does not.
func (f *Finder) fits() bool {
	v, err := f.q.Relief.Verdict()
	switch {
	case err != nil:
		f.histo.fail(err.Error())
		return false
	case v != plugin.Fits:
		for _, reason := range f.q.Relief.Reasons(v) {
			f.histo.count(reason)
		}
		f.histo.nodes++
		return false
	}
	return true
}

// spare goes through the pods that may go, those that a budget protects first, and spares each of which back says that the
// pod still fits beside it and what was spared before. The others are left in gone, the most important first, and what they
// cost in loss.
func (f *Finder) spare(lower []cell, back func(i int) bool) {
	f.gone, f.loss = f.gone[:0], Loss{Highest: math.MinInt32, Oldest: notStarted}
	for _, turn := range [...]bool{true, false} {
		for i := range lower {
			if f.shielded[i] != turn {
				continue
			}
			if back(i) {
				continue
			}
			f.gone = append(f.gone, lower[i])
			f.gone[len(f.gone)-1].shielded = f.shielded[i]
			f.loss.Victims++
			f.loss.add(lower[i].priority, lower[i].start)
			if f.shielded[i] {
				f.loss.Violations++
			}
		}
	}
	slices.SortStableFunc(f.gone, moreImportant)
}

func candidate(n cluster.NodeIdx, gone []cell, loss Loss) Candidate {
	c := Candidate{Node: n, Victims: make([]*cluster.Pod, len(gone)), Loss: loss}
	for i := range gone {
		c.Victims[i] = gone[i].pod
	}
	if loss.Violations > 0 {
		c.shielded = make([]bool, len(gone))
		for i := range gone {
			c.shielded[i] = gone[i].shielded
		}
	}
	return c
}
