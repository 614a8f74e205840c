// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
)

// A pod that fits nowhere may have others evicted. The evictions run beside the loop: the Evict effect asks for them, and
// EvictDone answers. Meanwhile the pod is nominated to the node, so that no other of its priority or less takes the room,
// and a gate keeps it from being tried. The gate opens with an answer that says that it failed, or once every victim is seen to
// go: the last end of a victim, which wakes the pod, must not find it closed. An answer that all were deleted does not open it:
// the watch is behind the answer, and until it shows the victims going there is nothing to be tried.
//
// No event asks the gate. Of a hundred pods that wait for their victims each end of a victim is of use to one, and would wake
// all. What opens a gate tries the pod behind it, if anything wanted to wake it meanwhile: at once when all victims are gone, and
// a little later while some of them are going. Mostly what wanted to wake it was the end of others' victims, and the end of its
// own is near.
//
// Until all victims are seen to go the pod evicts nobody else, whatever wakes it.
//
// Victims that are decided and not bound yet are turned back instead, and wait for a place again; nobody asks the API
// server for that. Those whose bind is on the way are evicted as if they were bound.

// eviction is what one pod asked for.
type eviction struct {
	preemptor record.PodRef
	node      string          // the nominated one
	from      map[string]bool // node of a victim -> true
	key       thrashKey
	decision  uint64
	// victims are those that the API server was asked to delete, turned those that are on their way and come back.
	victims, turned []cluster.UID
	// done: EvictDone has come.
	done bool
	// knock: it is in the engine's knocks, or was.
	knock bool
	// needless: the pod has a place, or is gone.
	needless bool
	// counted: whether it got a place by the evictions is settled.
	counted bool
	// robbed: a pod was bound to the node by somebody else meanwhile.
	robbed bool
	// inUnits: the victims were sought in units. stuck is set only then.
	inUnits bool
	stuck
}

// stays tells whether a victim is not seen to go yet.
func (e *Engine) stays(uid cluster.UID) bool {
	p, _, _, there := e.store.Snapshot().PodOn(uid)
	return there && !p.Terminating
}

// awaited tells whether pods that were to make room for another still have it, and nothing on them says that they go.
func (e *Engine) awaited(uid cluster.UID) bool {
	ev := e.evictions[uid]
	return ev != nil && (slices.ContainsFunc(ev.victims, e.stays) ||
		slices.ContainsFunc(ev.turned, func(uid cluster.UID) bool { return e.binding[uid] != nil && e.binding[uid].recalled != "" }))
}

// countsOn is the node on which a pod counts: where it is nominated, or where its victims have their room still although a pod of
// higher priority took the nomination. Its gate keeps it from being tried then, but for profiles that have none.
func (e *Engine) countsOn(p *cluster.Pod) string {
	node := cmp.Or(e.queue.NominationOf(p.UID), p.Nominated)
	if node == "" && e.awaited(p.UID) {
		return e.evictions[p.UID].node
	}
	return node
}

// preempting tells whether evictions for a pod are under way, or not seen yet.
func (e *Engine) preempting(uid cluster.UID) bool {
	ev := e.evictions[uid]
	if ev == nil {
		return false
	}
	return slices.ContainsFunc(ev.victims, e.stays)
}

// beginEviction notes what was asked for, in the place of what was before.
func (e *Engine) beginEviction(uid cluster.UID, ev *eviction) {
	e.endEviction(uid)
	e.evictions[uid] = ev
	for _, v := range slices.Concat(ev.victims, ev.turned) {
		e.victimsOf[v] = append(e.victimsOf[v], uid)
	}
}

// endEviction forgets it.
func (e *Engine) endEviction(uid cluster.UID) {
	ev := e.evictions[uid]
	if ev == nil {
		return
	}
	delete(e.evictions, uid)
	for _, v := range slices.Concat(ev.victims, ev.turned) {
		left := slices.DeleteFunc(e.victimsOf[v], func(preemptor cluster.UID) bool { return preemptor == uid })
		if e.victimsOf[v] = left; len(left) == 0 {
			delete(e.victimsOf, v)
		}
	}
}

