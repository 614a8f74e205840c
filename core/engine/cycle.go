// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/evict"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// failed is why a unit comes back after an error: no plugin rejected it, so no event can wake it; time does.
var failed = queue.Rejection{Err: true}

// undone is why a member of a gang comes back whose placement was undone: its attempt did not fail.
var undone = queue.Rejection{}

// The numbered steps of the cycle, as the Meter hears of them.
const (
	StepPop StepName = iota + 1
	StepSearch
	StepReject
	StepAssume
	StepBind
)

// cycle tries to place one unit.
func (e *Engine) cycle(inHand **queue.Unit) {
	if !e.Ready() {
		return
	}
	defer e.cfg.Meter.Leave()

	// 1. Take the unit that is next, and leave it if there is nothing to decide.
	e.cfg.Meter.Enter(StepPop)
	unit, ok := e.pace.Next()
	if !ok {
		return
	}
	*inHand = unit
	if unit.Gang != (cluster.GangKey{}) {
		if shut := (gangRules{e}).Admit(unit).Gate; shut != "" {
			e.queue.Readmit(unit) // an object that the gates of its pods read has changed since it became active
			return
		}
	} else if p := unit.Members[0]; e.skip(p) {
		e.queue.Done(p.UID)
		return
	}
	if !e.role.lends(unit) {
		e.decide(unit)
	}
}

// decide tries to place a unit in flight.
func (e *Engine) decide(unit *queue.Unit) {
	if unit.Gang != (cluster.GangKey{}) {
		e.gangCycle(unit)
		return
	}
	p := unit.Members[0]
	prof := e.profiles[p.Spec.SchedulerName]
	e.count.decisions++
	if e.search.last.covers(e, unit) {
		e.search.last.step = e.count.events
		if prof.Preemption != nil {
			e.evictions.NoteBarred(p.Ref(), e.search.last.message)
		}
		e.queue.Rest(unit, e.search.last.plugins)
		return
	}

	// 2. Look at every node: filter, score, choose; ties by a draw keyed by the decision.
	e.cfg.Meter.Enter(StepSearch)
	s := e.store.Snapshot()
	out := prof.placer.Place(s, p, e.blocked.NominationsFor(unit.Members), place.Draw(e.cfg.Seed, e.count.decisions))
	e.search.window.Advance(out)
	e.emitForeignAnswers()

	// 3. No node fits, or none can be chosen: say why, and wait for what may change that.
	if out.Err != nil {
		e.cfg.Meter.Enter(StepReject)
		e.fail(unit, e.decision(unit, out), record.AttemptFailed, out.Err.Error(), notShown(p))
		return
	}
	if out.Node == cluster.NoNode {
		e.cfg.Meter.Enter(StepReject)
		e.reject(unit, prof, out)
		return
	}

	// 4. and 5. Take the node, and ask for the bind.
	if d, no := e.keep(unit, prof, out); no != nil {
		e.cfg.Meter.Enter(StepReject)
		e.refused(unit, e.decision(unit, out), d.Winner.Node, *no)
	}
}

// keep takes the node that was found for the pod of a unit in flight, unless a plugin refuses.
func (e *Engine) keep(unit *queue.Unit, prof *profile, out place.Outcome) (record.Decision, *refusal) {
	p := unit.Members[0]

	// 4. Assume the capacity and reserve for plugins at once, so that the next decision sees both.
	e.cfg.Meter.Enter(StepAssume)
	d := e.placed(unit, prof, out)
	holds, no := e.binds.reserve(prof, p, out.Node)
	if no != nil {
		return d, no
	}

	// 5. Ask for the writes that come first, or for the bind. Their outcomes come back as events.
	e.cfg.Meter.Enter(StepBind)
	f := &flight{unit: unit, pod: p, node: d.Winner.Node, decision: d.Number, holds: holds}
	e.queue.Done(p.UID)
	e.blocked.PodPlaced(p, d.Winner.Node)
	e.queue.Unnominate(p.UID)
	e.evictions.Placed(p, d.Winner.Node)
	e.decided(d)
	e.role.depart(f)
	e.role.departed(unit)
	return d, nil
}

// refused puts a unit back that a plugin refused while reserving.
func (e *Engine) refused(unit *queue.Unit, d record.Decision, node string, why refusal) {
	to := notShown(unit.Members[0])
	if why.err != nil {
		e.fail(unit, d, record.AttemptFailed, why.words("Reserve"), to)
		return
	}
	e.refuse(unit, d, node, why, to)
}

