// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"math"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
)

// This is what the search for victims in units (preempt.UnitsQuestion) is lent: which pods go together and what protects
// them, and whether the preemptor fits. The search knows neither gangs' objects nor how gangs are placed.

// goesWhole tells whether no pod of a gang is evicted without all others (rule R5). The pods of a native pod group go one by
// one unless the group says otherwise.
func (e *Engine) goesWhole(key cluster.GangKey) bool {
	return wholeBy(key, e.gangObject(key))
}

func wholeBy(key cluster.GangKey, obj *cluster.Gang) bool {
	return key.Source != cluster.GangOfGroup || obj != nil && obj.EvictWhole
}

// power is the priority below which a gang may have others evicted: what it declares, or the least of its pods' (answer A3).
func (e *Engine) power(key cluster.GangKey, waiting []*cluster.Pod) int32 {
	if obj := e.gangObject(key); obj != nil && obj.Priority != nil {
		return *obj.Priority
	}
	least := waiting[0].Spec.Priority
	for _, p := range waiting {
		least = min(least, p.Spec.Priority)
	}
	for _, m := range e.store.Snapshot().GangMembers(key) {
		least = min(least, m.Pod.Spec.Priority)
	}
	return least
}

// ruleOf tells the search for victims how the pods of a gang go, and what protects them.
func (e *Engine) ruleOf(key cluster.GangKey) preempt.UnitRule { return ruleBy(key, e.gangObject(key)) }

// ruleBy is ruleOf for an object of the gang, which may be nil.
func ruleBy(key cluster.GangKey, obj *cluster.Gang) (r preempt.UnitRule) {
	if obj != nil && obj.Priority != nil {
		r.Declared, r.Priority, r.OwnToo = true, *obj.Priority, isApart(obj)
	}
	r.Whole = wholeBy(key, obj)
	return r
}

// protectionChanged follows a change of the object of a gang, of which either version may be nil: what protects its pods may be
// less than before, so those that they are in the way of are tried again, as if the pods had gone.
func (e *Engine) protectionChanged(key cluster.GangKey, was, is *cluster.Gang) {
	if ruleBy(key, was) == ruleBy(key, is) {
		return
	}
	s := e.store.Snapshot()
	for _, m := range s.GangMembers(key) {
		e.roomFreed(onNode(m.Pod, s.NodeName(m.Row)), nil)
	}
}

// neverForGang is why a pod is never evicted for a gang, empty if it may be: those that belong to their node and those of
// other schedulers are not (rule R16). For a pod by itself they are, as upstream has it.
func (e *Engine) neverForGang(p *cluster.Pod) string {
	switch {
	case p.OfNode:
		return "it belongs to its node"
	case e.profiles[p.Spec.SchedulerName] == nil:
		return "it is another scheduler's"
	}
	return ""
}

// goesByUnits tells whether a pod by itself must look for victims in units: one of lower priority is in a gang that goes
// whole, or is protected by what its gang declares. Otherwise units are pods, and the search by nodes does as upstream. With
// strict budgets it always does: upstream's search keeps the most important pods of a node, and so may end with pods that a budget
// protects where others could go.
func (e *Engine) goesByUnits(prof *profile, finder *preempt.Finder, p *cluster.Pod) bool {
	if prof.Preemption.Strict {
		return true
	}
	return finder.GoesByUnits(e.store.Snapshot(), p.Spec.Priority, e.ruleOf)
}

// dryRun places the preemptor in a trial as it is, and takes it off again.
type dryRun struct {
	need   gang.Need
	ground func() *gang.Ground
	trial  *cluster.Trial
}

// dryRun makes one. Each search has the same draws, by the number of a decision: what it finds depends on the trial alone.
func (e *Engine) dryRun(prof *profile, trial *cluster.Trial, need gang.Need, decision uint64) dryRun {
	return e.dryRunBeside(prof, trial, need, decision, e.queue)
}

// dryRunBeside is dryRun with other nominations than those that there are.
func (e *Engine) dryRunBeside(prof *profile, trial *cluster.Trial, need gang.Need, decision uint64, noms place.Nominations) dryRun {
	return dryRun{need, func() *gang.Ground {
		draw := place.Draw(e.cfg.Seed, decision)
		return &gang.Ground{Trial: trial, Placer: prof.placer, Nominations: noms, Draw: draw, Reservers: prof.Reservers, Meter: e.meter}
	}, trial}
}

