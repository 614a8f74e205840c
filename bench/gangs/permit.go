// SPDX-License-Identifier: Apache-2.0

package gangs

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// permit is the state of a style's plugin: which gangs there are, which of their pods may be tried, and which wait.
type permit struct {
	Style
	s     *scheduler
	gangs map[cluster.GangKey]*gang
	of    map[cluster.UID]*gang // pod -> its gang, for all pods of gangs

	verdicts bool            // some waiting pod was allowed or rejected
	changed  []*gang         // may be released now
	ready    []*gang         // are released with the next pod that is reserved a node
	activate []record.PodRef // are to become active
	draws    uint64          // random numbers drawn so far
}

// gang is the pods of one gang.
type gang struct {
	key   cluster.GangKey
	size  int         // its quorum
	since record.Time // its age, for the order of the queue
	// unbound are the pods without a node in the API, by arrival.
	unbound  []cluster.UID
	released map[cluster.UID]bool // pods that may be tried
	waiting  []*reservation
	until    record.Time // when waiting pods time out
	complete bool        // as many pods as its size were bound once
	// notBefore is when the gang may be tried again, failures how often it was rejected in a row.
	notBefore record.Time
	failures  int
	// check is when to check again whether it is ready; 0 for never.
	check record.Time
}

func newPermit(s *scheduler, style Style) *permit {
	return &permit{Style: style, s: s, gangs: map[cluster.GangKey]*gang{}, of: map[cluster.UID]*gang{}}
}

// seen follows a version of a pod. Of a pending pod it must be called before the queue gets the version.
func (r *permit) seen(p *cluster.Pod) {
	g := r.of[p.UID]
	if g == nil && p.Gang == nil {
		return
	}
	if _, _, assumed, placed := r.s.store.Snapshot().PodOn(p.UID); p.NodeName == "" && placed && !assumed {
		return // an old version arrives after the bound one
	}
	if g == nil {
		g = r.gangs[p.Gang.Key]
		if g == nil {
			g = &gang{key: p.Gang.Key, size: p.Gang.Size, since: p.Created, released: map[cluster.UID]bool{}}
			r.gangs[g.key] = g
		}
		r.of[p.UID] = g
	}
	switch at := slices.Index(g.unbound, p.UID); {
	case p.NodeName != "" && at >= 0:
		g.unbound = slices.Delete(g.unbound, at, at+1)
		delete(g.released, p.UID)
	case p.NodeName == "" && at < 0:
		g.unbound = append(g.unbound, p.UID)
	}
	r.count(p.UID, p.Gang)
	r.touch(g)
}

// gone follows the end of a pod.
func (r *permit) gone(uid cluster.UID) {
	g := r.of[uid]
	if g == nil {
		return
	}
	delete(r.of, uid)
	delete(g.released, uid)
	g.unbound = slices.DeleteFunc(g.unbound, func(w cluster.UID) bool { return w == uid })
	r.touch(g)
}

// count follows whether as many pods of a pod's gang are bound as it needs.
func (r *permit) count(uid cluster.UID, mark *cluster.GangMark) {
	if mark == nil {
		return
	}
	g := r.gangs[mark.Key]
	if g == nil {
		return
	}
	live, bound := r.s.store.Snapshot().GangCounts(g.key)
	g.complete = live > 0 && (g.complete || bound >= g.size)
}

func (r *permit) touch(g *gang) {
	if !slices.Contains(r.changed, g) {
		r.changed = append(r.changed, g)
	}
}

// placed returns how many pods of a gang have a node in a state of the cluster, as the style counts them, and how
// many of them are seen bound.
func (r *permit) placed(view cluster.Snapshot, g *gang) (n, bound int) {
	names := map[string]bool{} // pod -> counted
	for _, m := range view.GangMembers(g.key) {
		if r.ByName {
			names[m.Pod.Name] = true
		} else if !m.Pod.Terminating {
			n++
		}
		if !m.Assumed {
			bound++
		}
	}
	return n + len(names), bound
}

// existing returns how many pods of a gang exist; those that are being deleted count only by name.
func (r *permit) existing(g *gang) int {
	n := 0
	for _, m := range r.s.store.Snapshot().GangMembers(g.key) {
		if !m.Assumed && (r.ByName || !m.Pod.Terminating) {
			n++
		}
	}
	for _, uid := range g.unbound {
		if p := r.s.pending[uid]; p != nil && (r.ByName || !p.Terminating) {
			n++
		}
	}
	return n
}

