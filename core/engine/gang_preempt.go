// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// A gang that fits nowhere may have units of lower priority evicted: all that it needs, in one go, if a dry run places it
// without them, and nobody otherwise (rules R3 to R7). Its pods are nominated to the nodes of the dry run, in memory and in
// their status: pods of its priority or less stay away from that room, and nominations below it end (rule R11). It is not
// tried before the evictions are carried out, and has nobody else evicted before its victims are gone (rule R12).
//
// When an eviction fails midway, the rest of the same victims is asked for again, as long as it fits without them (answer
// A15). When others took the room, it looks anew once its victims are gone (A17, A24); what it had evicted was wasted then,
// and is counted.
//
// Design and what was rejected: docs/design/0006-preemption-in-units.md.

// clearance is the room that is being cleared for a gang.
type clearance struct {
	gang cluster.GangKey
	// asked is the pod in whose name the evictions are, and decision the newest one that asked for some.
	asked    record.PodRef
	decision uint64
	// draw keys the draws of the dry run: the search for places after it takes the same ones, and so finds the same.
	draw uint64
	// left are the victims that are not gone yet.
	left map[cluster.UID]leaving
	// from are the nodes of all victims, evicted is how many of these were to be deleted.
	from    map[string]bool // node -> victims were there
	evicted int
	// done: EvictDone has come, failed: with an error, for the failures-th time in a row; the rest is asked for at retry.
	done, failed bool
	failures     int
	retry        record.Time
	// lost: nominations of others took the room, and its own are gone.
	lost bool
	// robbed: a pod was bound to a node of it by somebody else meanwhile.
	robbed bool
	stuck
	// stalled is since when the gang cannot be tried because of its own pods, 0 for not so.
	stalled record.Time
}

// leaving is how a victim goes.
type leaving uint8

const (
	deleted leaving = iota + 1
	turned          // it is on its way, and comes back
	awaited         // it goes for another reason; nobody was evicted in its place
)

// clearing tells whether evictions for a gang are under way: its gate is shut until EvictDone, or until every victim is seen
// to go. It is shut, too, between a failure and the time to ask again.
func (e *Engine) clearing(key cluster.GangKey) (reason string, until record.Time, shut bool) {
	c := e.clearances[key]
	switch {
	case c == nil || !e.evictsAside(c):
	case c.failed && c.retry > e.now:
		return "pods could not be evicted for this gang; it is tried again soon", c.retry, true
	case !c.done && c.any(func(uid cluster.UID, how leaving) bool { return how == deleted && e.stays(uid) }):
		return "waiting for the preemption for this gang to be finished", 0, true
	}
	return "", 0, false
}

// evictsAside tells whether the gang's profile carries evictions out beside the loop.
func (e *Engine) evictsAside(c *clearance) bool {
	u := e.queue.Gang(c.gang)
	if u == nil {
		return false
	}
	prof := e.profiles[u.Pod().Spec.SchedulerName]
	return prof.Preemption != nil && !prof.Preemption.Sync
}

func (c *clearance) any(is func(cluster.UID, leaving) bool) bool {
	for uid, how := range c.left { // order: any match will do
		if is(uid, how) {
			return true
		}
	}
	return false
}

// leftBehind tells whether victims of a gang have their room still, and go: nobody else is evicted for it until then. Those
// on a node that is gone are not waited for, nor those that should be gone for long.
func (e *Engine) leftBehind(prof *profile, c *clearance) bool {
	if c == nil {
		return false
	}
	s := e.store.Snapshot()
	return c.any(func(uid cluster.UID, how leaving) bool {
		p, n, _, there := s.PodOn(uid)
		switch {
		case how == turned:
			return e.binding[uid] != nil && e.binding[uid].recalled != ""
		case !there || s.Node(n) == nil || how == awaited:
			return false
		}
		return p.Terminating && !e.overdue(prof, p, c.gaveUp) || !p.Terminating && !c.failed
	})
}

