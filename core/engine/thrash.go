// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Two schedulers can evict each other's pods for ever (kubernetes#130429): ours makes room, the controller makes the victim
// again, the other scheduler knows nothing of our nomination and binds it where it was. Within one scheduler that cannot be,
// since priorities are strictly ordered and nominations are kept (rules R11, R14). So what is counted is what others did:
// room that was made for a pod or a gang, to which somebody else bound a pod before it got there; and a pod that got its
// place by evictions and was evicted by somebody else. When that has happened thrashTimes times within thrashWindow, nobody is
// evicted for the same owner for a while, twice as long each time.
//
// Rejected: to evict no pods of other schedulers at all, which upstream does and people rely on; to count evictions, which
// a deployment that scales up causes without any harm; to stop for good, as the other scheduler may be gone tomorrow.

// The thrash detector's measures.
const (
	thrashTimes  = 3
	thrashWindow = 600 * record.Second
	pauseFirst   = 60 * record.Second
	pauseMost    = 3600 * record.Second
	// thrashMemory is how long a quiet owner is remembered after its last pause.
	thrashMemory = 2 * pauseMost
)

// thrashKey is for whom room is made, again and again: a gang, the controller of pods that come and go, or a pod.
type thrashKey struct {
	gang  cluster.GangKey
	owner uint64
	pod   cluster.UID
}

func (e *Engine) thrashKeyOf(p *cluster.Pod) thrashKey {
	switch {
	case p.Gang != nil && p.Gang.Bad == "" && !e.apart(p.Gang.Key):
		return thrashKey{gang: p.Gang.Key}
	case p.Owner != 0:
		return thrashKey{owner: p.Owner}
	}
	return thrashKey{pod: p.UID}
}

// thrash is what befell the room that was made for one owner.
type thrash struct {
	times  []record.Time // when it was lost to others, within the window
	pauses int           // in a row
	until  record.Time   // of the pause
	waits  []record.PodRef
	wasted int         // pods evicted in vain
	last   record.Time // when anything of it was noted
}

func (e *Engine) thrashOf(key thrashKey) *thrash {
	t := e.thrash[key]
	if t == nil {
		t = &thrash{}
		e.thrash[key] = t
	}
	t.last = e.now
	return t
}

// robbedAgain notes that room which was made for an owner went to others.
func (e *Engine) robbedAgain(key thrashKey, who record.PodRef) {
	t := e.thrashOf(key)
	t.times = slices.DeleteFunc(t.times, func(at record.Time) bool { return at+thrashWindow < e.now })
	t.times = append(t.times, e.now)
	if len(t.times) < thrashTimes {
		return
	}
	pause := min(pauseFirst<<min(t.pauses, 10), pauseMost)
	t.until, t.times = e.now+pause, nil
	t.pauses++
	e.emit(PreemptionPaused{For: who, Gang: gangName(key.gang), Times: thrashTimes, Until: t.until})
	e.emit(WriteEvent{who, "Warning", "PreemptionPaused", "Preempting", fmt.Sprintf(
		"room was made for it %d times within %d s, and pods that other schedulers bound took it, or evicted it again: nobody is evicted for it for %d s",
		thrashTimes, thrashWindow/record.Second, pause/record.Second)})
}

func gangName(key cluster.GangKey) string {
	if key == (cluster.GangKey{}) {
		return ""
	}
	return key.String()
}

// pausedUntil is until when nobody may be evicted for an owner, 0 for no such time.
func (e *Engine) pausedUntil(key thrashKey, who record.PodRef) record.Time {
	t := e.thrash[key]
	if t == nil || t.until <= e.now {
		return 0
	}
	if len(t.waits) == 0 {
		e.paused = append(e.paused, key)
	}
	if !slices.Contains(t.waits, who) {
		t.waits = append(t.waits, who)
	}
	return t.until
}

// pausedMessage has no time in it: a condition that changes with the time would be written each time.
const pausedMessage = "preemption: nobody is evicted for it for a while, because other schedulers take the room."

// foreignBound follows a pod that somebody else bound: room that is being made on its node is not what it was.
func (e *Engine) foreignBound(p *cluster.Pod) {
	if !e.synced {
		return
	}
	for _, q := range e.queue.NominatedOn(p.NodeName) {
		if ev := e.evictions[q.UID]; ev != nil && ev.node == p.NodeName {
			ev.robbed = true
		}
		if q.Gang != nil && e.clearances[q.Gang.Key] != nil {
			e.clearances[q.Gang.Key].robbed = true
		}
	}
}

// evictedByOthers follows a pod of ours that is seen to be evicted: if evictions made room for it, and it was not we.
func (e *Engine) evictedByOthers(p *cluster.Pod) {
	if !e.settled[p.UID] || e.asked[p.UID] {
		return
	}
	delete(e.settled, p.UID)
	e.robbedAgain(e.thrashKeyOf(p), p.Ref())
}

// endPauses tries those again whose pause is over, and now and then forgets owners that have been quiet for long.
func (e *Engine) endPauses() {
	due := e.paused
	e.paused = nil
	for _, key := range due {
		t := e.thrash[key]
		if t.until > e.now {
			e.paused = append(e.paused, key)
			continue
		}
		waits := t.waits
		t.waits = nil
		e.queue.Activate(waits)
	}
	if e.now < e.thrashSwept+thrashWindow {
		return
	}
	e.thrashSwept = e.now
	for key, t := range e.thrash { // order: each stands apart
		if len(t.waits) == 0 && max(t.last, t.until)+thrashMemory < e.now {
			delete(e.thrash, key)
		}
	}
}

// nextPauseEnd is when the first pause ends that somebody waits for; 0 for no time.
func (e *Engine) nextPauseEnd() (at record.Time) {
	for _, key := range e.paused {
		if t := e.thrash[key]; at == 0 || t.until < at {
			at = t.until
		}
	}
	return at
}

// waste counts evictions for somebody who did not get a place by them.
func (e *Engine) waste(key thrashKey, w Wasted) {
	e.thrashOf(key).wasted += w.Pods
	e.emit(w)
}

// wastedFor is how many pods were evicted in vain for an owner.
func (e *Engine) wastedFor(key thrashKey) int {
	if t := e.thrash[key]; t != nil {
		return t.wasted
	}
	return 0
}