// place returns the rows by member, nil if there is no placement.
func (r dryRun) place() []cluster.NodeIdx {
	mark := r.trial.Checkpoint()
	ans := gang.Place(r.need, r.ground())
	for _, i := range slices.Backward(ans.Order) {
		for _, h := range slices.Backward(ans.Holds[i]) {
			h.Hold.Release(r.trial, false)
		}
	}
	r.trial.Rollback(mark)
	if ans.Verdict != gang.Placed {
		return nil
	}
	return ans.Nodes
}

func (r dryRun) fits() bool { return r.place() != nil }

// without is place with some pods gone.
func (r dryRun) without(pods []*cluster.Pod) []cluster.NodeIdx {
	mark := r.trial.Checkpoint()
	defer r.trial.Rollback(mark)
	for _, p := range pods {
		r.trial.Evict(p.UID)
	}
	return r.place()
}

// found is what a search for victims found, with what went by units.
type found struct {
	preempt.Answer
	units  *preempt.UnitsAnswer // nil where it went by the pods of one node
	paused record.Time          // until when the pod may evict nobody, 0 for no such time
}

// seekUnits is the search for victims of a pod by itself where gangs are among those of lower priority (upstream's own
// search would break them).
func (e *Engine) seekUnits(prof *profile, p *cluster.Pod, out place.Outcome) found {
	switch nominated := e.queue.NominationOf(p.UID); {
	case p.Spec.NeverPreempts:
		return found{Answer: preempt.Answer{Verdict: preempt.NotEligible, Message: "preemption: not eligible due to preemptionPolicy=Never."}}
	case e.awaited(p.UID) || e.goingFor(prof, nominated, p.Spec.Priority, e.gaveUpFor(p.UID)):
		return found{Answer: preempt.Answer{Verdict: preempt.NotEligible, Message: "preemption: not eligible due to a terminating pod on the nominated node."}}
	}
	if f, same := e.sameUnits(prof, p); same {
		return f
	}
	late := e.giveUpFor(prof, p)
	ans, node := e.unitsFor(prof, p, e.queue)
	f := found{Answer: preempt.Answer{Verdict: ans.Verdict, Tried: ans.Tried, Message: ans.Message}, units: &ans}
	switch {
	case ans.Verdict == preempt.NotHelpful && late:
		f.Verdict, f.Message = preempt.NotEligible, noOther
		return f
	case ans.Verdict == preempt.NotHelpful:
		return f
	}
	gone := victimPods(&ans)
	if node == cluster.NoNode { // foreign code has changed its mind
		f.Verdict, f.Message, f.units = preempt.NotHelpful, notAgain, nil
		return f
	}
	if len(gone) == 0 { // as upstream: what goes already is waited for, nominated
		gone = slices.DeleteFunc(slices.Clone(ans.Going), func(v *cluster.Pod) bool {
			_, n, _, _ := e.store.Snapshot().PodOn(v.UID)
			return n != node
		})
	} else if prof.Foreign != nil && prof.Foreign.Preempts(p) {
		return e.askAboutUnits(prof, p, ans, node)
	}
	f.Verdict, f.Best = preempt.Evict, preempt.Candidate{Node: node, Victims: gone, Loss: preempt.Loss{Violations: ans.Loss.Violations}}
	return f
}

// sameUnits is the rest of victims for a pod by itself of which some could not be evicted (answer A15): false if none are gone
// yet, none are left, one is protected by now, or the pod does not fit without them any more.
func (e *Engine) sameUnits(prof *profile, p *cluster.Pod) (f found, same bool) {
	all := e.rests[p.UID]
	delete(e.rests, p.UID)
	ans := preempt.UnitsAnswer{Verdict: preempt.Evict, Loss: preempt.UnitsLoss{Highest: math.MinInt32, Oldest: maxTime}}
	var rest, going []*cluster.Pod
	for _, uid := range all {
		v, _, _, there := e.store.Snapshot().PodOn(uid)
		switch {
		case !there:
		case v.Terminating:
			going = append(going, v)
		default:
			rest = append(rest, v)
			ans.Victims = append(ans.Victims, preempt.VictimUnit{Pods: []*cluster.Pod{v}, Priority: v.Spec.Priority})
			ans.Loss.Units, ans.Loss.Pods, ans.Loss.Highest = ans.Loss.Units+1, ans.Loss.Pods+1, max(ans.Loss.Highest, v.Spec.Priority)
		}
	}
	if len(rest) == 0 || len(rest) == len(all) || e.protectedNow(rest, p.Spec.Priority) {
		return found{}, false
	}
	trial := e.store.Trial()
	defer trial.Discard()
	need := gang.Need{Members: []*cluster.Pod{p}, Quorum: 1}
	nodes := e.dryRun(prof, trial, need, e.decisions).without(append(slices.Clone(rest), going...))
	if nodes == nil {
		return found{}, false
	}
	return found{units: &ans, Answer: preempt.Answer{Verdict: preempt.Evict, Best: preempt.Candidate{Node: nodes[0], Victims: rest}}}, true
}

