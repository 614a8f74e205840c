// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
)

// A gang that fits nowhere may have units of lower priority evicted: all that it needs, in one go, if a dry run places
// it without them, and none otherwise (rules R3 to R7). Its pods are nominated to the nodes of the dry run, in memory
// and in their status: pods of its priority or less stay away from that capacity, and nominations below it end (rule
// R11). It is not tried before the evictions are carried out, and evicts no other pods before its victims are gone
// (rule R12). The same holds for a pod by itself.
//
// If an eviction fails midway, the rest of the same victims is requested again, as long as the unit fits without them
// (answer A15). If others took the capacity, it is planned anew once the victims are gone (A17, A24); what was evicted
// is wasted then, and is counted.
//
// Design and what was rejected: docs/design/0006-preemption-in-units.md.

// Shown is what becomes of the node that is nominated in a pod's status: nothing, or cleared, or another one.
type Shown struct {
	Cleared bool
	Node    string
}

// beginForPod notes what a pod by itself is about to request, and replaces what was before. From then on its gate
// is shut.
func (m *Manager) beginForPod(p *cluster.Pod, owner Owner, plan Plan, decision uint64) {
	s := m.store.Snapshot()
	last := m.current(p.UID)
	ev := &Eviction{
		unit: Unit{Pod: p.UID}, state: Planned, asked: p.Ref(), decision: decision, owner: owner,
		node: s.NodeName(plan.Rows[0]),
		left: map[cluster.UID]leaving{}, from: map[string]bool{}, byUnits: plan.units != nil,
	}
	if before := m.of[ev.unit]; before != nil {
		ev.failures = before.failures
	}
	leave := func(uid cluster.UID, how leaving) {
		if ev.left[uid] == 0 {
			ev.order = append(ev.order, uid)
		}
		ev.left[uid] = how
	}
	if last != nil {
		ev.stuck = last.after()
	}
	if last != nil && last.node == ev.node && last.state != Placed && last.state != Wasted {
		for _, uid := range last.victims(deleted) {
			leave(uid, deleted) // more has to go there
		}
	} else if last != nil {
		m.miss(p.UID, last.why("it needs other room"))
	}
	for _, v := range plan.Victims {
		if _, n, _, there := s.PodOn(v.UID); there {
			ev.from[s.NodeName(n)] = true
		}
		if m.host.Withdrawable(v.UID) {
			leave(v.UID, withdrawn)
		} else if !v.Terminating {
			leave(v.UID, deleted)
		}
	}
	ev.evicted = len(ev.victims(deleted))
	m.add(ev)
}

// ActForPod acts on the plan for a pod that is back in the queue: it nominates, withdraws decided pods and requests
// evictions. It returns what the pod's status is to show as its nominated node.
func (m *Manager) ActForPod(p *cluster.Pod, plan Plan, d *record.Decision) Shown {
	shown := m.actForPod(p, plan, d)
	if d.Preemption != nil {
		if plan.units != nil {
			RecordUnits(d.Preemption, plan.units)
		}
		d.Preemption.PausedUntil, d.Preemption.DelayedUntil = plan.Paused, plan.Delayed
		d.Preemption.Wasted = m.pauses.wasted(OwnerOf(m.store.Snapshot(), p))
	}
	return shown
}

