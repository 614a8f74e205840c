// SPDX-License-Identifier: Apache-2.0

package preempt

import "github.com/kumiki-scheduler/kumiki/core/cluster"

// Find answers a question about the cluster as it is.
func (f *Finder) Find(s cluster.Snapshot, q Question) Answer {
	f.state, f.question, f.tried = s, q, 0
	defer func() { f.state, f.question = cluster.Snapshot{}, Question{} }()
	if why := f.notEligible(); why != "" {
		return Answer{Verdict: NotEligible, Message: MessagePrefix + why}
	}
	f.rows = q.WhatIf.Rows(f.rows[:0])
	f.reasons.begin(s.Nodes())
	if len(f.rows) == 0 {
		return Answer{Verdict: NotHelpful, Message: MessagePrefix + f.reasons.message()}
	}
	f.index.follow(s)
	f.Budgets.Follow(s)
	f.shortage.Prepare(s, q.WhatIf)

	var a Answer
	found := false
	switch {
	case q.Limit != nil:
		a.Candidates = f.tryAll(q.Limit.of(len(f.rows)), q.Draw(len(f.rows)))
	case q.All:
		a.Candidates = f.tryAll(len(f.rows), 0)
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
	case len(f.reasons.errors) > 0:
		a.Verdict, a.Message = Failed, MessagePrefix+f.reasons.failure()
	default:
		a.Verdict, a.Message = NotHelpful, MessagePrefix+f.reasons.message()
	}
	if q.Strict {
		return withoutProtected(a)
	}
	return a
}

// notEligible returns why the pod may not evict others; empty if it may (upstream: PodEligibleToPreemptOthers).
func (f *Finder) notEligible() string {
	p := f.question.Pod
	if p.Spec.NeverPreempts {
		return "not eligible due to preemptionPolicy=Never."
	}
	n, ok := f.state.Find(f.question.Nominated)
	if f.question.Nominated == "" || !ok || f.question.WhatIf.Hopeless(n) {
		return ""
	}
	going := f.question.Awaited
	f.state.EachPod(n, func(other *cluster.Pod, _ bool) {
		going = going || other.Preempted && other.Spec.Priority < p.Spec.Priority
	})
	if going {
		return "not eligible due to a terminating pod on the nominated node."
	}
	return ""
}

// tryAll tries rows from an offset on, until there are enough candidates and one of them violates no budget
// (upstream: DryRunPreemption; parallelism 1).
func (f *Finder) tryAll(enough, offset int) []Candidate {
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