// unitsFor searches victims for a pod by itself, and where it fits without them: cluster.NoNode if that is not found again.
func (e *Engine) unitsFor(prof *profile, p *cluster.Pod, noms place.Nominations) (preempt.UnitsAnswer, cluster.NodeIdx) {
	trial := e.store.Trial()
	defer trial.Discard()
	run := e.dryRunBeside(prof, trial, gang.Need{Members: []*cluster.Pod{p}, Quorum: 1}, e.decisions, noms)
	ans := e.victims.FindUnits(preempt.UnitsQuestion{
		Members: run.need.Members, Quorum: 1, Power: p.Spec.Priority, Trial: trial, Fits: run.fits, Where: run.place,
		Rule: e.ruleOf, Never: e.sparingNodes(nil, e.sparedFor(p.UID)), Stuck: e.stuckOn(prof), Runs: prof.Preemption.Runs, Strict: prof.Preemption.Strict,
		Ground: preempt.UnitsGround{Placer: prof.placer, Nominations: noms},
	})
	switch {
	case ans.Verdict == preempt.NotHelpful:
	case ans.Places != nil:
		return ans, ans.Places[0]
	default:
		if nodes := run.without(append(victimPods(&ans), ans.Going...)); nodes != nil {
			return ans, nodes[0]
		}
	}
	return ans, cluster.NoNode
}

// notAgain is told when a dry run does not find again what it found with the same state.
const notAgain = "preemption: no places were found again with the victims gone."

// goingFor tells whether pods below a priority are going from a node because they were evicted, but for those that should be
// gone for long.
func (e *Engine) goingFor(prof *profile, node string, power int32, gaveUp int) bool {
	s := e.store.Snapshot()
	n, ok := s.Find(node)
	if node == "" || !ok {
		return false
	}
	going := false
	s.EachPod(n, func(other *cluster.Pod, _ bool) {
		going = going || other.Preempted && other.Spec.Priority < power && !e.overdue(prof, other, gaveUp)
	})
	return going
}

func victimPods(a *preempt.UnitsAnswer) (pods []*cluster.Pod) {
	for i := range a.Victims {
		pods = append(pods, a.Victims[i].Pods...)
	}
	return pods
}

// tellUnits records what a search by units found.
func tellUnits(d *record.Preemption, a *preempt.UnitsAnswer) {
	d.Nodes, d.Tried, d.Violations = 0, a.Tried, a.Loss.Violations
	d.Unproved = a.Unproved
	for i := range a.Victims {
		v := &a.Victims[i]
		d.Units = append(d.Units, record.VictimUnit{
			Name: unitName(v.Gang, v.Pods[0]), Gang: v.Gang != (cluster.GangKey{}), Priority: v.Priority, Pods: len(v.Pods), Violations: v.Violations})
	}
	for i := range a.Considered {
		c := &a.Considered[i]
		d.Considered = append(d.Considered, record.VictimUnit{
			Name: unitName(c.Gang, c.Pod), Gang: c.Gang != (cluster.GangKey{}), Priority: c.Priority, Pods: c.Pods, Why: c.Why})
	}
	if len(a.Victims) > 0 {
		l := a.Loss
		d.Loss = &record.UnitsLoss{Violations: l.Violations, Highest: l.Highest, Units: l.Units, Pods: l.Pods}
		if l.Oldest < maxTime {
			d.Loss.Oldest = l.Oldest
		}
	}
	for _, p := range a.Stuck[:min(len(a.Stuck), preempt.MostConsidered)] {
		d.Stuck = append(d.Stuck, p.Ref())
	}
	for _, p := range a.Going[:min(len(a.Going), preempt.MostConsidered)] {
		d.Awaited = append(d.Awaited, p.Ref())
	}
}

// maxTime stands for the start of a pod that has not started.
const maxTime record.Time = 1<<63 - 1

func unitName(key cluster.GangKey, p *cluster.Pod) string {
	if key != (cluster.GangKey{}) {
		return key.String()
	}
	return p.Key()
}
