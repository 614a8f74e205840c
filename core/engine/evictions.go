// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/evict"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// evictHost is the engine as core/evict sees it.
type evictHost struct{ e *Engine }

// Emit appends an effect of core/evict as the engine's own.
func (h evictHost) Emit(f evict.Effect) {
	switch f := f.(type) {
	case evict.Request:
		h.e.emit(Evict(f))
	case evict.Waste:
		h.e.emit(Wasted(f))
	case evict.Pause:
		h.e.emit(PreemptionPaused(f))
	case evict.StuckVictims:
		h.e.emit(VictimsStuck(f))
	case evict.Warning:
		h.e.writeEvent(f.Pod, "Warning", f.Reason, "Preempting", f.Note)
	default:
		panic(fmt.Sprintf("engine: effect of type %T from core/evict", f))
	}
}

func (h evictHost) Now() record.Time { return h.e.now }

func (h evictHost) Profile(schedulerName string) *evict.Profile {
	if prof := h.e.profiles[schedulerName]; prof != nil {
		return &prof.evicts
	}
	return nil
}

func (h evictHost) Pending(uid cluster.UID) bool { return h.e.pending[uid] != nil }
func (h evictHost) PendingPods() int             { return len(h.e.pending) }

func (h evictHost) Quorum(key cluster.GangKey, waiting []*cluster.Pod) int {
	return h.e.quorumOf(key, waiting).pods
}

func (h evictHost) DecidedQuorum(key cluster.GangKey) int {
	if st := h.e.gangs.of[key]; st != nil {
		return st.quorum
	}
	return 0
}

func (h evictHost) Need(u *queue.Unit) gang.Need { return h.e.gangAttempt(u).Need }
func (h evictHost) GangsBlocked() bool           { return h.e.blocked.Any() }

func (h evictHost) Reconsider(key cluster.GangKey, cause string) { h.e.reconsider(key, cause) }

func (h evictHost) EndHold(key cluster.GangKey, why string) {
	h.e.blocked.GiveUpHold(key, why)
}

func (h evictHost) Denominated(pods []*cluster.Pod, reason string) {
	for _, p := range pods {
		h.e.tell(p, ReasonGated, reason, evict.Shown{Cleared: true})
	}
}

// withdrawable returns the flight of a decided pod whose bind was not sent yet, nil if there is none.
func (e *Engine) withdrawable(uid cluster.UID) *flight {
	if f := e.binds.of[uid]; f != nil && f.stage != binding {
		return f
	}
	return nil
}

func (h evictHost) Withdrawable(uid cluster.UID) bool { return h.e.withdrawable(uid) != nil }

func (h evictHost) Withdrawn(uid cluster.UID) bool {
	f := h.e.binds.of[uid]
	return f != nil && f.recalled != ""
}

func (h evictHost) Withdraw(uid cluster.UID, by, to, node string) {
	f := h.e.withdrawable(uid)
	note := fmt.Sprintf("Preempted by %s on node %s (in kube-scheduler memory).", by, node)
	h.e.writeEvent(f.pod.Ref(), "Normal", "Preempted", "Preempting", note)
	f.preempted, f.recalled = true, fmt.Sprintf("preempted on its way to node %s: %s gets the room", f.node, to)
	if f.stage == waiting {
		h.e.binds.endRecall(f)
	} // else it comes back with the outcome of its writes
}

// evictDone follows the answer to an Evict. Pods that could not be evicted to undo a gang are still there, and the
// gang's next attempt requests them again.
func (e *Engine) evictDone(ev EvictDone) {
	if e.evictions.Done(evict.Answer(ev)) {
		return
	}
	if p := e.pending[cluster.UID(ev.For.UID)]; p != nil && p.Gang != nil {
		e.reconsider(p.Gang.Key, "its other pods were taken back")
	}
}

// protectionChanged follows a change of the object of a gang, of which either version may be nil: what protects its
// pods may be less than before, so those that they are in the way of are tried again, as if the pods had gone.
func (e *Engine) protectionChanged(key cluster.GangKey, was, is *cluster.Gang) {
	if evict.RuleBy(key, was) == evict.RuleBy(key, is) {
		return
	}
	s := e.store.Snapshot()
	for _, m := range s.GangMembers(key) {
		e.roomFreed(onNode(m.Pod, s.NodeName(m.Row)), nil)
	}
}