func (m *Manager) actForPod(p *cluster.Pod, plan Plan, d *record.Decision) Shown {
	held := m.queue.NominationOf(p.UID)
	switch plan.Verdict {
	case preempt.Evict:
	case preempt.NotEligible, preempt.Failed:
		if plan.Message != "" {
			d.Preemption = &record.Preemption{Nodes: plan.nodes, Tried: plan.tried, Message: plan.Message}
		}
		if held == "" {
			m.queue.NominateAsStatus(p)
		}
		return Shown{}
	default:
		if plan.Verdict == preempt.NotHelpful {
			d.Preemption = &record.Preemption{Nodes: plan.nodes, Tried: plan.tried, Message: plan.Message}
		}
		m.queue.Unnominate(p.UID)
		return Shown{Cleared: p.Nominated != "" || held != "" && plan.Verdict == preempt.NotHelpful}
	}
	ev := m.current(p.UID)
	d.Preemption = &record.Preemption{Node: ev.node, Violations: plan.loss.Violations, Nodes: plan.nodes,
		Tried: plan.tried}
	if plan.units == nil {
		d.Preemption.Loss = LossOf(plan.loss)
	}
	m.queue.Nominate(p, ev.node)
	if plan.units != nil {
		prof := m.host.Profile(p.Spec.SchedulerName)
		m.watchVictims(prof, ev.gaveUp, victimCheck{unit: ev.unit, decision: ev.decision})
	}
	r := Request{For: p.Ref(), Node: ev.node, Decision: d.Number}
	back := m.listVictims(plan.Victims, &r, d.Preemption)
	m.withdraw(back, "pod "+string(p.UID), fmt.Sprintf("pod %s of priority %d", p.Key(), p.Spec.Priority), ev.node)
	if len(back)+len(r.Victims) > 0 { // upstream leaves nominations alone when all victims were terminating anyway
		r.Denominate = m.denominate(p.Spec.Priority, cluster.GangKey{}, []string{ev.node})
		d.Preemption.Denominated = r.Denominate
	}
	m.chargeBudgets(m.host.Profile(p.Spec.SchedulerName), r)
	ev.state = m.requestAll(r)
	return Shown{Node: ev.node}
}

// listVictims puts victims into a request and into the record of the decision. It returns those that are withdrawn
// instead.
func (m *Manager) listVictims(victims []*cluster.Pod, r *Request, d *record.Preemption) (back []*cluster.Pod) {
	for _, v := range victims {
		decided := m.host.Withdrawable(v.UID)
		d.Victims = append(d.Victims, record.Victim{
			Pod: v.Ref(), Priority: v.Spec.Priority, TurnedBack: decided, Going: v.Terminating && !decided})
		switch {
		case decided:
			back = append(back, v)
		case !v.Terminating:
			r.Victims = append(r.Victims, v.Ref())
		}
	}
	return back
}

// listAgreed notes in a request and in the record of the decision which victims have agreed to be evicted. It comes
// after listVictims, for the same victims; agreed may be nil.
func (m *Manager) listAgreed(agreed func(*cluster.Pod) bool, victims []*cluster.Pod, r *Request, d *record.Preemption) {
	if agreed == nil {
		return
	}
	told := d.Victims[len(d.Victims)-len(victims):]
	for i, v := range victims {
		if told[i].Agreed = agreed(v); told[i].Agreed && slices.Contains(r.Victims, v.Ref()) {
			r.Agreed = append(r.Agreed, v.Ref())
		}
	}
}

// withdraw takes decided pods back.
func (m *Manager) withdraw(back []*cluster.Pod, by, to, node string) {
	for _, v := range back {
		if m.host.Withdrawable(v.UID) { // it may have come back with one of its gang
			m.host.Withdraw(v.UID, by, to, node)
		}
	}
}

// chargeBudgets charges budgets with the victims of a request if they are strict.
func (m *Manager) chargeBudgets(prof *Profile, r Request) {
	if prof != nil && prof.Preemption != nil && prof.Preemption.Strict {
		m.budgets.spend(m.store.Snapshot(), charge{cluster.UID(r.For.UID), r.Decision}, r.Victims)
	}
}

// requestAll makes a request if it asks for anything. It returns the state of the eviction after that.
func (m *Manager) requestAll(r Request) State {
	if len(r.Victims)+len(r.Denominate) > 0 {
		m.Request(r)
	}
	if len(r.Victims) == 0 {
		return Draining
	}
	return Requested
}

// Request asks for evictions.
func (m *Manager) Request(r Request) {
	for _, v := range r.Victims {
		m.evictionRequested[cluster.UID(v.UID)] = true
	}
	if !r.Undo && !r.Finish {
		r.Whole = m.beginWhole(r)
	}
	m.host.Emit(r)
	m.reconsider(m.pending.add(m.store.Snapshot(), r), "pods of it are evicted")
}

