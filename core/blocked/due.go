// SPDX-License-Identifier: Apache-2.0

package blocked

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// A hold begins with an attempt, and in a quiet cluster no event causes one. So each blocked gang has a time from which
// it may hold capacity, and from then on it is due until an attempt decides about it. Of the gangs that are due only
// the first in the queue's order is tried, unless a gang before it holds capacity: the others could not get the hold.
// The next one follows when the first one is not due any more without the hold, or when the hold ends. In a pause of
// all holds (budget.go) no gang is due; those that were are due at its end.
//
// Rejected: to hold at that time what the last attempt found (it may be taken by now), and to try all gangs that are
// due (a search for each of them, of which one can hold).

// wholeSecond returns t, or the next whole second.
func wholeSecond(t record.Time) record.Time {
	if r := t % record.Second; r != 0 {
		t += record.Second - r
	}
	return t
}

// setDue sets when a gang is to be tried, so that it gets the hold; 0 for not at all. An event may cause an attempt
// before. It is called at each attempt, and at the end of each hold for the gang that had it, so that TryDue sees both.
func (g *Gangs) setDue(key cluster.GangKey, h *history, at record.Time) {
	if g.cfg.Sessions || g.cfg.Hold.For == 0 {
		return
	}
	h.dueAt = at
	due := at != 0 && at <= g.cfg.Host.Now()
	g.look = g.look || due != g.due[key] // a look at each attempt would take longest
	if due {
		g.due[key] = true
		at = 0
	} else {
		delete(g.due, key)
	}
	g.cfg.Deadlines.Set(&h.due, at)
}

// comeDue makes those gangs due whose time has come.
func (g *Gangs) comeDue() {
	for key, h := range g.of { // order: each by itself
		if at := h.due.At(); at != 0 && at <= g.cfg.Host.Now() {
			g.setDue(key, h, wholeSecond(g.holdsFrom(h))) // later in a pause
		}
	}
}

// firstDue returns the first unit in the queue's order that is due, nil for none. What does not wait for capacity any
// more is not due.
func (g *Gangs) firstDue() (first *queue.Unit) {
	var not []cluster.GangKey
	for key := range g.due { // order: the first by the queue's order is taken
		switch u := g.unit(key); {
		case u == nil || u.Extra():
			not = append(not, key)
		case first == nil || g.cfg.Queue.Before(u, first):
			first = u
		}
	}
	for _, key := range not {
		g.setDue(key, g.of[key], 0)
	}
	return first
}

// TryDue has the first of the gangs that are due tried, if it can get the hold and is not about to be tried. It must be
// called after each event.
func (g *Gangs) TryDue() {
	for g.look {
		g.look = false
		first := g.firstDue()
		if first == nil || !g.winsHold(first) {
			continue
		}
		g.cfg.Queue.TryGang(first.Gang, "it may hold capacity from now on")
		if first.Gate != "" { // it waits for the gate now, the opening of which causes an attempt
			g.setDue(first.Gang, g.of[first.Gang], 0)
			g.endSparing(first.Gang)
		}
	}
}
