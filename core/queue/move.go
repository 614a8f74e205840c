// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"reflect"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// mover is a unit that an event wakes.
type mover struct {
	u *Unit
	verdict
}

// move applies the verdicts on an event, in the order of arrival.
func (q *Queue) move(movers []mover, ch plugin.Change) {
	if len(movers) == 0 {
		return
	}
	slices.SortFunc(movers, func(a, b mover) int {
		if older(a.u, b.u) {
			return -1
		}
		return 1
	})
	label := ch.Event.String()
	for _, m := range movers {
		gated := m.u.sub == record.Gated
		q.requeueAs(m.u, m.how, m.note(label))
		if gated && m.u.sub == record.Gated {
			q.cfg.Meter.StaysGated(q.moved(m.u, record.Gated, m.note(label)))
		}
	}
	clear(movers)
	q.movers = movers[:0]
}

// requeueAs moves a unit as a verdict says.
func (q *Queue) requeueAs(u *Unit, how strategy, n note) {
	switch {
	case how == stay:
		q.put(u, waiting, n)
	case how == afterBackoff && q.backingOff(u):
		q.toBackoff(u, n)
	default:
		q.toActive(u, n)
	}
}

// toActive makes a unit active unless a gate holds it.
func (q *Queue) toActive(u *Unit, n note) {
	if q.admit(u, n) {
		q.activate(u, n)
	}
}

// fromBackoff makes a unit active that backs off. With PopFromBackoff the gates ran when its backoff started.
func (q *Queue) fromBackoff(u *Unit, n note) {
	if q.cfg.PopFromBackoff {
		q.activate(u, n)
	} else {
		q.toActive(u, n)
	}
}

// activate makes a unit active that no gate holds.
func (q *Queue) activate(u *Unit, n note) {
	if u.FirstActive == 0 {
		u.FirstActive = q.now
	}
	q.put(u, active, n)
}

// toBackoff makes a unit back off. With PopFromBackoff it could be popped from there, so the gates run here.
func (q *Queue) toBackoff(u *Unit, n note) {
	if q.cfg.PopFromBackoff && !q.admit(u, n) {
		return
	}
	if u.failed() {
		q.put(u, errorBackoff, n)
	} else {
		q.put(u, backoff, n)
	}
}

// admit runs the gates, first the one that held the unit last, and reports whether all admit it. Otherwise the unit
// waits, and the plugin counts among those that rejected it.
func (q *Queue) admit(u *Unit, n note) bool {
	gate, reason := q.closedGate(u)
	if gate == "" {
		u.Gate, u.GateReason = "", ""
		return true
	}
	if u.Gang != (cluster.GangKey{}) && u.Gate == "" {
		q.shut = append(q.shut, u.Gang)
	}
	u.Gate, u.GateReason = gate, reason
	u.Flushed = false // the unit that the timeout woke is not tried
	u.Plugins = insert(u.Plugins, gate)
	for _, name := range u.memberGates {
		u.Plugins = insert(u.Plugins, name)
	}
	n.hint, n.cause = gate, gate+": "+reason
	q.put(u, waiting, n)
	return false
}

// closedGate returns the first gate that holds the unit, with its reason.
func (q *Queue) closedGate(u *Unit) (name, reason string) {
	if q.cfg.Gangs != nil && u.Pod().Gang != nil {
		if name, reason := q.gangGate(u); name != "" || u.Gang != (cluster.GangKey{}) {
			return name, reason // the gates of its members run when it is tried
		}
	}
	if u.Gate != "" {
		for _, g := range u.profile.gates {
			if g.Name() != u.Gate {
				continue
			}
			if reason, ok := g.Gated(q.cfg.State, u.Pod()); !ok {
				return u.Gate, reason
			}
		}
	}
	for _, g := range u.profile.gates {
		if g.Name() == u.Gate {
			continue
		}
		if reason, ok := g.Gated(q.cfg.State, u.Pod()); !ok {
			return g.Name(), reason
		}
	}
	return "", ""
}

// put moves a unit to another state and records the move if it changes the sub-queue that users see.
func (q *Queue) put(u *Unit, to place, n note) {
	from := u.at
	if from != nowhere {
		q.holders[from].remove(u)
	}
	u.at = to
	if to != nowhere {
		q.holders[to].add(u)
	}
	switch {
	case to == nowhere:
		q.forget(u)
	case from == nowhere:
		q.know(u)
	}
	if sub := u.shown(); sub != u.sub {
		if asleep(u.sub) && (sub == record.Active || sub == record.Backoff) {
			q.cfg.Meter.Did(record.WakeUps, 1)
		}
		q.moves = append(q.moves, q.moved(u, sub, n))
		u.sub = sub
	}
}

// asleep reports whether the units of a sub-queue wait for an event.
func asleep(sub record.SubQueue) bool { return sub == record.Unschedulable || sub == record.Gated }

// moved returns the record of a move of a unit.
func (q *Queue) moved(u *Unit, to record.SubQueue, n note) record.QueueMove {
	return record.QueueMove{
		At: q.now, Pod: u.Pod().Ref(), Gang: u.gangName(), From: u.sub, To: to, Event: n.event, Hint: n.hint,
		Cause: n.cause,
	}
}

// know registers a unit under its pods, and forget removes it.
func (q *Queue) know(u *Unit) {
	for _, p := range u.Members {
		q.units[p.UID] = u
		q.apart.add(q.named(p), u)
	}
	if u.Gang != (cluster.GangKey{}) {
		q.gangs[u.Gang] = u
	}
}

func (q *Queue) forget(u *Unit) {
	for _, p := range u.Members {
		delete(q.units, p.UID)
		q.apart.remove(q.named(p), u)
	}
	if q.gangs[u.Gang] == u {
		delete(q.gangs, u.Gang)
	}
}

// holder is the structure that holds the units in one state.
type holder interface {
	add(*Unit)
	remove(*Unit)
}

// listeners holds units that events may wake: in their group, and in an order of time.
type listeners struct {
	q     *Queue
	order *heap
}

func (l listeners) add(u *Unit) {
	l.q.groupFor(u).add(u)
	l.order.add(u)
}

func (l listeners) remove(u *Unit) {
	u.group.remove(u)
	l.order.remove(u)
}

// concernsScheduling reports whether an update changed more than status: otherwise the condition that the scheduler
// writes would wake the unit that it is about (upstream: isPodUpdated).
func concernsScheduling(old, p *cluster.Pod) bool {
	return old.Generation != p.Generation || old.ClaimsHash != p.ClaimsHash || old.Terminating != p.Terminating ||
		old.Spec != p.Spec && !reflect.DeepEqual(old.Spec, p.Spec)
}
