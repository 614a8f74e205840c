// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/evict"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/pace"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// GangGate is the name under which a gang waits for its pods: that of upstream's plugin.
const GangGate = "GangScheduling"

// A gang that does not say how many pods it needs is taken to be complete when none came for a quiet period, or six
// of them after the first one (answer A1 of the gang rules): one session, or as long as the default one where there
// are none.
const quietCap = 6

func (e *Engine) quietPeriod() record.Time { return cmp.Or(e.cfg.SessionPeriod, pace.DefaultPeriod) }

// gangRules answers the queue's questions about gangs.
type gangRules struct{ e *Engine }

// Priority is what the gang declares, or else the least of its members' (answer A3).
func (r gangRules) Priority(u *queue.Unit) (priority int32, declared bool) {
	if obj := r.e.gangObject(u.Gang); obj != nil && obj.Priority != nil {
		return *obj.Priority, true
	}
	least := u.Members[0].Spec.Priority
	for _, p := range u.Members[1:] {
		least = min(least, p.Spec.Priority)
	}
	return least, false
}

// Apart reports whether the pods of a group are scheduled one by one: those of a basic group, but for one with a
// topology constraint, whose pods have to choose one domain together.
func (r gangRules) Apart(key cluster.GangKey) bool { return r.e.apart(key) }

func (e *Engine) apart(key cluster.GangKey) bool {
	obj := e.gangObject(key)
	return obj != nil && evict.OneByOne(obj)
}

// Admit reports whether enough pods of a gang are there, and why not.
func (r gangRules) Admit(u *queue.Unit) queue.Admission {
	e := r.e
	if bad := e.badGang(u); bad != "" {
		return queue.Admission{Gate: GangGate, Reason: bad, Again: e.tellAt(u, bad)}
	}
	if u.Gang == (cluster.GangKey{}) {
		return queue.Admission{} // a pod that is scheduled alone; the gates of its profile are asked as for any
	}
	members := e.openMembers(u.Members)
	a := queue.Admission{Members: members.gates}
	if len(members.open) == 0 {
		a.Gate, a.Reason = members.gate, members.reason
		return a
	}
	a.Gate, a.Reason, a.Again = e.incomplete(u, members)
	if a.Gate == "" {
		if reason, again, shut := e.evictions.GangGate(u.Gang); shut {
			a.Gate, a.Reason, a.Again = plugin.DefaultPreemptionName, reason, again
		}
	}
	return a
}

// incomplete returns the gate of a gang of which too few pods may be tried, with the reason; empty if there are enough.
func (e *Engine) incomplete(u *queue.Unit, members memberGates) (gate, reason string, again record.Time) {
	q := e.quorumOf(u.Gang, u.Members)
	held, open := e.evictions.Staying(u.Gang), len(members.open)
	switch missing := q.pods - held - open; {
	case q.open && u.Gang.Source == cluster.GangOfAnnotation && (held == 0 || missing > 0):
		// More pods may come: no object declares how many there will be. A gang that has lost pods gets back those
		// that are created again.
		quiet := min(u.Joined+e.quietPeriod(), u.First+quietCap*e.quietPeriod())
		if e.now < quiet {
			return GangGate, fmt.Sprintf("%d pods of gang %s are there, and more may come until none came for %g s",
				len(u.Members), u.Gang, float64(e.quietPeriod())/float64(record.Second)), quiet
		}
		if open < len(u.Members) && held == 0 {
			return members.gate, members.reason, 0
		}
	case missing > 0:
		reason = fmt.Sprintf("gang %s needs %d pods, %d are there", u.Gang, q.pods, held+open)
		if n := len(u.Members) - open; n > 0 {
			reason += fmt.Sprintf(", and %d that must wait: %s: %s", n, members.gate, members.reason)
		}
		return GangGate, reason, e.tellAt(u, reason)
	}
	return "", "", 0
}