// ActForGang acts on the plan for a gang that is back in the queue after an attempt. It returns what the status of its
// pods is to show as their nominated nodes.
func (m *Manager) ActForGang(
	prof *Profile, a gang.Attempt, plan Plan, d *record.Decision,
) (shown map[cluster.UID]Shown) {
	members := a.Need.Members
	if plan.Verdict != 0 {
		d.Preemption = &record.Preemption{
			Message: plan.Message, PausedUntil: plan.Paused, DelayedUntil: plan.Delayed,
		}
		if plan.units != nil {
			RecordUnits(d.Preemption, plan.units)
		}
	}
	shown = map[cluster.UID]Shown{}
	switch {
	case plan.Verdict == preempt.Evict || plan.Rows != nil:
		asked := map[cluster.UID]bool{}
		for _, p := range plan.Need.Members {
			asked[p.UID] = true
		}
		for _, p := range members {
			if !asked[p.UID] {
				m.queue.Unnominate(p.UID)
			}
		}
		m.actForGang(prof, a.Gang, plan, d)
	case plan.Verdict != preempt.NotEligible:
		had := map[cluster.UID]bool{}
		if m.gang(a.Gang) != nil {
			for _, p := range m.denominateGang(a.Gang) {
				had[p.UID] = true
			}
		}
		m.EndGang(a.Gang, "no room can be made for it now")
		for _, p := range members {
			m.queue.Unnominate(p.UID)
			shown[p.UID] = Shown{Cleared: had[p.UID] || p.Nominated != ""}
		}
	}
	if d.Preemption != nil {
		d.Preemption.Wasted = m.pauses.wasted(OwnerOfGang(a.Gang))
	}
	switch {
	case plan.Verdict == preempt.Evict:
		d.Message += " " + preempt.FoundForGroup(len(plan.Victims))
	case plan.Message != "":
		d.Message += " " + plan.Message
	}
	if plan.Verdict == preempt.Evict || plan.Verdict == preempt.NotEligible {
		shown = m.Shown(members)
	}
	return shown
}

// Shown returns the nodes on which pods count.
func (m *Manager) Shown(pods []*cluster.Pod) map[cluster.UID]Shown {
	shown := map[cluster.UID]Shown{}
	for _, p := range pods {
		node := m.queue.NominationOf(p.UID)
		shown[p.UID] = Shown{Node: node, Cleared: node == "" && p.Nominated != ""}
	}
	return shown
}

// actForGang nominates the pods of a gang, withdraws decided pods and requests evictions.
func (m *Manager) actForGang(prof *Profile, key cluster.GangKey, plan Plan, d *record.Decision) {
	m.host.EndHold(key, "pods are evicted for it")
	need, id := plan.Need, m.preemptorID(key)
	ev, priority := m.renewGang(key, plan, d.Number), m.priority(key, need.Members)
	for _, p := range plan.Revoked {
		m.dropVictim(ev, p.UID)
		ev.evicted--
	}
	r := Request{For: ev.asked, Decision: d.Number, Gang: key.String(), GangID: id}
	var nodes []string
	s := m.store.Snapshot()
	for i, p := range need.Members {
		if plan.Rows[i] == cluster.NoNode {
			m.queue.Unnominate(p.UID)
			continue
		}
		node := s.NodeName(plan.Rows[i])
		m.queue.Nominate(p, node)
		d.Preemption.Places = append(d.Preemption.Places, record.Nomination{Pod: p.Ref(), Node: node})
		nodes = append(nodes, node)
		if p.Ref() != ev.asked {
			r.Beside = append(r.Beside, p.Ref())
		}
	}
	r.Node = m.queue.NominationOf(cluster.UID(ev.asked.UID))
	d.Preemption.Node = nodes[0]
	back := m.listVictims(plan.Victims, &r, d.Preemption)
	m.listAgreed(m.agreed(key, need.Members), plan.Victims, &r, d.Preemption)
	for _, v := range plan.Victims {
		_, n, _, _ := s.PodOn(v.UID)
		ev.from[s.NodeName(n)] = true
		switch {
		case m.host.Withdrawable(v.UID):
			m.addVictim(ev, v.UID, withdrawn)
			continue
		case ev.left[v.UID] != deleted:
			ev.evicted++
		}
		m.addVictim(ev, v.UID, deleted)
	}
	if plan.units != nil {
		for _, p := range plan.units.Terminating {
			if ev.left[p.UID] == 0 {
				m.addVictim(ev, p.UID, awaited)
			}
		}
	}
	if ev.state == Planned || len(plan.Victims) > 0 {
		ev.state = Requested
	}
	if len(r.Victims) == 0 {
		ev.state = Draining
	}
	m.withdraw(back, "podgroup "+id, fmt.Sprintf("gang %s of priority %d", key, priority), "cluster")
	r.Denominate = m.denominate(priority, key, nodes)
	d.Preemption.Denominated = r.Denominate
	if !plan.same {
		m.chargeBudgets(prof, r)
	}
	m.requestAll(r)
	m.wakeIfDrained(ev)
	if len(ev.left) > 0 {
		m.watchVictims(prof, ev.gaveUp, victimCheck{unit: ev.unit, decision: ev.decision})
	}
}