// victimGoes is told that a pod is seen to go, or is gone.
func (e *Engine) victimGoes(uid cluster.UID) {
	e.spareDoomed(uid)
	for _, preemptor := range e.victimsOf[uid] {
		if ev := e.evictions[preemptor]; slices.Contains(ev.victims, uid) {
			e.knocked(ev.preemptor)
		}
	}
}

// turnedBound follows a pod that was to be turned back and that somebody bound all the same: those that counted on its capacity
// are tried again.
func (e *Engine) turnedBound(uid cluster.UID) {
	for _, preemptor := range e.victimsOf[uid] {
		if ev := e.evictions[preemptor]; slices.Contains(ev.turned, uid) {
			e.queue.Activate([]record.PodRef{ev.preemptor})
		}
	}
	for _, c := range e.clearancesInOrder() {
		if c.left[uid] == turned {
			delete(c.left, uid)
			e.seenOff(c)
		}
	}
}

// knocked tries a pod whose gate has opened, if something wanted to wake it while it was closed.
func (e *Engine) knocked(pod record.PodRef) {
	uid := cluster.UID(pod.UID)
	e.memberGateOpens(uid)
	if !e.knocking(uid) {
		return
	}
	if ev := e.evictions[uid]; ev != nil && slices.ContainsFunc(ev.victims, e.there) {
		if !ev.knock {
			ev.knock = true
			e.knocks = append(e.knocks, knock{e.now + knockPatience, pod})
		}
		return
	}
	e.queue.Activate([]record.PodRef{pod})
}

// memberGateOpens asks the gates of a gang again if the evictions for one of its pods kept it back: the pod asked for them before
// it was in the gang.
func (e *Engine) memberGateOpens(uid cluster.UID) {
	if u, _, _ := e.queue.Lookup(uid); u != nil && u.Gang != (cluster.GangKey{}) && !e.preempting(uid) {
		e.reconsider(u.Gang, "the evictions for one of its pods are carried out")
	}
}

// knocking tells whether a pod waits behind a gate that is open, and something wanted to wake it.
func (e *Engine) knocking(uid cluster.UID) bool {
	u, _, _ := e.queue.Lookup(uid)
	return u != nil && u.Gate == plugin.DefaultPreemptionName && !e.preempting(uid)
}

// there tells whether a pod has its room.
func (e *Engine) there(uid cluster.UID) bool {
	_, _, _, there := e.store.Snapshot().PodOn(uid)
	return there
}

// knockPatience is how long the end of victims that are going is waited for before a pod is tried that something else wanted to
// wake.
const knockPatience = record.Second

// knock is a pod to be tried if it still waits then.
type knock struct {
	at  record.Time
	pod record.PodRef
}

// hearKnocks tries the pods whose victims were waited for long enough.
func (e *Engine) hearKnocks() {
	for len(e.knocks) > 0 && e.knocks[0].at <= e.now {
		pod := e.knocks[0].pod
		if e.knocks = e.knocks[1:]; e.knocking(cluster.UID(pod.UID)) {
			e.queue.Activate([]record.PodRef{pod})
		}
	}
}

// nextKnock is when the next of them is due; 0 for no time.
func (e *Engine) nextKnock() record.Time {
	if len(e.knocks) == 0 {
		return 0
	}
	return e.knocks[0].at
}

