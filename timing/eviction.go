// SPDX-License-Identifier: Apache-2.0

package timing

import (
	"math"

	"github.com/kumiki-scheduler/kumiki/record"
)

// maxVictims bounds the victims of one eviction that are kept one by one.
const maxVictims = 32

// evictionKey identifies an eviction: the UID of the pod that gets the capacity, and the decision.
type evictionKey struct {
	uid      string
	decision uint64
}

// eviction is an eviction under way.
type eviction struct {
	record.EvictionTiming
	key       evictionKey
	victims   []string // UIDs
	running   int      // victims that are not terminating
	left      int      // victims that are not gone
	lastShown record.Time
	lastGone  record.Time
	answered  bool
}

// victim is a pod that an eviction waits for.
type victim struct {
	of *eviction
	at int // in of.Pods; not less than maxVictims if it is not kept there
	// terminating: the watch has shown it so, or gone.
	terminating bool
	next        *victim // of another eviction of the same pod; nil for none
}

// EvictionRequested tells of a request to evict pods, at e.Requested.
func (r *Recorder) EvictionRequested(e record.EvictionTiming, victims []record.PodRef) {
	if len(r.evictions) >= maxEvictions {
		r.lostEvictions++
		return
	}
	ev := &eviction{EvictionTiming: e, key: evictionKey{e.For.UID, e.Decision}, running: len(victims),
		left: len(victims)}
	for i, v := range victims {
		r.victims[v.UID] = &victim{of: ev, at: i, next: r.victims[v.UID]}
		ev.victims = append(ev.victims, v.UID)
		if i < maxVictims {
			ev.Pods = append(ev.Pods, record.VictimTiming{Pod: v})
		}
	}
	r.evictions[ev.key] = ev
}

// EvictionEnded tells that the outcome of an eviction was taken; message is its error, empty if it succeeded. calls are
// those of the deletes, in the order of the victims; there may be fewer.
func (r *Recorder) EvictionEnded(target record.PodRef, decision uint64, message string, calls []Call,
	taken record.Time) {
	ev := r.evictions[evictionKey{target.UID, decision}]
	if ev == nil {
		return
	}
	ev.answered, ev.Failed = true, message
	if taken = max(taken, ev.Requested); message == "" {
		ev.Deleted = taken
	} else {
		ev.FailedAt = taken
	}
	first := record.Time(math.MaxInt64)
	for i, c := range calls {
		sent := c.Released
		if sent == 0 {
			sent = c.Begun
		}
		if sent == 0 {
			continue
		}
		first = min(first, sent)
		if i < len(ev.Pods) {
			ev.Pods[i].Sent = sent
		}
	}
	if first != math.MaxInt64 {
		ev.Sent = first
	}
	r.closeEviction(ev)
}

// Terminating tells that the watch showed a pod that is being deleted: when that was received, and when the loop took
// it.
func (r *Recorder) Terminating(pod record.PodRef, received, taken record.Time) {
	if len(r.victims) == 0 {
		return
	}
	for v := r.victims[pod.UID]; v != nil; v = v.next {
		v.showTerminating(min(received, taken))
	}
}

func (v *victim) showTerminating(at record.Time) {
	if v.terminating {
		return
	}
	v.terminating = true
	if v.at < maxVictims {
		v.of.Pods[v.at].Terminating = at
	}
	v.of.lastShown = max(v.of.lastShown, at)
	if v.of.running--; v.of.running == 0 {
		v.of.Terminating = v.of.lastShown
	}
}

func (r *Recorder) victimGone(uid string, at record.Time) {
	if len(r.victims) == 0 {
		return
	}
	v := r.victims[uid]
	delete(r.victims, uid)
	for ; v != nil; v = v.next {
		v.showTerminating(at)
		ev := v.of
		if v.at < maxVictims {
			ev.Pods[v.at].Gone = at
		}
		ev.lastGone = max(ev.lastGone, at)
		if ev.left--; ev.left == 0 {
			ev.Gone = ev.lastGone
		}
		r.closeEviction(ev)
	}
}

// closeEviction ends an eviction that is answered and whose victims are gone, or that failed.
func (r *Recorder) closeEviction(ev *eviction) {
	if !ev.answered || ev.left > 0 && ev.Failed == "" {
		return
	}
	for _, uid := range ev.victims {
		r.dropVictim(uid, ev)
	}
	delete(r.evictions, ev.key)
	r.endedEvictions.add(ev.report())
}

// dropVictim ends the wait of an eviction for one of its victims.
func (r *Recorder) dropVictim(uid string, ev *eviction) {
	for at, v := (*victim)(nil), r.victims[uid]; v != nil; at, v = v, v.next {
		switch {
		case v.of != ev:
		case at != nil:
			at.next = v.next
			return
		case v.next == nil:
			delete(r.victims, uid)
			return
		default:
			r.victims[uid] = v.next
			return
		}
	}
}

// report returns an eviction whose milestones do not decrease. What ends it is given; what comes before does not exceed
// that: a victim may have been terminating, or gone, before this eviction asked for it.
func (ev *eviction) report() record.EvictionTiming {
	out := ev.EvictionTiming
	if out.Gone != 0 {
		out.Gone = max(out.Gone, out.Requested)
	}
	out.Sent, out.Terminating = clamp(out.Requested, out.Sent, out.Terminating, out.Ended())
	out.Pods = make([]record.VictimTiming, len(ev.Pods))
	for i, v := range ev.Pods {
		if v.Gone != 0 {
			v.Gone = max(v.Gone, out.Requested)
		}
		end := v.Gone
		if end == 0 {
			end = out.FailedAt
		}
		v.Sent, v.Terminating = clamp(out.Requested, v.Sent, v.Terminating, end)
		out.Pods[i] = v
	}
	return out
}

// clamp returns two milestones so that they do not decrease, are not before what begins and not after what ends. A 0
// stays 0, and no end bounds nothing.
func clamp(begins, first, second, ends record.Time) (record.Time, record.Time) {
	if ends == 0 {
		ends = math.MaxInt64
	}
	if second != 0 {
		second = min(max(second, begins), ends)
		ends = second
	}
	if first != 0 {
		first = min(max(first, begins), ends)
	}
	return first, second
}
