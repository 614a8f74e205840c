// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"math"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/preempt/units"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Plan is what a search for victims found for a unit. It has no effect before it is acted on.
type Plan struct {
	// Verdict is 0 for a unit whose profile evicts no pods, or that may not ask. For a gang, with NotEligible its
	// nominations stand, with NotHelpful they do not.
	Verdict preempt.Verdict
	Message string
	// Paused is until when the unit may evict no pods, 0 for no such time.
	Paused record.Time
	// Delayed is until when the unit evicts no pods, so that an autoscaler can create nodes; 0 for no such time.
	Delayed record.Time
	// Need is what was asked for; some of a gang's members may not be in it. Rows are the rows of the placement, by
	// member.
	Need gang.Need
	Rows []cluster.NodeIdx
	// Victims are the pods to evict; those of a pod by itself may terminate already.
	Victims []*cluster.Pod
	// Revoked are victims of before that need not go any more.
	Revoked []*cluster.Pod
	// same: Victims are the rest of those of before.
	same bool
	// units is what a search by preemption units found, nil where pods of one node were searched.
	units *units.Answer
	// loss, nodes and tried are of a search by nodes.
	loss         preempt.Loss
	nodes, tried int
}

// The messages of a unit that evicts no pods.
const (
	NeverMessage       = "preemption: not eligible due to preemptionPolicy=Never."
	RemainingMessage   = "preemption: ongoing preemption on nominated nodes"
	TerminatingMessage = "preemption: not eligible due to a terminating pod on the nominated node."
	noCandidateMessage = "preemption: no candidate node for preemption"
	// notAgainMessage is for a dry run that does not find again what it found with the same state: foreign code has
	// changed its mind.
	notAgainMessage = "preemption: no places were found again with the victims gone."
)

// maxTime stands for the start of a pod that has not started.
const maxTime record.Time = 1<<63 - 1

func (p Plan) with(v preempt.Verdict, message string) Plan {
	p.Verdict, p.Message = v, message
	return p
}

// need is what a pod by itself asks for.
func needOf(p *cluster.Pod) gang.Need { return gang.Need{Members: []*cluster.Pod{p}, Quorum: 1} }

// onNode is the plan of a pod by itself that fits on a node without some pods.
func onNode(p *cluster.Pod, n cluster.NodeIdx, victims []*cluster.Pod) Plan {
	return Plan{Verdict: preempt.Evict, Need: needOf(p), Rows: []cluster.NodeIdx{n}, Victims: victims}
}

// Found returns the message of a pod by itself for which pods are evicted. The plan's verdict must be Evict.
func (p *Plan) Found(s cluster.Snapshot) string {
	return preempt.Found(s.Node(p.Rows[0]).Name, len(p.Victims))
}

// ForPod looks for pods to evict so that p gets a place, and closes the gate behind p if there are any. The zero Plan
// is that of a profile that evicts no pods.
func (m *Manager) ForPod(prof *Profile, p *cluster.Pod, out place.Outcome, decision uint64) Plan {
	if prof.Preemption == nil {
		return Plan{}
	}
	delay := m.delayOf(prof, Unit{Pod: p.UID}, []*cluster.Pod{p}, 1)
	if out.Nodes == 0 {
		return Plan{}
	}
	m.meter.Plugin(plugin.AtPostFilter, plugin.DefaultPreemptionName)
	owner := OwnerOf(m.store.Snapshot(), p)

	// 1. Account for capacity that went to another scheduler.
	if last := m.current(p.UID); last != nil && last.taken && !m.Awaited(p.UID) {
		last.taken = false
		m.miss(p.UID, "others took the room")
		m.pauses.lost(owner, p.Ref(), m.host.Now())
	}
	if until := m.pauses.until(owner, m.host.Now()); until != 0 {
		m.pauses.wait(owner, p.Ref())
		return Plan{Verdict: preempt.NotHelpful, Message: PausedMessage, Paused: until}
	}

	// 2. Plan.
	var plan Plan
	if m.hasRest(p.UID) || m.GoesByUnits(prof, &m.finder, p) {
		plan = m.planByUnits(prof, p, delay, decision)
	} else {
		plan = m.planByNodes(prof, p, out, delay, decision)
	}

	// 3. Note what budgets bar, and close the gate.
	m.NoteBarred(p.Ref(), plan.Message)
	if plan.Verdict == preempt.Evict {
		m.beginForPod(p, owner, plan, decision)
	}
	return plan
}

