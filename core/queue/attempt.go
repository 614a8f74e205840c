// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// An attempt starts with Pop, which puts a unit in flight, and ends with one call: Done, Requeue, Rest, Readmit or
// SetAside; for a gang of which only some members were placed, Part and then Stay or Requeue. Return undoes Done.

// Pop removes the first unit: of the active queue, or, if that is empty and the configuration allows it, of the
// backoff queue, but never one that backs off after an error. The unit is in flight until Requeue, Done or SetAside.
func (q *Queue) Pop() (*Unit, bool) {
	u, early := q.active.head(), false
	if u == nil && q.cfg.PopFromBackoff {
		u = q.backoff.head()
		if u != nil {
			early = true
			q.put(u, active, note{event: popFromBackoffQ, cause: "nothing else was active"})
		}
	}
	if u != nil && u.extra && q.cfg.PopFromBackoff {
		if first := q.needed(u); first != nil {
			u, early = first, true
			q.put(u, active, note{event: popFromBackoffQ,
				cause: "only what other gangs have beyond their needs was active"})
		}
	}
	if u == nil {
		return nil, false
	}
	q.putInFlight(u)
	u.early = early
	return u, true
}

func (q *Queue) putInFlight(u *Unit) {
	u.Attempts++
	u.early = false
	q.put(u, inFlight, note{event: popped, cause: "an attempt starts"})
}

// Done removes a unit in flight; it is bound or not wanted any more.
func (q *Queue) Done(uid cluster.UID) {
	if u := q.units[uid]; u != nil && u.at == inFlight {
		q.put(u, nowhere, note{event: done, cause: "the attempt is over"})
	}
}

// Requeue returns a unit whose attempt failed, with its newest version, and evaluates the events that happened
// meanwhile for the plugins that rejected it. A unit that Done removed before (its bind failed later) returns too, with
// what Watch found. A
// unit whose pod was deleted in flight does not, nor one whose pod is queued already.
func (q *Queue) Requeue(u *Unit, why Rejection) {
	held := q.units[u.UID()]
	if held != nil && (held != u || u.at != inFlight) {
		return
	}
	if !q.refresh(u) {
		return
	}
	if why.Err {
		why.Plugins, why.Pending = nil, nil
	}
	u.Plugins, u.Pending = setOf(u.Plugins, why.Plugins), setOf(u.Pending, why.Pending)
	u.Gate, u.GateReason = "", ""
	u.Flushed = false
	switch {
	case !u.failed():
		u.UnschedulableCount++
		u.ErrorCount = 0
	default:
		u.ErrorCount++
	}
	q.arrive(u)
	u.BackoffUntil = q.backoffEnd(u)

	n := note{event: scheduleAttemptFailure}
	switch {
	case u.failed():
		n.cause = "the attempt failed and is repeated after a backoff"
		q.requeueAs(u, afterBackoff, n)
	case held == nil:
		v := why.Watched.judge(why)
		n.hint, n.cause = v.by, v.cause
		q.requeueAs(u, v.how, n)
	default:
		v := q.replay(u)
		n.hint, n.cause = v.by, v.cause
		q.requeueAs(u, v.how, n)
	}
}

// refresh applies what was observed of the members in flight, and reports whether a member is left; without one it
// removes the unit.
func (q *Queue) refresh(u *Unit) bool {
	if q.settle(u) {
		q.changed(u)
		return true
	}
	q.put(u, nowhere, note{event: podDelete, cause: "the pod was deleted during the attempt"})
	return false
}

// settle applies what happened to the members of a unit while it was in flight. It reports whether a member is left;
// if not, the unit is unchanged.
func (q *Queue) settle(u *Unit) bool {
	left := len(u.joining)
	for _, p := range u.Members {
		if !u.gone[p.UID] {
			left++
		}
	}
	if left == 0 {
		return false
	}
	if len(u.next)+len(u.gone)+len(u.joining) == 0 {
		return true
	}
	stay := make([]*cluster.Pod, 0, left)
	for _, p := range u.Members {
		switch newer := u.next[p.UID]; {
		case u.gone[p.UID]:
			delete(q.units, p.UID)
		case newer != nil:
			stay = append(stay, newer)
		default:
			stay = append(stay, p)
		}
	}
	u.Members = append(stay, u.joining...)
	u.joining, u.next, u.gone = nil, nil, nil
	return true
}