// actOnRoom does what was found for a gang that is back in the queue. It returns what becomes of the nominations in its pods'
// status.
func (e *Engine) actOnRoom(unit *queue.Unit, need gang.Need, r room, d *record.Decision) (to map[cluster.UID]promise) {
	if r.verdict != 0 {
		d.Preemption = &record.Preemption{Message: r.message, PausedUntil: r.paused}
		if r.units != nil {
			tellUnits(d.Preemption, r.units)
		}
	}
	to = map[cluster.UID]promise{}
	switch {
	case r.verdict == preempt.Evict || r.nodes != nil:
		for _, p := range need.Members {
			if !slices.Contains(r.need.Members, p) {
				e.queue.Unnominate(p.UID)
			}
		}
		e.clear(unit, r.need, r, d)
	case r.verdict != preempt.NotEligible:
		had := map[cluster.UID]bool{}
		if e.clearances[unit.Gang] != nil {
			had = e.freePlaces(unit.Gang)
		}
		e.endClearance(unit.Gang, "no room can be made for it now")
		for _, p := range need.Members {
			e.queue.Unnominate(p.UID)
			to[p.UID] = promise{cleared: had[p.UID] || p.Nominated != ""}
		}
	}
	if d.Preemption != nil {
		d.Preemption.Wasted = e.wastedFor(thrashKey{gang: unit.Gang})
	}
	if r.message != "" && r.verdict != preempt.Evict {
		d.Message += " " + r.message
	}
	if r.verdict == preempt.Evict || r.verdict == preempt.NotEligible {
		to = e.keptPromises(need.Members)
	}
	return to
}

// keptPromises are the nodes on which pods count.
func (e *Engine) keptPromises(pods []*cluster.Pod) map[cluster.UID]promise {
	to := map[cluster.UID]promise{}
	for _, p := range pods {
		node := e.queue.NominationOf(p.UID)
		to[p.UID] = promise{node: node, cleared: node == "" && p.Nominated != ""}
	}
	return to
}

// clear acts on what was found for a gang that is back in the queue: it nominates its pods, turns flights back and asks for
// evictions.
func (e *Engine) clear(unit *queue.Unit, need gang.Need, r room, d *record.Decision) {
	if e.hold != nil && e.hold.gang == unit.Gang {
		e.dropHold("pods are evicted for it")
	}
	c, power := e.renewClearance(unit.Gang, need, r, d.Number), e.power(unit.Gang, need.Members)
	for _, p := range r.spared {
		delete(c.left, p.UID)
		c.evicted--
	}
	ask := Evict{For: c.asked, Decision: d.Number, Gang: unit.Gang.String()}
	for i, p := range need.Members {
		if r.nodes[i] == cluster.NoNode {
			e.queue.Unnominate(p.UID)
			continue
		}
		node := e.store.Snapshot().NodeName(r.nodes[i])
		e.queue.Nominate(p, node)
		d.Preemption.Places = append(d.Preemption.Places, record.Nomination{Pod: p.Ref(), Node: node})
		if p.Ref() != c.asked {
			ask.Beside = append(ask.Beside, p.Ref())
		}
	}
	ask.Node = e.queue.NominationOf(cluster.UID(c.asked.UID))
	d.Preemption.Node = d.Preemption.Places[0].Node
	var back []*flight
	s := e.store.Snapshot()
	for _, v := range r.victims {
		_, n, _, _ := s.PodOn(v.UID)
		c.from[s.NodeName(n)] = true
		f := e.turnable(v.UID)
		d.Preemption.Victims = append(d.Preemption.Victims, record.Victim{Pod: v.Ref(), Priority: v.Spec.Priority, TurnedBack: f != nil})
		if f != nil {
			c.left[v.UID] = turned
			back = append(back, f)
			continue
		}
		if c.left[v.UID] != deleted {
			c.evicted++
		}
		c.left[v.UID] = deleted
		ask.Victims = append(ask.Victims, v.Ref())
	}
	if r.units != nil {
		for _, p := range r.units.Going {
			if c.left[p.UID] == 0 {
				c.left[p.UID] = awaited
			}
		}
	}
	c.done = c.done && len(r.victims) == 0 || len(ask.Victims) == 0
	for _, f := range back {
		if e.binding[f.pod.UID] == f { // it may have come back with one of its gang
			e.yield(f, fmt.Sprintf("podgroup %s", unit.Gang), fmt.Sprintf("gang %s of priority %d", unit.Gang, power), ask.Node)
		}
	}
	var nodes []string
	for _, place := range d.Preemption.Places {
		nodes = append(nodes, place.Node)
	}
	ask.Denominate = e.denominate(power, unit.Gang, nodes)
	d.Preemption.Denominated = ask.Denominate
	if len(ask.Victims)+len(ask.Denominate) > 0 {
		if !r.same {
			e.spend(e.profiles[unit.Pod().Spec.SchedulerName], charged{cluster.UID(c.asked.UID), d.Number}, ask.Victims)
		}
		e.emit(ask)
	}
	e.seenOff(c)
	if len(c.left) > 0 {
		e.watchVictims(e.profiles[unit.Pod().Spec.SchedulerName], c.gaveUp, look{gang: unit.Gang, decision: c.decision})
	}
}