// GoesByUnits reports whether a pod by itself must search victims by preemption units: one of lower priority is in a
// gang that goes whole, or is protected by what its gang declares. Otherwise units are pods, and the search by nodes
// does as upstream. With strict budgets it always does: upstream's search keeps the most important pods of a node, and
// so may end with pods that a budget protects where others could go.
func (m *Manager) GoesByUnits(prof *Profile, finder *units.Finder, p *cluster.Pod) bool {
	return prof.Preemption.Strict || finder.GoesByUnits(m.store.Snapshot(), p.Spec.Priority, m.RuleOf)
}

// planByNodes is the search of upstream: for the node on which the loss is smallest. During a delay it only finds out
// whether there is such a node.
func (m *Manager) planByNodes(
	prof *Profile, p *cluster.Pod, out place.Outcome, delay record.Time, decision uint64,
) Plan {
	q := preempt.Question{
		Pod: p, Nominated: m.CountsOn(p), Awaited: m.Awaited(p.UID),
		WhatIf: prof.Placer.WhatIf(m.store.Snapshot(), out),
		Limit:  prof.Preemption.Limit, Strict: prof.Preemption.Strict,
		Draw: place.Draw(m.seed, math.MaxUint64-decision),
	}
	q.All = prof.Foreign != nil && prof.Foreign.Preempts(p) && delay == 0
	a := m.finder.Find(m.store.Snapshot(), q)
	m.meter.Did(record.DryRuns, a.Tried)
	if a.Verdict == preempt.Evict && delay != 0 {
		return m.delayed(Unit{Pod: p.UID}, delay)
	}
	if q.All && a.Verdict == preempt.Evict {
		a = m.askAboutNodes(prof, p, a)
	}
	plan := Plan{Verdict: a.Verdict, Message: a.Message, nodes: a.Nodes, tried: a.Tried}
	if a.Verdict == preempt.Evict {
		plan = onNode(p, a.Best.Node, a.Best.Victims)
		plan.Message, plan.loss, plan.nodes, plan.tried = a.Message, a.Best.Loss, a.Nodes, a.Tried
	}
	return plan
}

// planByUnits is the search for victims of a pod by itself where gangs are among those of lower priority (upstream's
// own search would break them). It reports victims that do not terminate, which makes it search elsewhere.
func (m *Manager) planByUnits(prof *Profile, p *cluster.Pod, delay record.Time, decision uint64) Plan {
	switch {
	case p.Spec.NeverPreempts:
		return Plan{Verdict: preempt.NotEligible, Message: NeverMessage}
	case m.Awaited(p.UID) || m.GoingFor(prof, m.queue.NominationOf(p.UID), p.Spec.Priority, m.gaveUp(p.UID)):
		return Plan{Verdict: preempt.NotEligible, Message: TerminatingMessage}
	}
	if plan, same := m.planRest(prof, p, m.takeRest(p.UID), decision); same {
		return plan
	}
	if delay != 0 {
		return m.delayed(Unit{Pod: p.UID}, delay)
	}
	late := m.giveUpForPod(prof, p)
	ans, node := m.searchForPod(prof, p, m.queue, decision)
	plan := Plan{Verdict: ans.Verdict, Message: ans.Message, tried: ans.Tried, units: &ans}
	switch {
	case ans.Verdict == preempt.NotHelpful && late:
		return plan.with(preempt.NotEligible, NoOther)
	case ans.Verdict == preempt.NotHelpful:
		return plan
	}
	gone := VictimPods(&ans)
	if node == cluster.NoNode { // foreign code has changed its mind
		return Plan{Verdict: preempt.NotHelpful, Message: notAgainMessage, tried: ans.Tried}
	}
	if len(gone) == 0 { // as upstream: what terminates already is waited for, nominated
		gone = slices.DeleteFunc(slices.Clone(ans.Terminating), func(v *cluster.Pod) bool {
			_, n, _, _ := m.store.Snapshot().PodOn(v.UID)
			return n != node
		})
	} else if prof.Foreign != nil && prof.Foreign.Preempts(p) {
		return m.askAboutUnits(prof, p, ans, node, decision)
	}
	plan.Verdict = preempt.Evict
	plan.Need, plan.Rows, plan.Victims = needOf(p), []cluster.NodeIdx{node}, gone
	plan.loss.Violations = ans.Loss.Violations
	return plan
}