// tellAt is when the pods of a unit are to be notified that it waits at its gate: once no pod has come for a while,
// or soon, when it waits for another reason than before. It is 0 if they have been notified already.
func (e *Engine) tellAt(u *queue.Unit, reason string) record.Time {
	switch at := u.Joined + e.quietPeriod(); {
	case at > e.now:
		return at
	case u.GateReason != reason:
		return e.now + record.Second
	case u.AskAt() > e.now:
		return u.AskAt() // it was asked again before they were notified
	}
	return 0
}

// badGang is why the pods of a unit cannot be scheduled as they say, empty if they can.
func (e *Engine) badGang(u *queue.Unit) string {
	return gang.Bad(u.Members, e.gangObject(u.Pod().Gang.Key), func(p *cluster.Pod) string {
		if foreign := e.profiles[p.Spec.SchedulerName].Foreign; foreign != nil {
			return foreign.Binder(p)
		}
		return ""
	})
}

// memberGates states which members of a unit may be scheduled now.
type memberGates struct {
	open         []*cluster.Pod // no gate of their profile holds them, and they are not terminating
	gate, reason string         // the first gate that holds one of the others, and why
	gates        []string       // the names of all gates that hold one
}

// openMembers asks the gates of the members.
func (e *Engine) openMembers(members []*cluster.Pod) memberGates {
	s := e.store.Snapshot()
	o := memberGates{gate: GangGate, reason: "its pods are being deleted"}
	for _, p := range members {
		if p.Terminating {
			continue
		}
		gate, why := e.closedGate(s, p)
		if gate == "" {
			o.open = append(o.open, p)
			continue
		}
		if len(o.gates) == 0 {
			o.gate, o.reason = gate, fmt.Sprintf("%s: %s", p.Key(), why)
		}
		if !slices.Contains(o.gates, gate) {
			o.gates = append(o.gates, gate)
		}
	}
	return o
}

// closedGate returns the first gate of its profile that holds a pod, with its reason; empty for none.
func (e *Engine) closedGate(s cluster.Snapshot, p *cluster.Pod) (gate, reason string) {
	for _, g := range e.profiles[p.Spec.SchedulerName].Gates {
		if why, ok := g.Gated(s, p); !ok {
			return g.Name(), why
		}
	}
	return "", ""
}

// quorum is how many pods of a gang must have a place for any to get one. It is open when no object declares it.
type quorum struct {
	pods int
	open bool
}

// quorumOf reads what is declared; of a gang that declares nothing, all pods that wait, or as many as its first
// decision bound.
func (e *Engine) quorumOf(key cluster.GangKey, waiting []*cluster.Pod) quorum {
	if obj := e.gangObject(key); obj != nil {
		if obj.Basic {
			return quorum{pods: 1}
		}
		return quorum{pods: max(obj.MinCount, 1)}
	}
	for _, p := range waiting {
		if p.Gang.Size > 0 {
			return quorum{pods: p.Gang.Size}
		}
	}
	decided := 0
	var sized *cluster.Pod // the first by name that says how many pods the gang has
	e.store.Snapshot().EachInGang(key, func(p *cluster.Pod, _ cluster.NodeIdx) {
		switch {
		case p.Terminating:
			return
		case p.Gang != nil && p.Gang.Size > 0 && (sized == nil || cluster.CompareNames(p, sized) < 0):
			sized = p
		case p.Bound != nil:
			decided = max(decided, p.Bound.Quorum)
		}
	})
	if sized != nil {
		return quorum{pods: sized.Gang.Size}
	}
	if st := e.gangs.of[key]; st != nil {
		decided = max(decided, st.quorum)
	}
	if decided > 0 {
		return quorum{pods: decided, open: true}
	}
	return quorum{pods: len(waiting), open: true}
}

func (e *Engine) gangObject(key cluster.GangKey) *cluster.Gang {
	return e.store.Snapshot().GangObject(key)
}

// gangLive is how many pods of a gang hold capacity and are not going away.
func (e *Engine) gangLive(key cluster.GangKey) int {
	live, _ := e.store.Snapshot().GangCounts(key)
	return live
}