// seekVictims looks for pods to evict so that p gets a place, and closes the gate behind p if there are any. The zero
// Answer is that of a profile that evicts nobody.
func (e *Engine) seekVictims(prof *profile, p *cluster.Pod, out place.Outcome) found {
	if prof.Preemption == nil || out.Nodes == 0 {
		return found{}
	}
	e.meter.Plugin(plugin.AtPostFilter, plugin.DefaultPreemptionName)
	last := e.evictions[p.UID]
	if last != nil && last.robbed && !e.awaited(p.UID) {
		last.robbed = false
		e.miss(p.UID, "others took the room")
		e.robbedAgain(e.thrashKeyOf(p), p.Ref())
	}
	if until := e.pausedUntil(e.thrashKeyOf(p), p.Ref()); until != 0 {
		return found{Answer: preempt.Answer{Verdict: preempt.NotHelpful, Message: pausedMessage}, paused: until}
	}
	var a found
	if len(e.rests[p.UID]) > 0 || e.goesByUnits(prof, &e.victims, p) {
		a = e.seekUnits(prof, p, out)
	} else {
		a.Answer = e.seekOnNodes(prof, p, out)
	}
	e.barredBy(p.Ref(), a.Message)
	if a.Verdict == preempt.Evict {
		last = e.evictions[p.UID]
		ev := &eviction{preemptor: p.Ref(), key: e.thrashKeyOf(p), node: e.store.Snapshot().NodeName(a.Best.Node), from: map[string]bool{}, decision: e.decisions}
		if ev.inUnits = a.units != nil; last != nil {
			ev.stuck = last.after()
		}
		if last != nil && last.node == ev.node && !last.counted {
			ev.victims = slices.Clone(last.victims) // more has to go there
		} else if last != nil {
			e.miss(p.UID, last.why("it needs other room"))
		}
		for _, v := range a.Best.Victims {
			if _, n, _, there := e.store.Snapshot().PodOn(v.UID); there {
				ev.from[e.store.Snapshot().NodeName(n)] = true
			}
			if e.turnable(v.UID) != nil {
				ev.turned = append(ev.turned, v.UID)
			} else if !v.Terminating {
				ev.victims = append(ev.victims, v.UID)
			}
		}
		e.beginEviction(p.UID, ev)
	}
	return a
}

// seekOnNodes is the search of upstream: for the node on which the loss is smallest.
func (e *Engine) seekOnNodes(prof *profile, p *cluster.Pod, out place.Outcome) preempt.Answer {
	q := preempt.Question{
		Pod: p, Nominated: e.countsOn(p), Awaited: e.awaited(p.UID),
		Relief: prof.placer.Relief(e.store.Snapshot(), out),
		Limit:  prof.Preemption.Limit, Draw: place.Draw(e.cfg.Seed, math.MaxUint64-e.decisions), Strict: prof.Preemption.Strict,
	}
	q.All = prof.Foreign != nil && prof.Foreign.Preempts(p)
	a := e.victims.Find(e.store.Snapshot(), q)
	if q.All && a.Verdict == preempt.Evict {
		a = e.askAboutVictims(prof, p, a)
	}
	return a
}

// askAboutVictims lets foreign code reduce and change the candidates.
func (e *Engine) askAboutVictims(prof *profile, p *cluster.Pod, a preempt.Answer) preempt.Answer {
	s := e.store.Snapshot()
	var asked []place.ForeignVictims
	for _, c := range a.Candidates {
		asked = append(asked, place.ForeignVictims{Node: s.NodeName(c.Node), Pods: refs(c.Victims), PDBViolations: int64(c.Loss.Violations)})
	}
	slices.SortFunc(asked, func(a, b place.ForeignVictims) int { return cmp.Compare(a.Node, b.Node) })
	chosen, err := prof.Foreign.Preempt(p, asked, func(node string) (pods []record.PodRef, ok bool) {
		n, ok := s.Find(node)
		if ok {
			s.EachPod(n, func(p *cluster.Pod, _ bool) { pods = append(pods, p.Ref()) })
		}
		return pods, ok
	})
	e.tellHeard()
	if err != nil {
		return preempt.Answer{Verdict: preempt.Failed, Message: "preemption: " + err.Error(), Nodes: a.Nodes, Tried: a.Tried}
	}
	var candidates []preempt.Candidate
	for _, of := range chosen {
		if prof.Preemption.Strict && of.PDBViolations > 0 {
			continue
		}
		n, known := s.Find(of.Node)
		var pods []*cluster.Pod
		for _, ref := range of.Pods {
			if v, on, _, there := s.PodOn(cluster.UID(ref.UID)); there && on == n {
				pods = append(pods, v)
			}
		}
		if known && len(pods) > 0 {
			candidates = append(candidates, preempt.NewCandidate(n, pods, int(of.PDBViolations)))
		}
	}
	if len(candidates) == 0 {
		return preempt.Answer{Verdict: preempt.Failed, Message: "preemption: no candidate node for preemption", Nodes: a.Nodes, Tried: a.Tried}
	}
	a.Best = preempt.Choose(candidates)
	return a
}