// hasRest reports whether victims in units are left of an eviction for a pod by itself that failed.
func (m *Manager) hasRest(uid cluster.UID) bool {
	ev := m.of[Unit{Pod: uid}]
	return ev != nil && ev.state == Failed && len(ev.order) > 0
}

// takeRest returns the victims of an eviction for a pod by itself that failed, and forgets them: they are tried once.
func (m *Manager) takeRest(uid cluster.UID) (rest []cluster.UID) {
	if m.hasRest(uid) {
		ev := m.of[Unit{Pod: uid}]
		rest, ev.order = ev.order, nil
	}
	return rest
}

// planRest is the rest of victims for a pod by itself of which some could not be evicted (answer A15): false if none
// are gone yet, none are left, one is protected by now, or the pod does not fit without them any more.
func (m *Manager) planRest(prof *Profile, p *cluster.Pod, all []cluster.UID, decision uint64) (plan Plan, same bool) {
	ans := units.Answer{Verdict: preempt.Evict, Loss: units.Loss{Highest: math.MinInt32, Oldest: maxTime}}
	var rest, going []*cluster.Pod
	for _, uid := range all {
		v, _, _, there := m.store.Snapshot().PodOn(uid)
		switch {
		case !there:
		case v.Terminating:
			going = append(going, v)
		default:
			rest = append(rest, v)
			ans.Victims = append(ans.Victims, units.Victim{Pods: []*cluster.Pod{v}, Priority: v.Spec.Priority})
			ans.Loss.Units++
			ans.Loss.Pods++
			ans.Loss.Highest = max(ans.Loss.Highest, v.Spec.Priority)
		}
	}
	if len(rest) == 0 || len(rest) == len(all) || m.protectedNow(rest, p.Spec.Priority, nil) {
		return Plan{}, false
	}
	trial := m.store.Trial()
	defer trial.Discard()
	rows := m.dryRun(prof, trial, needOf(p), decision, m.queue).Without(append(slices.Clone(rest), going...))
	if rows == nil {
		return Plan{}, false
	}
	plan = onNode(p, rows[0], rest)
	plan.units = &ans
	return plan, true
}

// searchForPod searches victims for a pod by itself, and where it fits without them: cluster.NoNode if that is not
// found again.
func (m *Manager) searchForPod(prof *Profile, p *cluster.Pod, noms place.Nominations,
	decision uint64) (units.Answer, cluster.NodeIdx) {
	trial := m.store.Trial()
	defer trial.Discard()
	run := m.dryRun(prof, trial, needOf(p), decision, noms)
	ans := m.finder.FindUnits(units.Question{
		Members: run.Need.Members, Quorum: 1, Priority: p.Spec.Priority, Trial: trial, Fits: run.Fits, Rows: run.Where,
		Rule: m.RuleOf, Never: m.SparingNodes(nil, m.Spared(Unit{Pod: p.UID})), Stuck: m.OverdueOn(prof),
		Runs: prof.Preemption.Runs, Strict: prof.Preemption.Strict,
		Placement: units.Placement{Placer: prof.Placer, Nominations: noms},
	})
	m.meter.Did(record.UnitsConsidered, ans.Units)
	switch {
	case ans.Verdict == preempt.NotHelpful:
	case ans.Rows != nil:
		return ans, ans.Rows[0]
	default:
		if rows := run.Without(append(VictimPods(&ans), ans.Terminating...)); rows != nil {
			return ans, rows[0]
		}
	}
	return ans, cluster.NoNode
}

