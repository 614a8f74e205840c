// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/evict"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// gangCycle tries to place a gang: all that it needs of it, or nothing. It is cycle for units of several pods; the
// steps have the same numbers.
func (e *Engine) gangCycle(unit *queue.Unit) {
	prof := e.profiles[unit.Pod().Spec.SchedulerName]
	e.count.decisions++

	// 2. Look for places for its members, one after the other and in other orders, in one trial.
	e.cfg.Meter.Enter(StepSearch)
	a := e.gangAttempt(unit)
	a.Number, a.Nominations = e.count.decisions, e.nominationsFor(unit)
	a.Need.Keep = e.gangs.keepOf(unit, a.Need)
	trial := e.store.Trial()
	a.Answer = gang.Place(a.Need, e.ground(prof, &a, trial))
	e.emitForeignAnswers()

	// 3. There are not enough places: say why, and wait for what may change that.
	if a.Answer.Verdict != gang.Placed {
		trial.Discard()
		e.cfg.Meter.Enter(StepReject)
		e.rejectGang(unit, prof, a, true)
		return
	}

	// 4. and 5. Keep the places, and ask for the binds.
	if no := e.keepGang(unit, prof, a, trial); no != nil {
		e.cfg.Meter.Enter(StepReject)
		e.rejectGang(unit, prof, a.Refused(*no), false)
	}
}

// keepGang keeps the places that were found for a unit in flight, unless a plugin refuses.
func (e *Engine) keepGang(unit *queue.Unit, prof *profile, a gang.Attempt, trial *cluster.Trial) *gang.MemberRejection {
	// 4. The places are taken, and what plugins reserve; keep them. Members without a place stay in the unit.
	e.cfg.Meter.Enter(StepAssume)
	if no := a.Keep(trial); no != nil {
		trial.Discard()
		return no
	}
	e.assumeGang(a, trial)
	left := e.queue.Part(unit, a.Placed())

	// 5. Ask for the writes and binds of all.
	e.cfg.Meter.Enter(StepBind)
	e.bindGang(a)
	e.role.departed(unit)
	switch {
	case left && (a.Answer.Cut > 0 || evict.SurplusEvicts(a.Gang) && prof.evicts.EvictsForGangs()):
		e.queue.Stay(unit)
	case left:
		e.leaveExtras(unit, a)
	}
	return nil
}

// ground is where an attempt looks for places.
func (e *Engine) ground(prof *profile, a *gang.Attempt, trial *cluster.Trial) *gang.Ground {
	return &gang.Ground{
		Trial: trial, Placer: prof.placer, Nominations: a.Nominations,
		Draw:      place.Draw(e.cfg.Seed, e.evictions.GangDraw(a.Gang, a.Number)),
		Reservers: prof.Reservers, Placements: prof.Placements, Meter: e.cfg.Meter,
	}
}

// gangAttempt returns what is known of the waiting pods of a gang, and what is asked of the search for their places.
func (e *Engine) gangAttempt(unit *queue.Unit) gang.Attempt {
	key, members := unit.Gang, e.openMembers(unit.Members)
	quorum := e.quorumOf(key, unit.Members)
	a := gang.Attempt{
		Gang: key, Nth: unit.Attempts, Waiting: unit.Members, Gates: members.gates, Quorum: quorum.pods,
		Held: e.evictions.Staying(key), Surplus: unit.Extra(), Need: gang.Need{Members: members.open},
	}
	if e.evictions.Known(evict.Unit{Gang: key}) {
		// Those for which others were evicted go first: a member that never preempts must not take their places.
		rank := func(p *cluster.Pod) int {
			if e.queue.NominationOf(p.UID) != "" {
				return 0
			}
			return 1
		}
		slices.SortStableFunc(a.Need.Members, func(a, b *cluster.Pod) int { return cmp.Compare(rank(a), rank(b)) })
	}
	a.Need.Quorum = a.Quorum - a.Held
	if quorum.open && a.Held > 0 {
		a.Need.Quorum = min(a.Need.Quorum, len(a.Need.Members)) // no object declares that so many come back
	}
	// Members that come late to a gang that has what it needs get a place each as there is capacity (answers A2, A6).
	a.Need.Quorum = max(a.Need.Quorum, 1)
	if obj := e.gangObject(key); obj != nil {
		a.Need.Topology = obj.Topology
	}
	for _, m := range e.store.Snapshot().GangMembers(key) {
		a.Need.Bound = append(a.Need.Bound, m.Row)
	}
	return a
}

// assumeGang keeps the places that the search took in its trial, and remembers that the gang has them.
func (e *Engine) assumeGang(a gang.Attempt, trial *cluster.Trial) {
	st := e.stateOf(a.Gang)
	st.complete = st.complete || a.Held > 0 && e.wasWhole(a.Gang, e.store.Snapshot().GangMembers(a.Gang))
	trial.Commit()
	st.quorum = a.Quorum
	e.blocked.Placed(a.Gang)
}

