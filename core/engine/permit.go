// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// seat is a place that a member holds while it waits for the others.
type seat struct {
	r       *lobby
	t       *party
	pod     *cluster.Pod
	allowed bool
	out     string // why it is turned back, empty if it is not
}

// Reserve takes a seat for a member that has just been given a node, and looks whether enough have one now (upstream:
// Permit).
func (u usher) Reserve(trial *cluster.Trial, p *cluster.Pod, _ cluster.NodeIdx) plugin.Reserved {
	r, t := u.r, u.r.of[p.UID]
	if t == nil {
		r.letReady()
		return plugin.Reserved{}
	}
	q := r.quorum(t)
	n, bound := r.placed(trial.Snapshot(), t)
	if r.Exact && bound >= q {
		r.turnAway(t, fmt.Sprintf("all %d pods of gang %s run", q, t.key))
		return plugin.Reserved{Reject: fmt.Sprintf("all %d pods of gang %s run", q, t.key)}
	}
	if len(t.seats) == 0 {
		t.until = r.e.now + r.Wait + r.draw(r.Jitter)
	}
	s := &seat{r: r, t: t, pod: p}
	t.seats = append(t.seats, s)
	switch enough := n >= q; {
	case r.Exact:
		enough = len(t.seats) == q || bound > 0
		r.permit(t, enough)
	case r.Replaces && r.e.gangs[t.key] != nil && r.e.gangs[t.key].complete:
		r.permit(t, true)
	default:
		r.permit(t, enough)
	}
	if r.FirstActivates && n == 1 && !s.allowed {
		r.rouse(t, p.UID)
	}
	r.letReady()
	if r.Explains {
		return plugin.Reserved{Hold: toldSeat{s}}
	}
	return plugin.Reserved{Hold: s}
}

// permit lets all that wait go to their nodes, if enough do.
func (r *lobby) permit(t *party, enough bool) {
	if !enough {
		return
	}
	for _, s := range t.seats {
		s.allowed = true
	}
	t.seats, t.failures, t.notBefore = nil, 0, 0
	r.news = true
}

// rouse makes the members of a gang active that have no place, but for one.
func (r *lobby) rouse(t *party, but cluster.UID) {
	for _, uid := range t.waiting {
		if p := r.e.pending[uid]; p != nil && uid != but && r.e.binds.of[uid] == nil {
			r.wake = append(r.wake, p.Ref())
		}
	}
}

// Writes are none.
func (s *seat) Writes() []cluster.Write { return nil }

// Ready tells whether the pod may go to its node.
func (s *seat) Ready(_ cluster.Snapshot, now record.Time) plugin.Readiness {
	switch {
	case s.allowed:
		return plugin.Readiness{Ready: true}
	case s.out != "":
		return plugin.Readiness{Reject: s.out}
	case now >= s.t.until:
		return plugin.Readiness{Reject: fmt.Sprintf("gang %s did not get places for all in time", s.t.key)}
	}
	return plugin.Readiness{Again: s.t.until}
}

// Release gives a seat up. The others of the gang are turned back, too (upstream: Unreserve).
func (s *seat) Release(*cluster.Trial, bool) []cluster.Write {
	s.t.seats = slices.DeleteFunc(s.t.seats, func(other *seat) bool { return other == s })
	why := s.out
	if why == "" {
		why = fmt.Sprintf("pod %s of gang %s lost its place", s.pod.Name, s.t.key)
		if s.r.Gated && !s.allowed {
			s.r.backOff(s.t)
		}
	}
	s.r.turnAway(s.t, why)
	delete(s.t.let, s.pod.UID)
	return nil
}

// toldSeat is a seat whose pod is told that it waits.
type toldSeat struct{ *seat }

func (s toldSeat) Announce() plugin.Notice {
	return plugin.Notice{Reason: "GangWaitForReady", Action: "Scheduling",
		Note: fmt.Sprintf("has a place and waits for the others of gang %s, until %d s from now", s.t.key, (s.t.until-s.r.e.now)/record.Second)}
}

// turnAway ends a try of a gang: those that wait go back to the queue, and none is let go before all can be.
func (r *lobby) turnAway(t *party, why string) {
	for _, s := range t.seats {
		s.out = why
		r.news = true
	}
	t.seats = nil
	if len(t.let) > 0 {
		clear(t.let)
	}
	if r.Denominates {
		r.denominate(t)
	}
	r.touch(t)
}

// denominate clears the nominations of a gang's members.
func (r *lobby) denominate(t *party) {
	for _, uid := range t.waiting {
		p := r.e.pending[uid]
		if p == nil {
			continue
		}
		r.e.queue.Unnominate(uid)
		if p.Nominated != "" {
			reason := cmp.Or(p.Condition.Reason, ReasonUnschedulable)
			message := cmp.Or(p.Condition.Message, fmt.Sprintf("another pod of gang %s has no place", t.key))
			r.e.emit(Condition{Pod: p.Ref(), Reason: reason, Message: message, Generation: p.Generation, ClearNomination: true})
		}
	}
}

// failed is told of a member that fits nowhere, or was not tried (upstream: PostFilter). nominated tells that others are
// evicted for it.
func (r *lobby) failed(p *cluster.Pod, tried, nominated bool) {
	if r == nil || r.of[p.UID] == nil || nominated && !r.Denominates {
		return
	}
	t := r.of[p.UID]
	delete(t.let, p.UID)
	r.touch(t)
	q := r.quorum(t)
	n, _ := r.placed(r.e.store.Snapshot(), t)
	if !r.Gated && (n >= q || (q-n)*100 <= r.Tolerated*q) {
		return
	}
	if tried || !r.Gated {
		r.backOff(t)
	}
	r.turnAway(t, fmt.Sprintf("pod %s of gang %s has no place", p.Name, t.key))
}

