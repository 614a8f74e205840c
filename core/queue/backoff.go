// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

const (
	// window is the period of the check for ended backoffs; with PopFromBackoff also the granularity of their ends,
	// within which units keep the order of the active queue (KEP-5142).
	window = record.Second
	// leftoverPeriod is the period of the check for units that have waited longer than the timeout.
	leftoverPeriod = 30 * record.Second
)

// floor returns the last multiple of period up to t.
func floor(t, period record.Time) record.Time { return t - t%period }

// align rounds t to the granularity of backoffs.
func (q *Queue) align(t record.Time) record.Time {
	if !q.cfg.PopFromBackoff {
		return t
	}
	return floor(t, window)
}

// backoffEnd returns when the backoff of a unit ends whose last attempt ended now; 0 for no backoff (upstream:
// backend/queue/backoff_queue.go, getBackoffTime and calculateBackoffDuration).
func (q *Queue) backoffEnd(u *Unit) record.Time {
	count := u.UnschedulableCount
	if u.ErrorCount > 0 {
		count = u.ErrorCount
	}
	if q.cfg.MaxBackoff == 0 || count == 0 {
		return 0
	}
	wait := q.cfg.MaxBackoff
	// Compared before the shift, which could otherwise overflow.
	if shift := count - 1; q.cfg.InitialBackoff <= q.cfg.MaxBackoff>>shift {
		wait = q.cfg.InitialBackoff << shift
	}
	return q.align(u.Since + wait)
}

// backingOff reports whether the unit's backoff has not ended. The end itself belongs to the backoff.
func (q *Queue) backingOff(u *Unit) bool {
	if u.BackoffUntil == 0 {
		return false
	}
	now := q.align(q.now)
	return u.BackoffUntil >= now
}

// Tick sets the time. At a whole second the units whose backoff has ended become active; at a multiple of 30 seconds
// units that waited longer than the timeout are woken. Everything that fell due since the last Tick happens at its
// own time, so the result does not depend on how often Tick is called. A time before the last one counts as the last
// one.
func (q *Queue) Tick(now record.Time) {
	// Before the first Tick nothing can have fallen due.
	for q.now != 0 {
		due, ok := q.NextTick()
		if !ok || due > now {
			break
		}
		q.now = due
		q.endBackoffs(&q.backoff)
		q.endBackoffs(&q.rests)
		q.endBackoffs(&q.errors)
		q.askGangs()
		if floor(due, leftoverPeriod) == due {
			q.wakeLeftover()
		}
	}
	q.now = max(q.now, now)
}

func (q *Queue) endBackoffs(h *heap) {
	for u := h.head(); u != nil && !q.backingOff(u); u = h.head() {
		n := note{event: backoffComplete, cause: "its backoff has ended"}
		if u.at == resting {
			q.toActive(u, n) // the gates have not run since it was rejected
		} else {
			q.fromBackoff(u, n)
		}
	}
}

// wakeLeftover wakes the units that have waited longer than the timeout since they arrived or were last woken by it.
// The gates of a gated unit run again.
func (q *Queue) wakeLeftover() {
	var old []*Unit
	for _, u := range q.aging.units {
		if q.tooOld(u) {
			u.Flushed, u.flushedAt = true, q.now
			old = append(old, u)
		}
	}
	if len(old) == 0 {
		return
	}
	ch := plugin.Change{Event: plugin.UnschedulableTimeout}
	movers := q.movers[:0]
	for _, u := range old {
		movers = append(movers, mover{u, verdict{how: afterBackoff, cause: u.group.of(ch.Event).cause}})
	}
	q.move(movers, ch)
	q.flight.happened(ch)
}

func (q *Queue) tooOld(u *Unit) bool {
	age := q.now - max(u.Since, u.flushedAt)
	return age > q.cfg.UnschedulableTimeout
}

// NextTick returns when a Tick could next change something; false if nothing waits for time.
func (q *Queue) NextTick() (record.Time, bool) {
	var next record.Time
	sooner := func(t record.Time) {
		if next == 0 || t < next {
			next = t
		}
	}
	for _, h := range []*heap{&q.backoff, &q.rests, &q.errors} {
		if u := h.head(); u != nil {
			sooner(floor(u.BackoffUntil, window) + window)
		}
	}
	if len(q.asks) > 0 {
		sooner(max(q.asks[0].at, q.now))
	}
	if u := q.aging.head(); u != nil {
		// A gate may hold a unit that is past the timeout: then the next check counts, which may wake no unit.
		sooner(floor(max(u.Since+q.cfg.UnschedulableTimeout, q.now), leftoverPeriod) + leftoverPeriod)
	}
	return next, next != 0
}