// bindGang sends the members that have a place on their way, each with its own record of the one decision. Nothing is
// held or evicted for the gang any more.
func (e *Engine) bindGang(a gang.Attempt) {
	s, part := e.store.Snapshot(), a.Part()
	for k, i := range a.Answer.Order {
		if k > 0 {
			e.count.decisions++
		}
		p, out := a.Need.Members[i], a.Answer.Outcomes[i]
		single := &queue.Unit{Key: p.Key(), Members: []*cluster.Pod{p}, Attempts: a.Nth}
		d := e.decision(single, out)
		mine := *part
		d.Verdict, d.Gang = record.Placed, &mine
		d.Winner = &record.Candidate{Node: s.NodeName(a.Answer.Nodes[i]), Total: out.Total}
		f := &flight{
			unit: single, pod: p, node: d.Winner.Node, decision: d.Number,
			gang: &GangBind{Name: a.Gang.Name, Quorum: a.Quorum, Decision: a.Number},
		}
		for _, h := range a.Answer.Holds[i] {
			f.holds = append(f.holds, held{by: h.By, hold: h.Hold})
		}
		e.queue.Unnominate(p.UID)
		e.evictions.Placed(p, d.Winner.Node)
		e.blocked.PodPlaced(p, d.Winner.Node)
		e.decided(d)
		e.role.depart(f)
	}
	e.blocked.EndHold(a.Gang)
	e.evictions.GangPlaced(a.Gang, a.Need.Members, a.Answer.Nodes)
}

// rejectGang puts a gang back into the queue whole, and shows each of its pods why. evicts is false if no evictions
// help.
func (e *Engine) rejectGang(unit *queue.Unit, prof *profile, a gang.Attempt, evicts bool) {
	d := e.gangRejection(a)
	reason := ReasonUnschedulable
	why := queue.Rejection{Plugins: a.Rejecting(a.Gates)}
	if a.Answer.Verdict == gang.Failed {
		reason, why = ReasonError, failed
	}
	var plan evict.Plan
	if evicts { // before the queue takes the unit back: a gate may close behind it
		plan = e.evictions.ForGang(&prof.evicts, a)
	}
	if e.role.refers(unit, prof, plan.Verdict == preempt.Evict || a.Held > 0 && a.Held < a.Quorum) {
		return
	}
	e.queue.Requeue(unit, why)
	shown := e.evictions.ActForGang(&prof.evicts, a, plan, &d)
	e.decided(d)
	waits := plan.Verdict == preempt.Evict || plan.Verdict == preempt.NotEligible
	if waits { // for the capacity that is freed for it
		e.blocked.Evicting(a)
	} else {
		e.blocked.Rejected(a, unit.Extra())
	}
	shownReason, message := reason, d.Message
	if reason == ReasonUnschedulable && !waits && !e.blocked.RequestsNodes(a.Gang) {
		shownReason = ReasonGated
		message += " (no nodes are requested from autoscalers at present: gangs.scaleUp)"
	}
	e.tellMembers(a.Need.Members, shownReason, message, shown)
	if a.Held < a.Quorum {
		e.emitGangStatus(a.Gang, GangStatus{Reason: reason, Message: d.Message})
	}
	if a.Held > 0 && a.Held < a.Quorum && !waits && a.Answer.Verdict != gang.Failed {
		e.undo(a.Gang, a.First(), a.Number)
	}
}

// gangRejection is the decision of an attempt that found too few places.
func (e *Engine) gangRejection(a gang.Attempt) record.Decision {
	s, first := e.store.Snapshot(), a.First()
	d := record.Decision{
		Number: a.Number, At: e.now, Revision: s.Revision(), Pod: first.Ref(), Profile: first.Spec.SchedulerName,
		Attempt: a.Nth, Verdict: record.DoesNotFit, Nodes: s.Nodes(), Message: a.Message(),
		PreFilter: a.Answer.Why.PreFilter, Reasons: a.Answer.Why.Reasons, Plugins: a.Answer.Why.Plugins, Gang: a.Part(),
	}
	d.Gang.Verdict, d.Gang.Proof = a.Answer.Verdict.String(), a.Answer.Proof
	if a.Answer.Verdict == gang.Failed {
		d.Verdict = record.AttemptFailed
	}
	h, held := e.blocked.Held()
	if held && len(h.Pods) > 0 && h.Gang != a.Gang && a.Answer.Verdict == gang.Unschedulable {
		d.Message += fmt.Sprintf(" Room for %d pods is held for gang %s.", len(h.Pods), h.Gang)
	}
	if a.Surplus {
		if first := e.blocked.Units(); len(first) > 0 {
			d.Message += fmt.Sprintf(" Places that gang %s could use are kept for it.", first[0].Gang)
		}
	}
	return d
}

// leaveExtras puts the members back that found no place although the gang has what it needs.
func (e *Engine) leaveExtras(unit *queue.Unit, a gang.Attempt) {
	left := e.openMembers(unit.Members)
	if len(left.open) == 0 {
		e.queue.Stay(unit) // behind the gate of its members
		return
	}
	e.queue.Requeue(unit, queue.Rejection{Plugins: a.Rejecting(left.gates)})
	for _, p := range unit.Members {
		e.queue.Unnominate(p.UID)
	}
	var extras []*cluster.Pod
	for i, p := range a.Need.Members {
		if a.Answer.Nodes[i] == cluster.NoNode {
			extras = append(extras, p)
		}
	}
	if message := a.Answer.Why.Message; len(extras) > 0 && message != "" {
		if !e.isBasic(a.Gang) {
			message = fmt.Sprintf("%s. %s: %s", gang.NoExtras(a.Gang, len(extras)), a.First().Name, message)
		}
		e.tellMembers(extras, ReasonUnschedulable, message, nil)
	}
}