func (r *lobby) now() record.Time { return r.e.now }

// backOff keeps a gang that was turned back from being tried for a while.
func (r *lobby) backOff(t *party) {
	if r.Backoff == 0 || r.there(t) < r.quorum(t) {
		return
	}
	wait := r.Backoff
	if r.MaxBackoff > 0 {
		wait = min(r.Backoff<<min(t.failures, 16), r.MaxBackoff)
		wait += r.draw(wait / 2)
	}
	t.failures++
	t.notBefore = r.now() + wait
}

// draw is a time below most, from the engine's seed.
func (r *lobby) draw(most record.Time) record.Time {
	if most == 0 {
		return 0
	}
	r.draws++
	return record.Time(place.Draw(^r.e.cfg.Seed, r.draws)(int(most)))
}

// letReady lets the gangs go that are ready, where that is with the next permit.
func (r *lobby) letReady() {
	for _, t := range r.ready {
		if r.parties[t.key] == t {
			r.let(t)
		}
	}
	r.ready = r.ready[:0]
}

// let lets all members go together.
func (r *lobby) let(t *party) {
	for _, uid := range t.waiting {
		t.let[uid] = true
	}
	r.rouse(t, "")
}

// settle follows what a step has changed: those that may go do, those that must turn back do, and gangs that are ready now
// are let go.
func (r *lobby) settle() {
	if r == nil {
		return
	}
	for r.news || len(r.touched)+len(r.wake) > 0 {
		if r.news {
			r.news = false
			r.e.askAgain(r.e.binds.allWaiting())
		}
		for len(r.touched) > 0 {
			t := r.touched[0]
			r.touched = r.touched[1:]
			r.consider(t)
		}
		if wake := r.wake; len(wake) > 0 {
			r.wake = nil
			r.e.queue.Activate(wake)
		}
	}
}

// consider lets a gang go if all of its members can be tried.
func (r *lobby) consider(t *party) {
	t.look = 0
	if len(t.waiting) == 0 && r.e.store.Snapshot().GangHolds(t.key) == 0 {
		delete(r.parties, t.key)
		return
	}
	whole := r.Replaces && r.e.gangs[t.key] != nil && r.e.gangs[t.key].complete
	if !r.Gated || slices.Contains(r.ready, t) || !whole && r.there(t) < r.quorum(t) {
		return
	}
	n, look := 0, t.notBefore
	for _, uid := range t.waiting {
		if r.e.binds.of[uid] != nil {
			continue
		}
		at, can := r.canBeTried(uid)
		if !can {
			return
		}
		n, look = n+1, max(look, at)
	}
	switch {
	case n == 0:
	case r.now() < look:
		t.look = look
	case r.OnPermit:
		r.ready = append(r.ready, t)
	default:
		r.let(t)
	}
}

// canBeTried tells whether nothing but its gang keeps a pod back, and from when on.
func (r *lobby) canBeTried(uid cluster.UID) (at record.Time, can bool) {
	t := r.of[uid]
	u, where, ok := r.e.queue.Lookup(uid)
	if !ok || t.let[uid] {
		return 0, false
	}
	ours := u.Gate == r.Name || where == record.Unschedulable && u.Gate == "" && u.Aside == "" && len(u.Plugins) == 1 && u.Plugins[0] == r.Name
	if u.BackoffUntil != 0 {
		at = u.BackoffUntil + record.Second // the second of the end belongs to it
	}
	return at, ours || where == record.Backoff && u.Plugins != nil
}

// tick looks again at the gangs whose time has come.
func (r *lobby) tick() {
	if r == nil {
		return
	}
	for _, t := range r.parties { // order: settle works them off, and touched is sorted below
		if t.look != 0 && t.look <= r.now() {
			r.touched = append(r.touched, t)
		}
	}
	slices.SortFunc(r.touched, func(a, b *party) int { return slices.Compare(a.sortKey(), b.sortKey()) })
	r.touched = slices.Compact(r.touched)
}

func (t *party) sortKey() []string {
	return []string{t.key.Namespace, t.key.Name, string(t.key.Source)}
}

// nextLook is when tick is to be called, 0 for no time.
func (r *lobby) nextLook() (at record.Time) {
	if r == nil {
		return 0
	}
	for _, t := range r.parties { // order: the least of all
		if t.look != 0 && (at == 0 || t.look < at) {
			at = t.look
		}
	}
	return at
}

// checkLobby turns a pod back without a search that its gang's style does not want tried. It is false when it may be.
func (e *Engine) checkLobby(unit *queue.Unit) bool {
	p := unit.Members[0]
	why := e.lobby.check(p)
	if why == "" {
		return false
	}
	d := e.decision(unit, place.Outcome{})
	d.Verdict, d.Message, d.Plugins = record.DoesNotFit, why, []string{e.lobby.Name}
	e.queue.Requeue(unit, queue.Rejection{Plugins: d.Plugins})
	e.decided(d)
	e.tell(p, ReasonUnschedulable, why, false)
	e.lobby.failed(p, false, false)
	return true
}

// seats tells whether a pod waits for others before it is bound.
func (r *lobby) seats(p *cluster.Pod) bool { return r != nil && r.of[p.UID] != nil }
