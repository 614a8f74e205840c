// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/deadline"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Two schedulers can evict each other's pods without end (kubernetes#130429): this one frees capacity, the controller
// makes the victim again, the other scheduler does not know the nomination and binds the victim where it was. Within
// one scheduler that cannot happen, since priorities are strictly ordered and nominations are kept (rules R11, R14).
// So what counts is what others did: another scheduler bound a pod to capacity that was freed for a unit before the
// unit got there, or evicted a pod that was placed by preemption. If that happened lossesToPause times within
// lossWindow, preemption pauses for the owner, twice as long each time.
//
// Rejected: to evict no pods of other schedulers at all, which upstream does and people rely on; to count evictions,
// which a deployment that scales up causes without any harm; to stop for good, as the other scheduler may be gone
// tomorrow.

// The measures of pauses.
const (
	lossesToPause = 3
	lossWindow    = 600 * record.Second
	// ownerMemory is how long a quiet owner is remembered after its last pause.
	ownerMemory = 2 * 3600 * record.Second
)

var pauseBackoff = Backoff{First: 60 * record.Second, Most: 3600 * record.Second}

// PausedMessage has no time in it: a condition that changes with the time would be written each time.
const PausedMessage = "preemption: no pod is evicted for it for a while, because other schedulers take the capacity."

// Owner is what capacity is freed for repeatedly: a gang, the controller of pods that come and go, or a pod. One of the
// fields is set.
type Owner struct {
	Gang       cluster.GangKey
	Controller uint64
	Pod        cluster.UID
}

// OwnerOf returns the owner of a pod.
func OwnerOf(s cluster.Snapshot, p *cluster.Pod) Owner {
	switch {
	case p.Gang != nil && p.Gang.Bad == "" && !oneByOne(s, p.Gang.Key):
		return Owner{Gang: p.Gang.Key}
	case p.Owner != 0:
		return Owner{Controller: p.Owner}
	}
	return Owner{Pod: p.UID}
}

func oneByOne(s cluster.Snapshot, key cluster.GangKey) bool {
	obj := s.GangObject(key)
	return obj != nil && OneByOne(obj)
}

// OwnerOfGang returns the owner that a gang is.
func OwnerOfGang(key cluster.GangKey) Owner { return Owner{Gang: key} }

// losses is what became of the capacity that was freed for one owner.
type losses struct {
	times  []record.Time   // kept; when it was lost to other schedulers, within the window
	pauses int             // kept; in a row
	until  record.Time     // kept; of the pause
	waits  []record.PodRef // kept
	wasted int             // kept; useless evictions, in pods
	last   record.Time     // kept; when anything of it was noted
	// end is when a pod is tried again that waits for the end of the pause.
	end deadline.Entry // derived: at until while pods wait
}

// pauses knows the owners whose capacity went to other schedulers.
type pauses struct {
	queue     *queue.Queue      // derived: given to New
	emit      func(Effect)      // derived: given to New
	deadlines *deadline.Heap    // derived: given to New
	of        map[Owner]*losses // kept
	// waited are the owners for the end of whose pause a pod waits. Invariant: they are those of which of[o].waits is
	// not empty and of[o].end is set, each once.
	waited []Owner     // kept
	swept  record.Time // kept; when owners were last forgotten
}

func (ps *pauses) note(o Owner, now record.Time) *losses {
	l := ps.of[o]
	if l == nil {
		l = &losses{end: deadline.Entry{Phase: phasePauses}}
		ps.of[o] = l
	}
	l.last = now
	return l
}

// lost notes that capacity which was freed for an owner went to other schedulers.
func (ps *pauses) lost(o Owner, who record.PodRef, now record.Time) {
	l := ps.note(o, now)
	l.times = slices.DeleteFunc(l.times, func(at record.Time) bool { return at+lossWindow < now })
	l.times = append(l.times, now)
	if len(l.times) < lossesToPause {
		return
	}
	l.pauses++
	pause := pauseBackoff.After(l.pauses)
	l.until, l.times = now+pause, nil
	if len(l.waits) > 0 {
		ps.deadlines.Set(&l.end, l.until)
	}
	ps.emit(Pause{For: who, Gang: gangName(o.Gang), Times: lossesToPause, Until: l.until})
	ps.emit(Warning{who, "PreemptionPaused", fmt.Sprintf("capacity was freed for it %d times within %d s, and pods that "+
		"other schedulers bound took it, or evicted it again: no pod is evicted for it for %d s",
		lossesToPause, lossWindow/record.Second, pause/record.Second)})
}

func gangName(key cluster.GangKey) string {
	if key == (cluster.GangKey{}) {
		return ""
	}
	return key.String()
}

// until returns the end of an owner's pause, 0 if preemption is not paused for it.
func (ps *pauses) until(o Owner, now record.Time) record.Time {
	if l := ps.of[o]; l != nil && l.until > now {
		return l.until
	}
	return 0
}

// wait has a pod tried again at the end of its owner's pause. The owner must be paused.
func (ps *pauses) wait(o Owner, who record.PodRef) {
	l := ps.of[o]
	if len(l.waits) == 0 {
		ps.waited = append(ps.waited, o)
		ps.deadlines.Set(&l.end, l.until)
	}
	if !slices.Contains(l.waits, who) {
		l.waits = append(l.waits, who)
	}
}

// wake tries the pods again whose pause is over.
func (ps *pauses) wake(now record.Time) {
	due := ps.waited
	ps.waited = nil
	for _, o := range due {
		l := ps.of[o]
		if l.until > now {
			ps.waited = append(ps.waited, o)
			continue
		}
		waits := l.waits
		l.waits = nil
		ps.deadlines.Stop(&l.end)
		ps.queue.Activate(waits)
	}
}

// sweep forgets, now and then, owners that have been quiet for long.
func (ps *pauses) sweep(now record.Time) {
	if now < ps.swept+lossWindow {
		return
	}
	ps.swept = now
	for o, l := range ps.of { // order: each stands apart
		if len(l.waits) == 0 && max(l.last, l.until)+ownerMemory < now {
			delete(ps.of, o)
		}
	}
}

// waste counts useless evictions.
func (ps *pauses) waste(o Owner, w Waste, now record.Time) {
	ps.note(o, now).wasted += w.Pods
	ps.emit(w)
}

// wasted returns how many pods were evicted for an owner without use.
func (ps *pauses) wasted(o Owner) int {
	if l := ps.of[o]; l != nil {
		return l.wasted
	}
	return 0
}