// preemptorID identifies a gang in the events of its victims: by the UID of its object, as upstream does for a pod
// group, or by namespace/name if no object declares the gang.
func (m *Manager) preemptorID(key cluster.GangKey) string {
	if obj := m.store.Snapshot().GangObject(key); obj != nil && obj.UID != "" {
		return string(obj.UID)
	}
	return key.String()
}

// renewGang returns the eviction of a gang for another set of victims. The rest of the same set, and places that come
// without evictions, go on in the one there is.
func (m *Manager) renewGang(key cluster.GangKey, plan Plan, decision uint64) *Eviction {
	ev := m.gang(key)
	if ev == nil || !plan.same && len(plan.Victims) > 0 {
		next := &Eviction{
			unit: Unit{Gang: key}, state: Planned, owner: OwnerOfGang(key), left: map[cluster.UID]leaving{},
			from: map[string]bool{}}
		if ev != nil {
			m.wasted(ev, ev.why("it did not get the room"))
			next.stuck, next.failures = ev.after(), ev.failures
		}
		m.add(next)
		ev = next
	}
	if ev.state == Failed {
		ev.state = Draining
	}
	ev.asked, ev.decision, ev.draw, ev.denominated = plan.Need.Members[0].Ref(), decision, decision, false
	return ev
}

// denominate ends the nominations below a priority to nodes: those pods might count on them without use. They may find
// another place at once. A gang for which capacity is freed loses all of its nominations with one (answer A17).
func (m *Manager) denominate(priority int32, own cluster.GangKey, nodes []string) (out []record.PodRef) {
	lose := func(p *cluster.Pod) {
		m.queue.Unnominate(p.UID)
		out = append(out, p.Ref())
	}
	for _, node := range nodes {
		for _, other := range m.queue.NominatedOn(node) {
			if other.Spec.Priority >= priority {
				continue
			}
			if other.Gang == nil || m.gang(other.Gang.Key) == nil {
				lose(other)
				continue
			}
			if other.Gang.Key == own {
				continue
			}
			for _, p := range m.denominateGang(other.Gang.Key) {
				lose(p)
			}
		}
	}
	return out
}

// denominateGang ends the nominations of a gang whose capacity goes to another, or for which none can be freed (answer
// A17). It returns its pods that had one.
func (m *Manager) denominateGang(key cluster.GangKey) (lost []*cluster.Pod) {
	u := m.queue.Gang(key)
	if u == nil {
		return nil
	}
	if ev := m.gang(key); ev != nil {
		ev.denominated = true
	}
	for _, p := range u.Members {
		if m.queue.NominationOf(p.UID) != "" {
			m.queue.Unnominate(p.UID)
			lost = append(lost, p)
		}
	}
	return lost
}