// reserve decides whether a pod that has just been given a node may be bound, or has to wait for its gang (upstream:
// Permit). view must include the pod. It returns why the pod is rejected, empty if it is not.
func (r *permit) reserve(view cluster.Snapshot, w *reservation) (rejected string) {
	g := r.of[w.pod.UID]
	if g == nil {
		w.allowed = true
		r.releaseReady()
		return ""
	}
	n, bound := r.placed(view, g)
	if r.Exact && bound >= g.size {
		why := fmt.Sprintf("all %d pods of gang %s run", g.size, g.key)
		r.turnAway(g, why)
		return why
	}
	if len(g.waiting) == 0 {
		g.until = r.s.now + r.Wait + r.draw(r.Jitter)
	}
	w.gang = g
	g.waiting = append(g.waiting, w)
	enough := n >= g.size
	switch {
	case r.Exact:
		enough = len(g.waiting) == g.size || bound > 0
	case r.Replaces && g.complete:
		enough = true
	}
	if enough {
		r.allow(g)
	}
	if r.FirstActivates && n == 1 && !w.allowed {
		r.activateOthers(g, w.pod.UID)
	}
	r.releaseReady()
	return ""
}

// allow lets all waiting pods of a gang be bound.
func (r *permit) allow(g *gang) {
	for _, w := range g.waiting {
		w.allowed = true
	}
	g.waiting, g.failures, g.notBefore = nil, 0, 0
	r.verdicts = true
}

// activateOthers makes the pods of a gang active that have no node, but for one.
func (r *permit) activateOthers(g *gang, but cluster.UID) {
	for _, uid := range g.unbound {
		if p := r.s.pending[uid]; p != nil && uid != but && r.s.reserved[uid] == nil {
			r.activate = append(r.activate, p.Ref())
		}
	}
}

// verdict returns why a reserved pod is rejected, empty if it is not, and whether it has to wait.
func (r *permit) verdict(w *reservation) (rejected string, wait bool) {
	switch {
	case w.allowed:
		return "", false
	case w.rejected != "":
		return w.rejected, false
	case r.s.now >= w.gang.until:
		return fmt.Sprintf("gang %s did not get places for all in time", w.gang.key), false
	}
	return "", true
}

// announce writes an event that says what a pod waits for.
func (r *permit) announce(w *reservation) {
	if !r.Explains {
		return
	}
	r.s.emit(engine.WriteEvent{Pod: w.pod.Ref(), Type: "Normal", Reason: "GangWaitForReady", Action: "Scheduling",
		Note: fmt.Sprintf("has a place and waits for the others of gang %s, until %d s from now", w.gang.key, (w.gang.until-r.s.now)/record.Second)})
}

// release ends what a reservation holds of its gang. The others that wait are rejected (upstream: Unreserve).
func (r *permit) release(w *reservation) {
	g := w.gang
	if g == nil {
		return
	}
	g.waiting = slices.DeleteFunc(g.waiting, func(other *reservation) bool { return other == w })
	why := w.rejected
	if why == "" {
		why = fmt.Sprintf("pod %s of gang %s lost its place", w.pod.Name, g.key)
		if r.Gated && !w.allowed {
			r.backOff(g)
		}
	}
	r.turnAway(g, why)
	delete(g.released, w.pod.UID)
}

// turnAway ends a try of a gang: the waiting pods are rejected, and none is released before all can be.
func (r *permit) turnAway(g *gang, why string) {
	for _, w := range g.waiting {
		w.rejected = why
		r.verdicts = true
	}
	g.waiting = nil
	clear(g.released)
	if r.Denominates {
		r.denominate(g)
	}
	r.touch(g)
}

// denominate clears the nominations of a gang's pods.
func (r *permit) denominate(g *gang) {
	for _, uid := range g.unbound {
		p := r.s.pending[uid]
		if p == nil {
			continue
		}
		r.s.queue.Unnominate(uid)
		if p.Nominated != "" {
			reason := cmp.Or(p.Condition.Reason, engine.ReasonUnschedulable)
			message := cmp.Or(p.Condition.Message, fmt.Sprintf("another pod of gang %s has no place", g.key))
			r.s.emit(engine.Condition{Pod: p.Ref(), Reason: reason, Message: message, Generation: p.Generation, ClearNomination: true})
		}
	}
}

// failed follows a pod that fits no node, or was rejected without a search (upstream: PostFilter).
func (r *permit) failed(p *cluster.Pod, searched bool) {
	g := r.of[p.UID]
	if g == nil {
		return
	}
	delete(g.released, p.UID)
	r.touch(g)
	n, _ := r.placed(r.s.store.Snapshot(), g)
	if !r.Gated && (n >= g.size || (g.size-n)*100 <= r.Tolerated*g.size) {
		return
	}
	if searched || !r.Gated {
		r.backOff(g)
	}
	r.turnAway(g, fmt.Sprintf("pod %s of gang %s has no place", p.Name, g.key))
}

