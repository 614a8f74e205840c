// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"math"
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
	number := e.count.decisions

	// 2. Look for places for its members, one after the other and in other orders, in one trial.
	e.cfg.Meter.Enter(StepSearch)
	need, held := e.gangNeed(unit)
	trial := e.store.Trial()
	need.Keep = e.gangs.keepOf(unit, need)
	ans := gang.Place(need, &gang.Ground{
		Trial: trial, Placer: prof.placer, Nominations: e.promises(unit), Draw: place.Draw(e.cfg.Seed, e.evictions.GangDraw(unit.Gang, number)), Reservers: prof.Reservers, Meter: e.cfg.Meter,
	})
	e.tellHeard()

	// 3. There are not enough places: say why, and wait for what may change that.
	if ans.Verdict != gang.Placed {
		trial.Discard()
		e.cfg.Meter.Enter(StepReject)
		e.rejectGang(unit, prof, need, held, ans, number)
		return
	}

	// 4. The places are taken, and what plugins reserve; keep them.
	e.cfg.Meter.Enter(StepAssume)
	st := e.stateOf(unit.Gang)
	st.complete = st.complete || held > 0 && e.wasWhole(unit.Gang, e.store.Snapshot().GangMembers(unit.Gang))
	trial.Commit()
	st.blocked, st.verdict = 0, gang.Placed
	e.gangs.unspare(unit.Gang)
	st.quorum = e.quorumOf(unit.Gang, unit.Members).pods
	left := e.partGang(unit, need, ans)

	// 5. Ask for the writes and binds of all.
	e.cfg.Meter.Enter(StepBind)
	e.departGang(unit, prof, need, held, ans, number)
	e.held.useHold(unit.Gang)
	e.evictions.GangPlaced(unit.Gang, need.Members, ans.Nodes)
	switch {
	case left && (ans.Cut > 0 || evict.SurplusEvicts(unit.Gang) && prof.Preemption != nil):
		e.queue.Stay(unit)
	case left:
		e.leaveExtras(unit, need, ans)
	}
}