// renewClearance is the clearance of a gang for another set of victims. The rest of the same set, and room that comes
// without evictions, go on in the one there is.
func (e *Engine) renewClearance(key cluster.GangKey, need gang.Need, r room, decision uint64) *clearance {
	c := e.clearances[key]
	if c == nil || !r.same && len(r.victims) > 0 {
		var st stuck
		failures := 0
		if c != nil {
			e.wasted(c, c.why("it did not get the room"))
			st = c.after()
			failures = c.failures
		}
		c = &clearance{gang: key, stuck: st, failures: failures, left: map[cluster.UID]leaving{}, from: map[string]bool{}}
		e.clearances[key] = c
	}
	c.asked, c.decision, c.draw, c.failed, c.lost = need.Members[0].Ref(), decision, decision, false, false
	return c
}

// seenOff tries a gang at once whose last victim is gone: room that was made for it must not stay empty.
func (e *Engine) seenOff(c *clearance) {
	if len(c.left) == 0 {
		if u := e.queue.Gang(c.gang); u != nil {
			e.queue.Activate([]record.PodRef{u.Pod().Ref()})
		}
	}
}

// victimGone follows the end of a pod, or that it came back to the queue.
func (e *Engine) victimGone(uid cluster.UID) {
	for _, c := range e.clearancesInOrder() {
		if _, was := c.left[uid]; was {
			delete(c.left, uid)
			e.seenOff(c)
		}
	}
}

// clearancesInOrder are all of them by decision; those that a scheduler before this one asked for have none, and go by name.
func (e *Engine) clearancesInOrder() []*clearance {
	if len(e.clearances) == 0 {
		return nil
	}
	list := make([]*clearance, 0, len(e.clearances))
	for _, c := range e.clearances { // order: sorted below
		list = append(list, c)
	}
	slices.SortFunc(list, func(a, b *clearance) int { return cmp.Or(cmp.Compare(a.decision, b.decision), a.gang.Compare(b.gang)) })
	return list
}

// clearanceDone learns what became of the evictions for a gang. When one has failed the gang is tried again after its
// backoff, and asks for the rest.
func (e *Engine) clearanceDone(done EvictDone) (known bool) {
	for _, c := range e.clearancesInOrder() {
		if c.decision != done.Decision || c.asked.UID != done.For.UID {
			continue
		}
		if c.done, c.failed = true, done.Message != ""; c.failed {
			c.failures++
			c.retry = e.now + min(record.Second<<min(c.failures-1, 5), 30*record.Second)
		} else {
			c.failures = 0
		}
		u := e.queue.Gang(c.gang)
		switch {
		case u == nil:
			e.endClearance(c.gang, "the gang is gone")
		case c.failed:
			e.reconsider(c.gang, "pods could not be evicted for it")
		case u.Gate == plugin.DefaultPreemptionName:
			e.queue.Activate([]record.PodRef{u.Pod().Ref()}) // something woke it while its gate was shut
		}
		return true
	}
	return false
}

// gangDraw keys the draws of a gang's search: by the decision, or for a gang for which room was made by the one that made
// it, so that the search finds what the dry run found.
func (e *Engine) gangDraw(key cluster.GangKey, decision uint64) func(n int) int {
	if c := e.clearances[key]; c != nil && !c.lost {
		decision = c.draw
	}
	return place.Draw(e.cfg.Seed, decision)
}

// loseRoom ends the nominations of a gang whose room goes to another (answer A17). It returns its pods that had one.
func (e *Engine) loseRoom(key cluster.GangKey) (lost []*cluster.Pod) {
	u := e.queue.Gang(key)
	if u == nil {
		return nil
	}
	if c := e.clearances[key]; c != nil {
		c.lost = true
	}
	for _, p := range u.Members {
		if e.queue.NominationOf(p.UID) != "" {
			e.queue.Unnominate(p.UID)
			lost = append(lost, p)
		}
	}
	return lost
}

// freePlaces ends the nominations of a gang for which no room can be made.
func (e *Engine) freePlaces(key cluster.GangKey) (had map[cluster.UID]bool) {
	had = map[cluster.UID]bool{}
	for _, p := range e.loseRoom(key) {
		had[p.UID] = true
	}
	return had
}

// useClearance ends the clearance of a gang that has its places.
func (e *Engine) useClearance(key cluster.GangKey, members []*cluster.Pod, nodes []cluster.NodeIdx) {
	c := e.clearances[key]
	if c == nil {
		return
	}
	s := e.store.Snapshot()
	used := false
	for _, n := range nodes {
		used = used || n != cluster.NoNode && c.from[s.NodeName(n)]
	}
	if used && c.evicted > 0 {
		c.evicted = 0
		for i, p := range members {
			if nodes[i] != cluster.NoNode {
				e.settled[p.UID] = true
			}
		}
	}
	e.endClearance(key, "it got its places elsewhere")
}