// backOff keeps a rejected gang from being tried for a while.
func (r *permit) backOff(g *gang) {
	if r.Backoff == 0 || r.existing(g) < g.size {
		return
	}
	wait := r.Backoff
	if r.MaxBackoff > 0 {
		wait = min(r.Backoff<<min(g.failures, 16), r.MaxBackoff)
		wait += r.draw(wait / 2)
	}
	g.failures++
	g.notBefore = r.s.now + wait
}

// draw returns a random time below most.
func (r *permit) draw(most record.Time) record.Time {
	if most == 0 {
		return 0
	}
	r.draws++
	keyed := uint64(seed)
	return record.Time(place.Draw(^keyed, r.draws)(int(most)))
}

// releaseReady releases the gangs that waited for the next pod with a node.
func (r *permit) releaseReady() {
	for _, g := range r.ready {
		if r.gangs[g.key] == g {
			r.releaseAll(g)
		}
	}
	r.ready = r.ready[:0]
}

// releaseAll releases all pods of a gang together.
func (r *permit) releaseAll(g *gang) {
	for _, uid := range g.unbound {
		g.released[uid] = true
	}
	r.activateOthers(g, "")
}

// settle carries out what a step has changed: allowed pods are bound, rejected ones turn back, and gangs that are
// ready are released.
func (r *permit) settle() {
	for r.verdicts || len(r.changed)+len(r.activate) > 0 {
		if r.verdicts {
			r.verdicts = false
			r.s.proceedAll()
		}
		for len(r.changed) > 0 {
			g := r.changed[0]
			r.changed = r.changed[1:]
			r.consider(g)
		}
		if pods := r.activate; len(pods) > 0 {
			r.activate = nil
			r.s.queue.Activate(pods)
		}
	}
}

// consider releases a gang if all of its pods can be tried, and forgets one without pods.
func (r *permit) consider(g *gang) {
	g.check = 0
	if len(g.unbound) == 0 && r.s.store.Snapshot().GangHolds(g.key) == 0 {
		delete(r.gangs, g.key)
		return
	}
	if !r.Gated || slices.Contains(r.ready, g) || !(r.Replaces && g.complete) && r.existing(g) < g.size {
		return
	}
	n, check := 0, g.notBefore
	for _, uid := range g.unbound {
		if r.s.reserved[uid] != nil {
			continue
		}
		at, can := r.canBeTried(uid)
		if !can {
			return
		}
		n, check = n+1, max(check, at)
	}
	switch {
	case n == 0:
	case r.s.now < check:
		g.check = check
	case r.OnPermit:
		r.ready = append(r.ready, g)
	default:
		r.releaseAll(g)
	}
}

// canBeTried reports whether a pod waits for nothing but its gang, and from when on.
func (r *permit) canBeTried(uid cluster.UID) (at record.Time, can bool) {
	u, where, ok := r.s.queue.Lookup(uid)
	if !ok || r.of[uid].released[uid] {
		return 0, false
	}
	if u.BackoffUntil != 0 {
		at = u.BackoffUntil + record.Second // the second of the end is part of the backoff
	}
	return at, r.heldByGang(u, where) || where == record.Backoff && u.Plugins != nil
}

// heldByGang reports whether the gang alone keeps a unit from being tried.
func (r *permit) heldByGang(u *queue.Unit, where record.SubQueue) bool {
	rejectedAlone := where == record.Unschedulable && u.Gate == "" && u.Aside == "" && len(u.Plugins) == 1 && u.Plugins[0] == r.Plugin
	return u.Gate == r.Plugin || rejectedAlone
}

// tick considers the gangs whose time has come.
func (r *permit) tick() {
	for _, g := range r.gangs { // order: changed is sorted below
		if g.check != 0 && g.check <= r.s.now {
			r.changed = append(r.changed, g)
		}
	}
	slices.SortFunc(r.changed, func(a, b *gang) int { return slices.Compare(a.sortKey(), b.sortKey()) })
	r.changed = slices.Compact(r.changed)
}

func (g *gang) sortKey() []string { return []string{g.key.Namespace, g.key.Name, string(g.key.Source)} }

// nextCheck is when the first gang is to be considered again, 0 for never.
func (r *permit) nextCheck() (at record.Time) {
	for _, g := range r.gangs { // order: a minimum
		if g.check != 0 && (at == 0 || g.check < at) {
			at = g.check
		}
	}
	return at
}