// ForGang looks for units to evict so that a gang gets the placements that an attempt did not find. The zero Plan is
// that of a gang that may not ask.
func (m *Manager) ForGang(prof *Profile, a gang.Attempt) Plan {
	plan := m.planForGang(prof, a)
	plan.Message = preempt.ForGroup(plan.Message)
	return plan
}

func (m *Manager) planForGang(prof *Profile, a gang.Attempt) Plan {
	if !prof.EvictsForGangs() {
		return Plan{}
	}
	delay := m.delayOfGang(prof, a)
	if a.Answer.Verdict != gang.Unschedulable && a.Answer.Verdict != gang.GaveUp {
		return Plan{} // a gang that can never fit evicts no pods (rule R17)
	}
	if a.Held >= a.Quorum && !SurplusEvicts(a.Gang) {
		return Plan{} // a surplus member evicts no pods, except in a native group (answer A6)
	}
	m.meter.Plugin(plugin.AtPostFilter, plugin.DefaultPreemptionName)
	sets := m.preemptors(a.Gang, a.Need)
	if len(sets) == 0 && len(a.Need.Members) >= a.Need.Quorum {
		return Plan{Verdict: preempt.NotHelpful, Message: NeverMessage}
	}
	ev := m.gang(a.Gang)

	// 1. Go on with the victims of before.
	if ev != nil && ev.state == Failed {
		if plan, same := m.planSame(prof, a, ev); same {
			return plan
		}
	}
	if m.remaining(prof, ev) {
		return m.regain(prof, a, ev)
	}

	// 2. Account for capacity that went to another scheduler, and for victims that do not terminate.
	owner, who := OwnerOfGang(a.Gang), a.Need.Members[0].Ref()
	if ev != nil && ev.taken {
		ev.taken = false
		m.pauses.lost(owner, who, m.host.Now())
	}
	if until := m.pauses.until(owner, m.host.Now()); until != 0 {
		m.pauses.wait(owner, who)
		return Plan{Verdict: preempt.NotHelpful, Paused: until, Message: PausedMessage}
	}
	if delay != 0 {
		return m.delayed(Unit{Gang: a.Gang}, delay)
	}
	late := m.StuckOfGang(prof, a.Gang)
	if len(late) > 0 {
		m.giveUpOn(&ev.stuck, late, who, a.Gang.String())
	}

	// 3. Plan, and note what budgets bar.
	plan := m.planSets(prof, a, sets)
	if len(late) > 0 && plan.Verdict == preempt.NotHelpful { // the victims of before may terminate after all
		plan.Verdict, plan.Message = preempt.NotEligible, NoOther
	}
	m.NoteBarred(a.Waiting[0].Ref(), plan.Message)
	return plan
}

// planSets looks for units to evict for one set of members after the other. Without success it returns the plan of the
// last set, unless budgets ended one: they may allow more later.
func (m *Manager) planSets(prof *Profile, a gang.Attempt, sets []Preemptor) (last Plan) {
	for _, by := range sets {
		plan := m.planSet(prof, a, by)
		if plan.Verdict != preempt.NotHelpful {
			return plan
		}
		if last.Message != preempt.AllProtected {
			last = plan
		}
	}
	return last
}

// planSet looks for units to evict for a set of members.
func (m *Manager) planSet(prof *Profile, a gang.Attempt, by Preemptor) Plan {
	need := by.Need
	trial := m.store.Trial()
	defer trial.Discard()
	run := m.dryRun(prof, trial, need, a.Number, a.Nominations)
	ans := m.finder.FindUnits(units.Question{
		Members: need.Members, Quorum: need.Quorum, Own: a.Gang, Priority: by.Priority,
		Agreed: m.agreed(a.Gang, need.Members),
		Trial:  trial, Fits: run.Fits, Rows: run.Where,
		Rule: m.RuleOf, Never: m.SparingNodes(m.NeverForGang, m.Spared(Unit{Gang: a.Gang})), Stuck: m.OverdueOn(prof),
		Placement: units.Placement{
			Placer: prof.Placer, Nominations: a.Nominations, Bound: need.Bound, TopologyKeys: RequiredKeys(need),
		},
		Runs: prof.Preemption.Runs, Strict: prof.Preemption.Strict,
	})
	m.meter.Did(record.UnitsConsidered, ans.Units)
	plan := Plan{Verdict: ans.Verdict, Message: ans.Message, units: &ans, Need: need}
	if ans.Verdict == preempt.NotHelpful {
		return plan
	}
	plan.Victims = VictimPods(&ans)
	plan.Rows = run.Without(append(slices.Clone(plan.Victims), ans.Terminating...))
	if plan.Rows == nil {
		return Plan{Verdict: preempt.NotHelpful, Message: notAgainMessage}
	}
	return plan
}