func (e *Engine) stateOf(key cluster.GangKey) *gangState {
	st := e.gangs.of[key]
	if st == nil {
		st = &gangState{}
		e.gangs.of[key] = st
	}
	return st
}

// gangProgress follows a change of which pods of a gang are bound: how long it was so in part, and what its status
// shows.
func (e *Engine) gangProgress(key cluster.GangKey) {
	if key == (cluster.GangKey{}) {
		return
	}
	s := e.store.Snapshot()
	if s.GangHolds(key) == 0 && !e.queue.HasGang(key) {
		e.forgetState(key)
		return
	}
	st := e.stateOf(key)
	live, bound := s.GangCounts(key)
	if live == 0 {
		// Nothing is left of it: what its controller makes again is another gang, which starts whole.
		st.quorum, st.complete, st.partialSince = 0, false, 0
		return
	}
	q := e.quorumOf(key, nil).pods
	if q == 0 {
		return
	}
	switch {
	case bound >= q:
		if st.partialSince != 0 {
			e.emit(GangWhole{Gang: key, Bound: bound, Took: e.now - st.partialSince})
			st.partialSince = 0
		}
		st.complete = true
		e.emitGangStatus(key, GangStatus{Scheduled: true})
	case bound > 0 && st.partialSince == 0 && !st.complete:
		st.partialSince = e.now
	case bound == 0:
		st.partialSince = 0
	}
}

// lastBound follows a pod that is seen bound. When it was the last one on its way and the gang is in part, those
// that were rejected while it could not be rolled back are tried once more, so that the gang is finished or undone.
func (e *Engine) lastBound(key cluster.GangKey) {
	st := e.gangs.of[key]
	if st == nil || st.partialSince == 0 {
		return
	}
	if live, bound := e.store.Snapshot().GangCounts(key); bound < live {
		return
	}
	e.reconsider(key, "all others of its pods are bound, and these are needed")
}

// gangChanged follows a change of the pods of a gang that have a place, or of what they declare: those that wait may be
// enough now, fewer or more of them may need a place, or none.
func (e *Engine) gangChanged(key cluster.GangKey, cause string) {
	e.gangProgress(key)
	e.reconsider(key, cause)
}

// The causes of gangChanged, as records show them.
const (
	memberPlaced   = "another of its pods has a place"
	memberLost     = "one of its pods lost its place"
	memberDeclares = "one of its pods says something else of it"
)

// gangLost follows the loss of a pod's place.
func (e *Engine) gangLost(key cluster.GangKey) {
	e.gangChanged(key, memberLost)
	e.gangs.letEdited(key)
}

// emitGangStatus asks that the status of a gang's object show how it stands, if it does not. What was scheduled once
// stays so (upstream: the condition PodGroupInitiallyScheduled never goes back from True).
func (e *Engine) emitGangStatus(key cluster.GangKey, want GangStatus) {
	obj := e.gangObject(key)
	if obj == nil {
		return
	}
	st := e.stateOf(key)
	unseen := st.told.Scheduled && st.told.UID == cluster.UID(obj.UID) // the API server may not show it yet
	if !want.Admitted && (obj.Condition.Scheduled || unseen && !want.Scheduled) {
		return
	}
	want.Gang, want.UID, want.Generation = key, cluster.UID(obj.UID), obj.Generation
	_, want.Bound = e.store.Snapshot().GangCounts(key)
	want.Pending = len(e.waitingOf(key))
	have := cluster.GangCondition{Scheduled: want.Scheduled, Reason: want.Reason, Message: want.Message, Generation: want.Generation}
	if st.told == want || !want.Admitted && have == obj.Condition {
		return
	}
	st.told = want
	e.emit(want)
}

// waitingOf returns the pods of a gang that wait, together or one by one.
func (e *Engine) waitingOf(key cluster.GangKey) []*cluster.Pod {
	if u := e.queue.Gang(key); u != nil {
		return u.Members
	}
	return e.queue.Apart(key)
}