// endClearance forgets a clearance; evictions that are under way have no other answer to wait for.
func (e *Engine) endClearance(key cluster.GangKey, why string) {
	c := e.clearances[key]
	if c == nil {
		return
	}
	e.wasted(c, why)
	delete(e.clearances, key)
}

// wasted counts evictions for a gang that did not get a place by them.
func (e *Engine) wasted(c *clearance, why string) {
	gone := c.evicted
	for uid, how := range c.left { // order: each is counted alone, so the order cannot matter
		if c.failed && how == deleted && e.stays(uid) {
			gone-- // it could not be evicted
		}
	}
	if c.evicted = 0; gone > 0 {
		e.waste(thrashKey{gang: c.gang}, Wasted{For: c.asked, Gang: c.gang.String(), Pods: gone, Why: why})
	}
}

// nodeLost tries gangs again that count on a node which is gone (answer A24).
func (e *Engine) nodeLost(name string) {
	for _, c := range e.clearancesInOrder() {
		u := e.queue.Gang(c.gang)
		if u == nil || e.leftBehind(e.profiles[u.Pod().Spec.SchedulerName], c) {
			continue
		}
		if slices.ContainsFunc(u.Members, func(p *cluster.Pod) bool { return e.queue.NominationOf(p.UID) == name }) {
			e.queue.Activate([]record.PodRef{u.Pod().Ref()})
		}
	}
}

// gangLeft is told that a pod of a gang does not wait any more.
func (e *Engine) gangLeft(p *cluster.Pod) {
	if p.Gang != nil && !e.queue.HasGang(p.Gang.Key) && e.clearances[p.Gang.Key] != nil {
		e.endClearance(p.Gang.Key, "the gang is gone")
	}
}

// endStalled gives up the room of gangs that could not be tried for as long as a hold lasts: too few of their pods are there.
func (e *Engine) endStalled() {
	for _, c := range e.clearancesInOrder() {
		u := e.queue.Gang(c.gang)
		switch {
		case u == nil || u.Gate == "" || u.Gate == plugin.DefaultPreemptionName:
			c.stalled = 0
		case c.stalled == 0:
			c.stalled = e.now
		case e.now >= c.stalled+e.stallTime():
			had := e.freePlaces(c.gang)
			e.endClearance(c.gang, "too few of its pods are there")
			for _, p := range u.Members {
				if had[p.UID] {
					e.tellWith(p, ReasonGated, u.GateReason, promise{cleared: true})
				}
			}
		}
	}
}

// stallTime is for how long the room of a gang is kept that cannot be tried: as long as a hold, also where none is made.
func (e *Engine) stallTime() record.Time { return cmp.Or(e.cfg.Hold.For, DefaultHoldFor) }

// nextStall is when the first of them gives its room up; 0 for no time.
func (e *Engine) nextStall() (at record.Time) {
	for _, c := range e.clearances { // order: the least of all
		if end := c.stalled + e.stallTime(); c.stalled != 0 && (at == 0 || end < at) {
			at = end
		}
	}
	return at
}

// findClearances takes over, once all pods are known, the room that a scheduler before this one made for gangs: their pods are
// nominated, and victims may still be going.
func (e *Engine) findClearances() {
	s := e.store.Snapshot()
	take := func(u *queue.Unit) {
		if u.Gang == (cluster.GangKey{}) {
			e.findLooks(u)
			return
		}
		c := &clearance{gang: u.Gang, asked: u.Pod().Ref(), done: true, left: map[cluster.UID]leaving{}, from: map[string]bool{}}
		found := false
		power := e.power(u.Gang, u.Members)
		need, _ := e.gangNeed(u)
		if sets := e.preemptors(u.Gang, u, need); len(sets) > 0 {
			power = sets[0].power // as which it may have asked for evictions
		}
		for _, p := range u.Members {
			node := e.queue.NominationOf(p.UID)
			found = found || node != ""
			if n, ok := s.Find(node); ok && node != "" {
				s.EachPod(n, func(v *cluster.Pod, _ bool) {
					if v.Preempted && v.Spec.Priority < power {
						c.left[v.UID] = deleted
					}
				})
			}
		}
		if found {
			e.clearances[u.Gang] = c
			if prof := e.profiles[u.Pod().Spec.SchedulerName]; prof != nil && prof.Preemption != nil {
				e.watchVictims(prof, 0, look{gang: u.Gang})
			}
		}
	}
	for _, sub := range []record.SubQueue{record.Active, record.Backoff, record.Gated, record.Unschedulable} {
		e.queue.Each(sub, take)
	}
}