// regain gives a gang whose victims terminate its places again, as far as it has lost them: a stronger pod took them
// and is gone, or a member replaced another. Otherwise it waits for its victims.
func (m *Manager) regain(prof *Profile, a gang.Attempt, ev *Eviction) Plan {
	plan := Plan{Verdict: preempt.NotEligible, Message: RemainingMessage}
	nominated := 0
	for _, p := range a.Need.Members {
		if m.queue.NominationOf(p.UID) != "" {
			nominated++
		}
	}
	if nominated >= a.Need.Quorum {
		return plan
	}
	trial := m.store.Trial()
	defer trial.Discard()
	var going []*cluster.Pod
	for uid := range ev.left { // order: sorted below
		if p, _, _, there := m.store.Snapshot().PodOn(uid); there {
			going = append(going, p)
		}
	}
	slices.SortFunc(going, cluster.CompareKeys)
	plan.Need, plan.Rows = a.Need, m.dryRun(prof, trial, a.Need, a.Number, a.Nominations).Without(going)
	return plan
}

// planSame is the rest of a set of victims of which some could not be evicted: false if they are none, or do not help
// any more. Where those that terminate are enough by now, the rest is revoked.
func (m *Manager) planSame(prof *Profile, a gang.Attempt, ev *Eviction) (plan Plan, same bool) {
	trial := m.store.Trial()
	defer trial.Discard()
	run := m.dryRun(prof, trial, a.Need, ev.draw, a.Nominations)
	rest, going := m.restOfVictims(ev)
	begun := len(ev.left) < ev.evicted || len(going) > 0
	if len(rest) == 0 || !begun || m.protectedNow(rest, m.priority(a.Gang, a.Need.Members),
		m.agreed(a.Gang, a.Need.Members)) {
		return Plan{}, false
	}
	if rows := run.Without(going); rows != nil {
		return Plan{
			Verdict: preempt.NotEligible, Message: RemainingMessage, Need: a.Need, Rows: rows, same: true,
			Revoked: rest,
		}, true
	}
	if rows := run.Without(slices.Concat(rest, going)); rows != nil {
		return Plan{Verdict: preempt.Evict, Victims: rest, Need: a.Need, Rows: rows, same: true}, true
	}
	return Plan{}, false
}

// restOfVictims returns the victims for a gang that are still to be evicted and those that terminate, each ordered by
// name. A victim on a node that is gone frees no capacity. It is still evicted if its gang goes whole and another pod
// of that gang is (rule R5).
func (m *Manager) restOfVictims(ev *Eviction) (rest, going []*cluster.Pod) {
	s := m.store.Snapshot()
	var nodeless []*cluster.Pod
	whole := map[cluster.GangKey]bool{} // gang that goes whole -> a pod of it is in rest
	for uid, how := range ev.left {     // order: sorted below
		p, n, _, there := s.PodOn(uid)
		switch {
		case !there || how != deleted:
		case s.Node(n) == nil:
			nodeless = append(nodeless, p)
		case p.Terminating:
			going = append(going, p)
		default:
			rest = append(rest, p)
			if key, in := s.HeldGang(uid); in && GoesWhole(s, key) {
				whole[key] = true
			}
		}
	}
	for _, p := range nodeless {
		if key, _ := s.HeldGang(p.UID); whole[key] && !p.Terminating {
			rest = append(rest, p)
		}
	}
	slices.SortFunc(rest, cluster.CompareKeys)
	slices.SortFunc(going, cluster.CompareKeys)
	return rest, going
}
