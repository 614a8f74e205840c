// SPDX-License-Identifier: Apache-2.0

package blocked

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Rejected follows an attempt that found too few places, once the gang is back in the queue. What waits for capacity
// may hold some, and its possible places are kept from surplus members of others; a unit of surplus members neither
// waits for capacity in that sense nor keeps any.
func (g *Gangs) Rejected(a gang.Attempt, surplus bool) {
	h := g.historyOf(a.Gang)
	h.verdict = a.Answer.Verdict
	if surplus {
		g.setDue(a.Gang, h, 0)
		return
	}
	g.holdFor(a)
	g.spare(a)
}

// Evicting follows an attempt that found too few places, of a gang that waits for the capacity of its victims.
func (g *Gangs) Evicting(a gang.Attempt) {
	h := g.historyOf(a.Gang)
	h.verdict = a.Answer.Verdict
	g.setDue(a.Gang, h, 0)
	g.endSparing(a.Gang)
}

// Placed follows an attempt that found enough places and keeps them. What is held stays until EndHold.
func (g *Gangs) Placed(key cluster.GangKey) {
	if h := g.of[key]; h != nil {
		h.since, h.noPlace, h.verdict = 0, false, gang.Placed
		g.cfg.Deadlines.Stop(&h.scaleUp)
		g.setDue(key, h, 0)
	}
	g.endSparing(key)
}

// EndHold ends the hold of a gang, if it has it, because the gang has its places.
func (g *Gangs) EndHold(key cluster.GangKey) { g.useHold(key) }

// GiveUpHold ends the hold of a gang, if it has it, because it does not need it any more; the event says why.
func (g *Gangs) GiveUpHold(key cluster.GangKey, why string) {
	if g.hold != nil && g.hold.gang == key {
		g.dropHold(why)
	}
}

// Changed follows a gang of which less or more waits than before, or behind another gate: what does not wait for
// capacity must not keep any.
func (g *Gangs) Changed(key cluster.GangKey) {
	if u := g.unit(key); u == nil || u.Extra() {
		g.endSparing(key)
	}
	if g.due[key] || g.hold != nil && g.hold.gang == key {
		g.look = true // it may not wait any more, or be at another place in the queue's order
	}
}

// Forget drops what is known of a gang that is gone.
func (g *Gangs) Forget(key cluster.GangKey) {
	if h := g.of[key]; h != nil {
		g.cfg.Deadlines.Stop(&h.scaleUp)
		g.setDue(key, h, 0)
		delete(g.of, key)
	}
}

// Tick follows the time. due are the phases that have a deadline, as bits.
func (g *Gangs) Tick(due uint64) {
	if due&(1<<(g.cfg.FirstPhase+phaseScaleUp)) != 0 {
		g.turnScaleUps()
	}
	if due&(1<<(g.cfg.FirstPhase+phaseDue)) != 0 {
		g.comeDue()
	}
	if due&(1<<(g.cfg.FirstPhase+phaseBackfill)) != 0 {
		g.endBackfilled()
	}
}

// Check ends the hold if its time is over or its gang does not wait any more. It must be called after each event.
func (g *Gangs) Check() { g.endHold() }

// Any reports whether gangs wait for capacity, besides the one that holds some.
func (g *Gangs) Any() bool { return len(g.Units()) > 0 }

// History is what is known of the attempts for a gang.
type History struct {
	// Since is when it was first rejected since it last had a place, 0 for never; FirstPlaced is how many pods its
	// best attempt placed then.
	Since       record.Time
	FirstPlaced int
	// Verdict is how its last search ended; gang.Placed before the first.
	Verdict gang.Verdict
}

// History returns what is known of a gang; the zero value for nothing.
func (g *Gangs) History(key cluster.GangKey) History {
	if h := g.of[key]; h != nil {
		return History{Since: h.since, FirstPlaced: h.firstPlaced, Verdict: h.verdict}
	}
	return History{}
}

// Each visits, in no order, the gangs of which something is known.
func (g *Gangs) Each(visit func(cluster.GangKey)) {
	for key := range g.of { // order: the caller expects none
		visit(key)
	}
}

// Held is the capacity that is held for a blocked gang.
type Held struct {
	Gang         cluster.GangKey
	Since, Until record.Time
	Pods         []*cluster.Pod // that are nominated for it
	// Start is the estimate of the gang's start, 0 for unknown, and Backfilled how many pods that end before it were
	// placed on the capacity.
	Start      record.Time
	Backfilled int
}

// Held returns the capacity that is held now.
func (g *Gangs) Held() (held Held, ok bool) {
	h := g.hold
	if h == nil {
		return Held{}, false
	}
	return Held{Gang: h.gang, Since: h.since, Until: h.until.At(), Pods: h.pods,
		Start: h.backfill.start, Backfilled: h.backfill.placed}, true
}