// regroupGang follows a change of whether the pods of a group are scheduled one by one.
func (e *Engine) regroupGang(key cluster.GangKey) {
	e.queue.Regroup(key, "whether the pods of the group are scheduled one by one has changed")
	e.role.regrouped(key)
	if e.queue.Gang(key) == nil {
		e.evictions.GangGone(key, "its pods are scheduled one by one")
	}
}

// reportUnfitMember shows in the status of a group whose pods are scheduled one by one that one of them does not fit,
// as long as none has a place. The first one that does not fit is shown: a message for each pod would be written again
// and again.
func (e *Engine) reportUnfitMember(p *cluster.Pod, message string) {
	if p.Gang == nil || !e.apart(p.Gang.Key) || e.gangLive(p.Gang.Key) > 0 {
		return
	}
	obj, st := e.gangObject(p.Gang.Key), e.stateOf(p.Gang.Key)
	if obj.Condition.Reason != ReasonUnschedulable && st.told.Reason != ReasonUnschedulable {
		e.emitGangStatus(p.Gang.Key, GangStatus{
			Reason: ReasonUnschedulable, Message: fmt.Sprintf("%s: %s", p.Name, message)})
	}
}

// setGang follows a new version of an object that declares a gang.
func (e *Engine) setGang(obj *cluster.Gang) {
	if obj.Key.Source == cluster.GangOfVolcano && (obj.Phase == "" || obj.Phase == "Pending") && obj.Bad == "" {
		e.emitGangStatus(obj.Key, GangStatus{Admitted: true}) // its controller makes the pods only then
	}
	e.regroupGang(obj.Key)
	e.reconsider(obj.Key, "its pod group has changed")
	if e.store.Snapshot().GangHolds(obj.Key) > 0 {
		e.gangProgress(obj.Key)
	}
}

// tellWaiting tells the pods of gangs whose gate has stayed shut for a while why they wait, in the reason that cluster
// autoscalers leave alone: more capacity would not help them.
func (e *Engine) tellWaiting() {
	for _, u := range e.queue.TakeAsked() {
		e.tellMembers(u.Members, ReasonGated, u.GateReason, e.evictions.Shown(u.Members))
		if u.Gate == GangGate && u.Gang != (cluster.GangKey{}) && e.gangLive(u.Gang) == 0 {
			e.emitGangStatus(u.Gang, GangStatus{Reason: ReasonUnschedulable, Message: u.GateReason})
		}
	}
}

// backToGang brings a member back whose place is lost to the others of its gang that wait, or to wait alone.
func (e *Engine) backToGang(p *cluster.Pod, why queue.Rejection, cause string) {
	e.queue.Rejoin(p, why, cause)
	if u, _, ok := e.queue.Lookup(p.UID); ok {
		e.reconsider(u.Gang, memberLost)
	}
}

// wasWhole reports whether a gang has had its quorum, as far as that can be known.
func (e *Engine) wasWhole(key cluster.GangKey, members []cluster.GangMember) bool {
	st := e.gangs.of[key]
	if st != nil && st.complete {
		return true
	}
	return gang.WasWhole(members, e.gangObject(key), st != nil && st.quorum > 0, e.now)
}

// undo evicts the pods of a gang that can have no more than a part of its quorum, if a controller would make them all
// again. It is false, and nothing happens, when one would not come back, or when the gang was whole once.
func (e *Engine) undo(key cluster.GangKey, first *cluster.Pod, decision uint64) bool {
	members := e.store.Snapshot().GangMembers(key)
	if e.wasWhole(key, members) {
		return false
	}
	var victims []record.PodRef
	for _, m := range members {
		if !m.Pod.Owned {
			return false
		}
		if !m.Assumed && !m.Pod.Terminating {
			victims = append(victims, m.Pod.Ref())
		}
	}
	if len(victims) == 0 {
		return false
	}
	slices.SortFunc(victims, func(a, b record.PodRef) int { return cmp.Compare(a.Key(), b.Key()) })
	e.evictions.Request(evict.Request{For: first.Ref(), Decision: decision, Victims: victims, Undo: true})
	return true
}