// replay evaluates all events that happened while the unit was in flight.
func (q *Queue) replay(u *Unit) verdict {
	g := q.groupFor(u)
	best := verdict{how: stay, cause: "rejected by " + g.waitsFor + "; waits for what could help"}
	for e := u.marker.next; e != nil; e = e.next {
		if e.change == nil {
			continue
		}
		v := q.judgeUnit(g, u, *e.change)
		if v.how == stay {
			continue
		}
		v.cause += ", during the attempt"
		if v.how == atOnce || len(g.pending) == 0 {
			return v
		}
		if best.how == stay {
			best = v
		}
	}
	return best
}

// Rest returns a unit that was popped before its backoff was over and fits no node yet, as if it had not been tried:
// no attempt is counted, its backoff continues, and it keeps its turn. The end of the backoff makes it active in any
// case. Before that it may be popped again only after an event that may help the plugins that reject it now. So a
// unit is placed as soon as there is capacity for it, and its rejections are not reported more often than backoffs
// allow. (Upstream counts and reports each of these attempts.)
func (q *Queue) Rest(u *Unit, plugins []string) {
	if held := q.units[u.UID()]; held != u || u.at != inFlight || !q.refresh(u) {
		return
	}
	u.Attempts--
	u.Plugins, u.Pending = setOf(u.Plugins, plugins), u.Pending[:0]
	n := note{event: triedEarly}
	v := q.replay(u)
	n.hint, n.cause = v.by, v.cause
	switch {
	case v.how == stay && q.backingOff(u):
		n.cause = "it fits nowhere yet; its backoff goes on"
		q.put(u, resting, n)
	default:
		q.requeueAs(u, max(v.how, afterBackoff), n)
	}
}

// Part removes the members that have a node from a unit in flight. It reports whether any is left; if none is, the
// unit is gone as after Done.
func (q *Queue) Part(u *Unit, placed map[cluster.UID]bool) (left bool) {
	stay := u.Members[:0:0]
	for _, p := range u.Members {
		if placed[p.UID] {
			delete(q.units, p.UID)
			continue
		}
		stay = append(stay, p)
	}
	if len(stay)+len(u.joining) == 0 {
		q.put(u, nowhere, note{event: done, cause: "the attempt is over"})
		return false
	}
	if len(stay) == 0 {
		stay, u.joining = u.joining, nil
	}
	u.Members = stay
	q.changed(u)
	return true
}

// Stay requeues what Part left of a unit. Its attempt did not fail, so it is active at once, and no failure is
// counted.
func (q *Queue) Stay(u *Unit) {
	if !q.refresh(u) {
		return
	}
	u.Plugins, u.Pending = u.Plugins[:0], u.Pending[:0]
	q.toActive(u, note{event: gangChanged,
		cause: "its gang has what it needs; these are tried after what others need"})
}

// Readmit requeues a unit in flight that a gate has closed meanwhile, as if it had not been tried.
func (q *Queue) Readmit(u *Unit) {
	if !q.refresh(u) {
		return
	}
	u.Attempts--
	q.toActive(u, note{event: gangChanged, cause: "its gate is open again"})
}

// Return requeues a unit that Done removed and whose placement was undone without a fault of its own: it is active at
// once, at its former position among its equals, and no failure is counted.
func (q *Queue) Return(u *Unit) {
	if q.units[u.UID()] != nil || !q.refresh(u) {
		return // its pod is in a newer unit, or deleted
	}
	u.Plugins, u.Pending = u.Plugins[:0], u.Pending[:0]
	q.toActive(u, note{event: returned, cause: "its placement was taken back before it was bound"})
}

// SetAside removes a unit from scheduling because handling it panicked: neither events nor time nor Activate wake it,
// only a change of its pod that concerns scheduling, and then after a backoff as for an error.
func (q *Queue) SetAside(u *Unit, cause string) {
	if held := q.units[u.UID()]; held != nil {
		u = held
	}
	if !q.refresh(u) {
		return
	}
	u.Plugins, u.Pending, u.Gate, u.GateReason = u.Plugins[:0], u.Pending[:0], "", ""
	u.Aside = cause
	u.ErrorCount++
	q.arrive(u)
	u.BackoffUntil = q.backoffEnd(u)
	q.put(u, aside, note{event: setAside, cause: cause})
}
