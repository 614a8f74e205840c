// SPDX-License-Identifier: Apache-2.0

package units

import (
	"cmp"
	"fmt"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
)

// limits are the numbers from which on something counts as many; 0 stands for the named constant. Only tests set
// them.
type limits struct {
	many  int // manyUnits
	kinds int // fewKinds
	runs  int // DefaultDryRuns
	// general makes the search for one pod that for a gang.
	general bool
}

// Finder searches for victims by preemption units. It keeps what units hold on each node between searches, in line
// with one store. It must not be used by two goroutines at a time.
type Finder struct {
	// Finder searches where all units are pods. Its budgets are those of both searches.
	preempt.Finder // kept

	index index // derived: follows the store

	// Of the search in progress.
	candidates candidates // derived: of one search
	capacity   capacity   // derived: of one search
	singlePod  singlePod  // derived: of one search
	// wasSinglePod reports that the last search was the single-pod search; refuted, that a dry run once contradicted
	// one. That is a fault, and the search for gangs takes its place. Tests read both.
	wasSinglePod, refuted bool   // derived: read by tests only
	limits                limits // derived: set by tests only
}

// Fork returns a Finder for the same budgets, with what was spent of them. What it finds and spends does not change f.
func (f *Finder) Fork() (q Finder) {
	q.Budgets = f.Budgets.Clone()
	return q
}

// FindUnits answers a question about units. The trial is unchanged afterwards.
func (f *Finder) FindUnits(q Question) Answer {
	s := q.Trial.Snapshot()
	f.Budgets.Follow(s)
	f.index.follow(s, q.Rule)
	a, done := f.findSinglePod(s, &q)
	if f.wasSinglePod = done; done {
		return a
	}
	us := &f.candidates
	us.gather(s, &q, &f.index, &f.Budgets)
	stuck := us.dropStuck(&q)
	d := &dryRuns{q: &q, candidates: us, base: q.Trial.Checkpoint(),
		limit: cmp.Or(q.Runs, f.limits.runs, DefaultDryRuns)}
	defer d.end()
	a = Answer{Verdict: preempt.NotHelpful, Terminating: us.terminating, Stuck: stuck, Units: len(us.all)}
	d.begin()
	var list []int // victims
	found, comes := false, false
	switch {
	case len(us.terminating) > 0 && d.fits():
		comes = true
		a.Verdict, a.Message = preempt.NotEligible, onceGone(us.terminating)
	case len(us.all) == 0:
		a.Message = preempt.MessagePrefix + "No preemption victims found for incoming preemptor"
	case q.Reference:
		list, found = d.reference()
	default:
		list, found, a.Minimum = f.findForGang(s, d)
	}
	a.Tried, a.Unproved = d.tried, d.unproved
	if q.Strict && found && us.violations(list, nil) > 0 {
		list, found, a.Message, a.Minimum, a.Unproved = nil, false, preempt.AllProtected, false, 0
	}
	switch {
	case found && len(list) == 0:
		a.Verdict, a.Message, a.Minimum = preempt.NotEligible, preempt.MessagePrefix+"there is room already.", false
	case found:
		a.Verdict, a.Loss, a.Victims = preempt.Evict, us.loss(list), us.victims(list)
	case a.Message == "" && !q.Reference && d.spent():
		a.Message = preempt.MessagePrefix + fmt.Sprintf("gave up after %d dry runs.", d.tried)
	case a.Message == "":
		a.Message = notEvenWithout(len(us.all))
	}
	stays := notEnough
	if found || comes {
		stays = notNeeded
	}
	a.Considered = us.considered(list, stays)
	if a.Message == preempt.AllProtected {
		protected(a.Considered)
	}
	return a
}

// findForGang finds the victims with as few dry runs as it can. least reports that no smaller loss is possible.
func (f *Finder) findForGang(s cluster.Snapshot, d *dryRuns) (list []int, found, least bool) {
	sk := &search{dryRuns: d, capacity: &f.capacity, many: cmp.Or(f.limits.many, manyUnits)}
	sk.capacity.prepare(s, d.q, d.candidates, cmp.Or(f.limits.kinds, fewKinds))
	sk.selectUseful()
	if sk.initial() || !sk.capacity.local {
		least = sk.improve()
	}
	return sk.best, sk.found, least
}

// GoesByUnits reports whether a single pod of a priority needs a search by units: a gang of lower priority is only
// evicted whole, or declares a priority that protects its pods. Otherwise all units are pods.
func (f *Finder) GoesByUnits(s cluster.Snapshot, priority int32, rule func(cluster.GangKey) Rule) bool {
	if !s.AnyGang() {
		return false
	}
	f.index.follow(s, rule)
	for id := range f.index.gangs {
		if g := &f.index.gangs[id]; g.known && g.above < priority {
			return true
		}
	}
	return false
}

// onceGone is the message of a question whose members get capacity without evictions.
func onceGone(terminating []*cluster.Pod) string {
	return preempt.MessagePrefix +
		fmt.Sprintf("there is room once %d pods that are terminating have gone.", len(terminating))
}

// notEvenWithout is the message of a question that no evictions help.
func notEvenWithout(units int) string {
	return preempt.MessagePrefix +
		fmt.Sprintf("there is no room with all %d units of lower priority gone either.", units)
}

// findSinglePod answers a question about one pod; done is false if it takes the search for gangs.
func (f *Finder) findSinglePod(s cluster.Snapshot, q *Question) (a Answer, done bool) {
	if f.limits.general || q.Reference || q.Agreed != nil || len(q.Members) != 1 || q.Quorum != 1 ||
		q.Placement.Placer == nil || len(q.Placement.TopologyKeys) > 0 {
		return a, false
	}
	o := &f.singlePod
	defer func() {
		*o = singlePod{barred: o.barred, violating: o.violating, pool: o.pool[:0], space: o.space, ages: o.ages,
			queue: o.queue[:0], victims: o.victims[:0], shortage: o.shortage}
	}()
	o.s, o.q, o.index, o.candidates, o.budgets, o.stepsLeft = s, q, &f.index, &f.candidates, &f.Budgets, singlePodSteps
	if !o.prepare() {
		return a, false
	}
	room, sure := o.boundRows()
	if !sure {
		return a, false
	}
	a = Answer{Verdict: preempt.NotHelpful, Terminating: o.terminating, Stuck: o.stuck, Units: o.count()}
	switch {
	case room:
		a.Verdict, a.Message = preempt.NotEligible, preempt.MessagePrefix+"there is room already."
		if len(o.terminating) > 0 {
			a.Message = onceGone(o.terminating)
		}
	case a.Units == 0:
		a.Message = preempt.MessagePrefix + "No preemption victims found for incoming preemptor"
	case !o.cheapest():
		return a, false
	case !o.found:
		a.Message = notEvenWithout(a.Units)
	case q.Strict && o.best.Loss.Violations > 0: // no set on any row has none
		a.Message, o.victims = preempt.AllProtected, o.victims[:0]
	default:
		a.Verdict = preempt.Evict
	}
	if a.Considered = o.considered(a.Verdict); a.Message == preempt.AllProtected {
		protected(a.Considered)
	}
	done = o.confirm(&a)
	f.refuted = f.refuted || !done
	return a, done
}
