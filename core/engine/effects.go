// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/evict"
	"github.com/kumiki-scheduler/kumiki/record"
)

// The reasons of the PodScheduled condition.
const (
	ReasonUnschedulable = "Unschedulable"
	ReasonError         = "SchedulerError"
	ReasonGated         = "SchedulingGated"
)

// reasonOf returns the reason that a pod shows whose attempt ended in a way that no event cures.
func reasonOf(v record.Verdict) string {
	if v == record.DoesNotFit {
		return ReasonUnschedulable
	}
	return ReasonError
}

// emit appends an effect, after the moves that came before it.
func (e *Engine) emit(f Effect) {
	e.tellMoves()
	e.out.effects = append(e.out.effects, f)
}

func (e *Engine) tellMoves() {
	for _, m := range e.queue.TakeMoves() {
		e.out.effects = append(e.out.effects, Moved{Move: m})
	}
}

// writeEvent asks for an event about a pod; see WriteEvent.
func (e *Engine) writeEvent(pod record.PodRef, typ, reason, action, note string) {
	e.emit(WriteEvent{Pod: pod, Type: typ, Reason: reason, Action: action, Note: note})
}

// trouble reports something that should not have happened.
func (e *Engine) trouble(object, what, details string) {
	e.emit(Trouble{Object: object, What: what, Details: details})
}

func (e *Engine) decided(d record.Decision) { e.emit(Decided{Decision: d}) }

// notShown is the status of a pod for which no node is nominated any more.
func notShown(p *cluster.Pod) evict.Shown { return evict.Shown{Cleared: p.Nominated != ""} }

// shownUntilNow is notShown for a decided pod. The known version of the pod may be older than the one that shows the
// nominated node, which must not stay until another attempt.
func (f *flight) shownUntilNow(p *cluster.Pod) evict.Shown {
	return evict.Shown{Cleared: f.expected || p.Nominated != ""}
}

// tell writes the event and the condition of a pod that was not placed; to is what its status shows as its nominated
// node. The condition is not written if the API server has it already.
func (e *Engine) tell(p *cluster.Pod, reason, message string, to evict.Shown) {
	e.writeEvent(p.Ref(), "Warning", "FailedScheduling", "Scheduling", message)
	want := cluster.Condition{Reason: reason, Message: message, Generation: p.Generation}
	renamed := to.Cleared || to.Node != "" && to.Node != p.Nominated
	if p.Condition != want || renamed {
		e.emit(Condition{Pod: p.Ref(), Reason: reason, Message: message, Generation: p.Generation, ClearNomination: to.Cleared, Nominate: to.Node})
	}
}

// tellMembers tells each pod of a gang why it waits. A gang has many pods: what the API server shows of one already
// is not told again. What is not in to is promised no node any more.
func (e *Engine) tellMembers(members []*cluster.Pod, reason, message string, to map[cluster.UID]evict.Shown) {
	for _, p := range members {
		what, ok := to[p.UID]
		if !ok {
			what = notShown(p)
		}
		if p.Condition.Reason == reason && p.Condition.Message == message && !what.Cleared && (what.Node == "" || what.Node == p.Nominated) {
			continue
		}
		e.tell(p, reason, message, what)
	}
}