func refs(pods []*cluster.Pod) (list []record.PodRef) {
	for _, p := range pods {
		list = append(list, p.Ref())
	}
	return list
}

// turnable is the flight of a pod that can be turned back before it is bound, nil if there is none.
func (e *Engine) turnable(uid cluster.UID) *flight {
	if f := e.binding[uid]; f != nil && f.stage != binding {
		return f
	}
	return nil
}

// evict acts on the answer of a search for victims: it nominates, turns flights back and asks for evictions. It returns
// what the pod's status is to show as its nominated node.
func (e *Engine) evict(p *cluster.Pod, a found, d *record.Decision) promise {
	defer func() { // whatever came of it
		if a.units != nil && d.Preemption != nil {
			tellUnits(d.Preemption, a.units)
		}
		if d.Preemption != nil {
			d.Preemption.PausedUntil, d.Preemption.Wasted = a.paused, e.wastedFor(e.thrashKeyOf(p))
		}
	}()
	held := e.queue.NominationOf(p.UID)
	switch a.Verdict {
	case preempt.NotEligible, preempt.Failed:
		if a.Message != "" {
			d.Preemption = &record.Preemption{Nodes: a.Nodes, Tried: a.Tried, Message: a.Message}
		}
		if held == "" {
			e.queue.NominateAsStatus(p)
		}
		return promise{}
	case preempt.NotHelpful:
		d.Preemption = &record.Preemption{Nodes: a.Nodes, Tried: a.Tried, Message: a.Message}
		fallthrough
	default:
		e.queue.Unnominate(p.UID)
		return promise{cleared: p.Nominated != "" || held != "" && a.Verdict == preempt.NotHelpful}
	case preempt.Evict:
	}
	node := e.store.Snapshot().NodeName(a.Best.Node)
	d.Preemption = &record.Preemption{Node: node, Violations: a.Best.Loss.Violations, Nodes: a.Nodes, Tried: a.Tried}
	if a.units == nil {
		d.Preemption.Loss = lossOf(a.Best.Loss)
	}
	e.queue.Nominate(p, node)
	if ev := e.evictions[p.UID]; a.units != nil && ev != nil {
		e.watchVictims(e.profiles[p.Spec.SchedulerName], ev.gaveUp, look{pod: p.UID, decision: ev.decision})
	}
	ask := Evict{For: p.Ref(), Node: node, Decision: d.Number}
	worked := false // upstream leaves nominations alone when all victims were going anyway
	for _, v := range a.Best.Victims {
		f := e.turnable(v.UID)
		d.Preemption.Victims = append(d.Preemption.Victims, record.Victim{
			Pod: v.Ref(), Priority: v.Spec.Priority, TurnedBack: f != nil, Going: v.Terminating && f == nil})
		switch {
		case f != nil && e.binding[v.UID] != f: // it came back with one of its gang
		case f != nil:
			e.yield(f, "pod "+string(p.UID), fmt.Sprintf("pod %s of priority %d", p.Key(), p.Spec.Priority), node)
			worked = true
		case !v.Terminating:
			ask.Victims = append(ask.Victims, v.Ref())
			worked = true
		}
	}
	if worked {
		ask.Denominate = e.denominate(p.Spec.Priority, cluster.GangKey{}, []string{node})
		d.Preemption.Denominated = ask.Denominate
	}
	if len(ask.Victims)+len(ask.Denominate) > 0 {
		e.spend(e.profiles[p.Spec.SchedulerName], charged{p.UID, d.Number}, ask.Victims)
		e.emit(ask)
	}
	return promise{node: node}
}