// gangNeed is what is asked of the search, and how many members hold capacity already.
func (e *Engine) gangNeed(unit *queue.Unit) (need gang.Need, held int) {
	need.Members, _, _, _ = e.openMembers(unit.Members)
	if e.evictions.Known(evict.Unit{Gang: unit.Gang}) {
		// Those for which others were evicted go first: a member that never preempts must not take their places.
		slices.SortStableFunc(need.Members, func(a, b *cluster.Pod) int {
			return cmp.Compare(b2i(e.queue.NominationOf(b.UID) != ""), b2i(e.queue.NominationOf(a.UID) != ""))
		})
	}
	held = e.evictions.Staying(unit.Gang)
	q := e.quorumOf(unit.Gang, unit.Members)
	need.Quorum = q.pods - held
	if q.open && held > 0 {
		need.Quorum = min(need.Quorum, len(need.Members)) // no object declares that so many come back
	}
	// Members that come late to a gang that has what it needs get a place each as there is capacity (answers A2, A6).
	need.Quorum = max(need.Quorum, 1)
	if obj := e.gangObject(unit.Gang); obj != nil {
		need.Topology = obj.Topology
	}
	for _, m := range e.store.Snapshot().GangMembers(unit.Gang) {
		need.Bound = append(need.Bound, m.Row)
	}
	return need, held
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// promises are what a search for places for a unit is to keep away from.
func (e *Engine) promises(unit *queue.Unit) place.Nominations {
	view := gangView{Nominations: e.queue, gang: unit.Gang}
	if unit.Extra() {
		view.Nominations = e.gangs.sparing()
	}
	if obj := e.gangObject(unit.Gang); obj != nil {
		view.declared = obj.Priority
	}
	return view
}

// gangView are nominations as they count for a gang. Those of its own pods do not, also of pods that wait behind a
// gate. If it declares a priority, whatever its pods' own is, those of a lower one are not there, and all others
// count against any of its pods.
type gangView struct {
	place.Nominations
	gang     cluster.GangKey
	declared *int32 // nil for no priority
}

// NominatedOn returns the pods that count for the gang.
func (v gangView) NominatedOn(node string) []*cluster.Pod {
	all := v.Nominations.NominatedOn(node)
	own := func(p *cluster.Pod) bool { return p.Gang != nil && p.Gang.Key == v.gang }
	if v.declared == nil && !slices.ContainsFunc(all, own) {
		return all
	}
	var pods []*cluster.Pod
	for _, p := range all {
		switch {
		case own(p):
		case v.declared == nil:
			pods = append(pods, p)
		case p.Spec.Priority >= *v.declared:
			ahead, spec := *p, *p.Spec
			spec.Priority = math.MaxInt32
			ahead.Spec = &spec
			pods = append(pods, &ahead)
		}
	}
	return pods
}

// partGang lets the members go that have a place.
func (e *Engine) partGang(unit *queue.Unit, need gang.Need, ans gang.Answer) (left bool) {
	placed := map[cluster.UID]bool{} // member -> it has a place
	for i, p := range need.Members {
		if ans.Nodes[i] != cluster.NoNode {
			placed[p.UID] = true
		}
	}
	return e.queue.Part(unit, func(uid cluster.UID) bool { return placed[uid] })
}

// departGang sends the members that have a place on their way, each with its own record of the one decision.
func (e *Engine) departGang(unit *queue.Unit, prof *profile, need gang.Need, held int, ans gang.Answer, number uint64) {
	s := e.store.Snapshot()
	part := record.GangPart{
		Name: unit.Gang.String(), Source: string(unit.Gang.Source), Decision: number, Quorum: e.gangs.of[unit.Gang].quorum, Held: held,
		Members: len(need.Members), Placed: ans.Most, Tried: ans.Tried, Domains: ans.Domains,
	}
	first := true
	for _, i := range ans.Order {
		p, n := need.Members[i], ans.Nodes[i]
		if !first {
			e.count.decisions++
		}
		first = false
		mine := part
		d := e.decision(&queue.Unit{Members: []*cluster.Pod{p}, Attempts: unit.Attempts}, ans.Outcomes[i])
		d.Verdict, d.Gang = record.Placed, &mine
		d.Winner = &record.Candidate{Node: s.NodeName(n), Total: ans.Outcomes[i].Total}
		f := &flight{
			unit: &queue.Unit{Key: p.Key(), Members: []*cluster.Pod{p}, Attempts: unit.Attempts},
			pod:  p, node: d.Winner.Node, decision: d.Number,
			gang: &GangBind{Name: unit.Gang.Name, Quorum: part.Quorum, Decision: number},
		}
		for _, h := range ans.Holds[i] {
			f.holds = append(f.holds, holdOf(h))
		}
		e.queue.Unnominate(p.UID)
		e.evictions.Placed(p, d.Winner.Node)
		e.decided(d)
		e.binds.depart(f)
	}
}

func holdOf(h gang.Hold) held { return held{by: h.By, hold: h.Hold} }

// rejectGang puts a gang back into the queue whole, and tells each of its pods why.
func (e *Engine) rejectGang(unit *queue.Unit, prof *profile, need gang.Need, held int, ans gang.Answer, number uint64) {
	blocked := need.Members[max(ans.Blocked, 0)]
	message := gangMessage(unit, need, held, ans, blocked)
	if e.held.hold != nil && len(e.held.hold.pods) > 0 && e.held.hold.gang != unit.Gang && ans.Verdict == gang.NoRoom {
		message += fmt.Sprintf(" Room for %d pods is held for gang %s.", len(e.held.hold.pods), e.held.hold.gang)
	}
	if unit.Extra() {
		if first := e.blocked(); len(first) > 0 {
			message += fmt.Sprintf(" Places that gang %s could use are kept for it.", first[0].Gang)
		}
	}
	d := record.Decision{
		Number: number, At: e.now, Revision: e.store.Snapshot().Revision(), Pod: blocked.Ref(), Profile: blocked.Spec.SchedulerName,
		Attempt: unit.Attempts, Verdict: record.DoesNotFit, Nodes: e.store.Snapshot().Nodes(), Message: message,
		PreFilter: ans.Why.PreFilter, Reasons: ans.Why.Reasons, Plugins: ans.Why.Plugins,
		Gang: &record.GangPart{
			Name: unit.Gang.String(), Source: string(unit.Gang.Source), Decision: number, Quorum: e.quorumOf(unit.Gang, unit.Members).pods, Held: held,
			Members: len(need.Members), Placed: ans.Most, Tried: ans.Tried, Domains: ans.Domains, Verdict: ans.Verdict.String(), Proof: ans.Proof,
		},
	}
	reason, why := ReasonUnschedulable, queue.Rejection{Plugins: e.withGates(rejecting(ans), unit)}
	if ans.Verdict == gang.Failed {
		d.Verdict, reason, why = record.AttemptFailed, ReasonError, failed
	}
	st := e.stateOf(unit.Gang)
	st.verdict = ans.Verdict
	plan := e.evictions.ForGang(unit, &prof.evicts, need, held, ans, number) // before the queue takes the unit back: a gate may close behind it
	e.queue.Requeue(unit, why)
	shown := e.evictions.ActForGang(unit, need.Members, plan, &d)
	e.decided(d)
	waits := plan.Verdict == preempt.Evict || plan.Verdict == preempt.NotEligible
	if waits { // for the capacity that is freed for it
		e.gangs.unspare(unit.Gang)
	}
	if !waits && !unit.Extra() {
		e.held.holdFor(unit, need, ans)
		e.gangs.spare(st, unit, need, ans)
	}
	e.tellMembers(need.Members, reason, d.Message, shown)
	if held == 0 {
		e.tellGang(unit.Gang, GangStatus{Reason: reason, Message: message})
	} else if !waits && ans.Verdict != gang.Failed && held < e.quorumOf(unit.Gang, unit.Members).pods {
		e.undo(unit.Gang, blocked, number)
	}
}

// withGates adds the gates that keep members of a unit back: these members may have a place where the others have none.
func (e *Engine) withGates(plugins []string, unit *queue.Unit) []string {
	_, _, _, gates := e.openMembers(unit.Members)
	if len(gates) == 0 {
		return plugins
	}
	return slices.Concat(plugins, gates)
}

// rejecting are the plugins whose events may help a gang, or those of its members that were left over.
func rejecting(ans gang.Answer) []string {
	if len(ans.Plugins) > 0 {
		return ans.Plugins
	}
	return ans.Why.Plugins
}

// gangMessage says what became of an attempt, in the words of events and conditions.
func gangMessage(unit *queue.Unit, need gang.Need, held int, ans gang.Answer, blocked *cluster.Pod) string {
	if ans.Proof != "" && !unit.Extra() { // whatever else is in the way, and that changes
		return fmt.Sprintf("gang %s %s: %s", unit.Gang, ans.Verdict, ans.Proof)
	}
	message := fmt.Sprintf("gang %s %s: %d of %d pods found a place, %d are needed", unit.Gang, ans.Verdict, max(ans.Most, 0), len(need.Members), need.Quorum)
	switch {
	case unit.Extra():
		message = noExtras(unit, len(need.Members))
	case held > 0:
		message += fmt.Sprintf(" besides the %d that have one", held)
	}
	switch {
	case ans.Err != nil:
		return fmt.Sprintf("gang %s: %v", unit.Gang, ans.Err)
	case ans.Why.Message != "" && ans.Blocked >= 0:
		return message + fmt.Sprintf(". %s: %s", blocked.Name, ans.Why.Message)
	}
	return message
}

func noExtras(unit *queue.Unit, count int) string {
	return fmt.Sprintf("gang %s has the pods that it needs, and there is no room for the %d beyond them", unit.Gang, count)
}

// leaveExtras puts the members back that found no place although the gang has what it needs.
func (e *Engine) leaveExtras(unit *queue.Unit, need gang.Need, ans gang.Answer) {
	if open, _, _, _ := e.openMembers(unit.Members); len(open) == 0 {
		e.queue.Stay(unit) // behind the gate of its members
		return
	}
	plugins := rejecting(ans)
	e.queue.Requeue(unit, queue.Rejection{Plugins: e.withGates(plugins, unit)})
	for _, p := range unit.Members {
		e.queue.Unnominate(p.UID)
	}
	var extras []*cluster.Pod
	for i, p := range need.Members {
		if ans.Nodes[i] == cluster.NoNode {
			extras = append(extras, p)
		}
	}
	if len(extras) > 0 && ans.Why.Message != "" {
		message := ans.Why.Message
		if !e.isBasic(unit.Gang) {
			message = fmt.Sprintf("%s. %s: %s", noExtras(unit, len(extras)), need.Members[max(ans.Blocked, 0)].Name, message)
		}
		e.tellMembers(extras, ReasonUnschedulable, message, nil)
	}
}
