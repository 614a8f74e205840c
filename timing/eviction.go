// SPDX-License-Identifier: Apache-2.0

package timing

import "github.com/kumiki-scheduler/kumiki/record"

// evictionKey identifies an eviction: the UID of the pod that gets the capacity, and the decision.
type evictionKey struct {
	uid      string
	decision uint64
}

// eviction is an eviction under way.
type eviction struct {
	record.EvictionTiming
	key      evictionKey
	left     int // victims that are not gone
	answered bool
}

// EvictionRequested tells of a request to evict pods, at e.Requested.
func (r *Recorder) EvictionRequested(e record.EvictionTiming, victims []record.PodRef) {
	if len(r.evictions) >= maxEvictions {
		r.lostEvictions++
		return
	}
	ev := &eviction{EvictionTiming: e, key: evictionKey{e.For.UID, e.Decision}}
	for _, v := range victims {
		if r.victims[v.UID] == nil {
			r.victims[v.UID] = ev
			ev.left++
		}
	}
	r.evictions[ev.key] = ev
}

// EvictionEnded tells that the outcome of an eviction was taken; message is its error, empty if it succeeded.
func (r *Recorder) EvictionEnded(target record.PodRef, decision uint64, message string, taken record.Time) {
	ev := r.evictions[evictionKey{target.UID, decision}]
	if ev == nil {
		return
	}
	ev.answered, ev.Failed = true, message
	if message == "" {
		ev.Deleted = taken
	}
	r.closeEviction(ev)
}

func (r *Recorder) victimGone(uid string, at record.Time) {
	ev := r.victims[uid]
	if ev == nil {
		return
	}
	delete(r.victims, uid)
	if ev.left--; ev.left == 0 {
		ev.Gone = max(at, ev.Requested)
	}
	r.closeEviction(ev)
}

// closeEviction ends an eviction that is answered and whose victims are gone, or that failed.
func (r *Recorder) closeEviction(ev *eviction) {
	if !ev.answered || ev.left > 0 && ev.Failed == "" {
		return
	}
	if ev.left > 0 {
		for uid, of := range r.victims { // order: each for itself
			if of == ev {
				delete(r.victims, uid)
			}
		}
	}
	delete(r.evictions, ev.key)
	r.endedEvictions.add(ev.EvictionTiming)
}