// refuse puts a unit back that one plugin refused on the node that was chosen for it (upstream words it as if the
// cluster had this one node). Its status shows to as its nominated node.
func (e *Engine) refuse(unit *queue.Unit, d record.Decision, node string, why refusal, to evict.Shown) {
	p := unit.Members[0]
	message := fmt.Sprintf("0/1 nodes are available: 1 %s.", why.reject)
	e.queue.Requeue(unit, queue.Rejection{Plugins: []string{why.plugin}, Watched: why.watched})
	e.queue.Unnominate(p.UID)
	d.Verdict, d.Message, d.Plugins = record.DoesNotFit, message, []string{why.plugin}
	d.Reasons = []record.Reason{{Plugin: why.plugin, Reason: why.reject, Nodes: 1, Examples: []string{node}}}
	e.decided(d)
	e.tell(p, ReasonUnschedulable, message, to)
}

// skip reports whether a popped pod needs no decision, because it is going away. A pod that is assumed or bound is
// not in the queue; the ledger would panic.
func (e *Engine) skip(p *cluster.Pod) bool {
	if p.Terminating {
		e.writeEvent(p.Ref(), "Warning", "FailedScheduling", "Scheduling", "skip schedule deleting pod: "+p.Key())
		return true
	}
	return false
}

// placed records a decision for a node.
func (e *Engine) placed(unit *queue.Unit, prof *profile, out place.Outcome) record.Decision {
	d := e.decision(unit, out)
	d.Verdict = record.Placed
	d.Tied = out.Tied
	s := e.store.Snapshot()
	d.Winner = &record.Candidate{Node: s.NodeName(out.Node), Total: out.Total, Scores: prof.placer.Scores(out, out.Node)}
	if out.RunnerUp != cluster.NoNode {
		d.RunnerUp = &record.Candidate{Node: s.NodeName(out.RunnerUp), Total: out.RunnerUpTotal, Scores: prof.placer.Scores(out, out.RunnerUp)}
	}
	return d
}

// reject puts a unit that fits nowhere back into the queue, with the plugins whose events may wake it.
func (e *Engine) reject(unit *queue.Unit, prof *profile, out place.Outcome) {
	p := unit.Members[0]
	why := prof.placer.Why(e.store.Snapshot(), out)
	d := e.decision(unit, out)
	help := e.postFilter(prof, p, out) // before the queue takes the unit back: a gate may close behind it
	if e.role.refers(unit, prof, help.victims.Verdict == preempt.Evict) {
		return
	}
	if unit.Early() && !help.acts() && e.changesNothing(p, help.victims) {
		e.rest(unit, prof, why.Plugins, help.victims)
		return
	}
	e.queue.Requeue(unit, queue.Rejection{Plugins: why.Plugins, Pending: why.Pending})
	d.Verdict = record.DoesNotFit
	d.PreFilter, d.Reasons, d.Plugins, d.Message = why.PreFilter, why.Reasons, why.Plugins, why.Message
	if d.Nodes == 0 || d.PreFilter != "" {
		d.Path = "" // no node was looked at
	}
	shown := e.nominate(p, &help, &d)
	for _, text := range help.texts {
		d.Message = join(d.Message, why.Message, text)
	}
	e.decided(d)
	e.tell(p, ReasonUnschedulable, d.Message, shown)
	e.reportUnfitMember(p, d.Message)
}

// join puts what one more plugin had to say behind a message: after a blank where it is the first of them.
func join(message, bare, text string) string {
	switch {
	case text == "":
		return message
	case message == bare:
		return message + " " + text
	}
	return message + ", " + text
}

// fail puts a unit back into the queue after an attempt that ended so and that no event cures. Its status shows to as
// its nominated node.
func (e *Engine) fail(unit *queue.Unit, d record.Decision, as record.Verdict, message string, to evict.Shown) {
	e.queue.Requeue(unit, failed)
	d.Verdict, d.Message = as, message
	e.decided(d)
	e.tell(unit.Members[0], reasonOf(as), message, to)
}

func (e *Engine) decision(unit *queue.Unit, out place.Outcome) record.Decision {
	p := unit.Members[0]
	return record.Decision{
		Number:   e.count.decisions,
		At:       e.now,
		Revision: e.store.Snapshot().Revision(),
		Pod:      p.Ref(),
		Profile:  p.Spec.SchedulerName,
		Attempt:  unit.Attempts,
		Nodes:    out.Nodes,
		Feasible: out.Feasible,
		Path:     paths[out.Path],
	}
}

// paths: how a search went over the nodes -> as decisions tell of it.
var paths = [...]record.Path{place.Scanned: record.Scanned, place.Grouped: record.Grouped, place.Ranked: record.Ranked}