// yield turns a flight back whose room another gets: by is how the event names it, to how the record does.
func (e *Engine) yield(f *flight, by, to, node string) {
	e.emit(WriteEvent{f.pod.Ref(), "Normal", "Preempted", "Preempting", fmt.Sprintf("Preempted by %s on node %s (in kube-scheduler memory).", by, node)})
	if f.recalled == "" {
		f.recalled = fmt.Sprintf("taken back from node %s: %s gets the room", f.node, to)
	}
	if f.stage == waiting {
		e.comeBack(f)
	} // else it comes back with the outcome of its writes
}

// denominate ends the nominations below a priority to nodes: those pods might count on them in vain. They may find another
// place at once. A gang for which room is made loses all of its nominations with one (answer A17).
func (e *Engine) denominate(priority int32, own cluster.GangKey, nodes []string) []record.PodRef {
	var out []record.PodRef
	lose := func(p *cluster.Pod) {
		e.queue.Unnominate(p.UID)
		out = append(out, p.Ref())
	}
	for _, node := range nodes {
		for _, other := range e.queue.NominatedOn(node) {
			if other.Spec.Priority >= priority {
				continue
			}
			if other.Gang == nil || e.clearances[other.Gang.Key] == nil {
				lose(other)
				continue
			}
			if other.Gang.Key == own {
				continue
			}
			for _, p := range e.loseRoom(other.Gang.Key) {
				lose(p)
			}
		}
	}
	return out
}

// evictionDone learns what became of the evictions for a pod; known is false when they were for something else. When one
// has failed, the pod is tried again at once: the room may never come, and nothing else may wake it.
func (e *Engine) evictionDone(done EvictDone) (known bool) {
	uid := cluster.UID(done.For.UID)
	ev := e.evictions[uid]
	if ev == nil || ev.decision != done.Decision {
		return false
	}
	ev.done = true
	switch {
	case ev.needless:
		e.endEviction(uid)
	case done.Message != "":
		if ev.inUnits {
			e.rests[uid] = ev.victims
		}
		e.endEviction(uid)
		e.memberGateOpens(uid)
		e.tryAfterRefusal(uid, done)
	default:
		delete(e.failures, uid)
		e.knocked(done.For)
	}
	return true
}

// tryAfterRefusal tries a pod again for which pods could not be evicted: at once (upstream), and when that fails again after 1, 2, 4 and
// at last every 32 seconds. What refuses deletes, as a policy of the API server, would be asked a hundred times a second.
func (e *Engine) tryAfterRefusal(uid cluster.UID, done EvictDone) {
	if e.pending[uid] == nil {
		return
	}
	failed := e.failures[uid]
	e.failures[uid]++
	if failed == 0 {
		e.queue.Activate([]record.PodRef{done.For})
		return
	}
	e.lookAt(look{pod: uid, again: true, at: e.now + record.Second<<min(failed-1, 5)})
}

// needsNoRoom is told that a pod is bound or gone.
func (e *Engine) needsNoRoom(uid cluster.UID) {
	delete(e.failures, uid)
	delete(e.rests, uid)
	ev := e.evictions[uid]
	if ev == nil {
		return
	}
	e.miss(uid, "it is gone, or somebody else bound it")
	if ev.needless = true; ev.done || len(ev.victims) == 0 {
		e.endEviction(uid)
	}
}

// landed is told that a pod got its place on a node.
func (e *Engine) landed(p *cluster.Pod, node string) {
	ev := e.evictions[p.UID]
	if ev == nil || ev.counted {
		return
	}
	if ev.node != node && !ev.from[node] {
		e.miss(p.UID, "it got its place elsewhere")
		return
	}
	ev.counted = true
	if len(ev.victims) > 0 {
		e.settled[p.UID] = true
	}
}

// miss counts the last evictions for a pod as wasted, if it did not get its place by them.
func (e *Engine) miss(uid cluster.UID, why string) {
	ev := e.evictions[uid]
	if ev == nil || ev.counted {
		return
	}
	if ev.counted = true; len(ev.victims) > 0 {
		e.waste(ev.key, Wasted{For: ev.preemptor, Pods: len(ev.victims), Why: why})
	}
}
