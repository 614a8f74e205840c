// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"github.com/kumiki-scheduler/kumiki/core/deadline"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Units are tried as soon as something may help them, or in sessions. A session takes no time as far as its
// decisions can tell: every unit that waits when it starts is tried once, in the order of the queue, against the
// cluster of that moment and what the session itself decides. Whatever comes in meanwhile is kept, in order, and
// takes effect when the last unit was tried: changes of objects, answers to binds and evictions, of this session
// too, and time. So the same happens as if all of it had come after the session, which is what
// TestASessionIsOneMoment holds. The next session may start a period after the end of this one (answer A22).
//
// An answer that is kept costs a gang nothing but the rest of the session: a bind that failed is sent again when it
// is over.
//
// Rejected: a copy of the cluster for each session (the Store has one writer, and a decision needs the accounts
// that the one before it left); to keep events outside, in the loop (each driver would have to, and a replay or a
// simulation that does not would decide otherwise); to let answers through (a bind that fails frees capacity, and
// the units behind would see it).

// steady tries units as soon as they are ready. Each event counts when it comes.
type steady struct{ e *Engine }

func (s steady) take(ev Event)                   { s.e.step(ev) }
func (s steady) ready() bool                     { return s.e.queue.Ready() }
func (s steady) next() (*queue.Unit, bool)       { return s.e.queue.Pop() }
func (s steady) wakes() bool                     { return true }
func (s steady) wake(at record.Time) record.Time { return at }

// DefaultSessionPeriod is the pause between two sessions of the model that they come from.
const DefaultSessionPeriod = 5 * record.Second

// sessions tries units in sessions.
type sessions struct {
	e      *Engine     // derived: the owner
	period record.Time // derived: in the configuration
	// clock is the time of the last Tick, also of one that is kept.
	clock record.Time // kept
	// due is when the next session may start.
	due record.Time // kept
	// open: a session is under way. left are the units that it has not tried yet, in order; kept are the events
	// that came in since it started; tried is when the last cycle was.
	open  bool          // kept
	left  []*queue.Unit // kept
	kept  []Event       // kept
	tried record.Time   // kept
}

func (s *sessions) take(ev Event) {
	tick, isTick := ev.(Tick)
	if isTick {
		s.clock = max(s.clock, tick.Now)
	}
	if _, is := ev.(Cycle); is {
		s.tried = s.clock
		s.e.step(ev)
		if s.open && len(s.left) == 0 {
			s.end()
		}
		return
	}
	if s.open {
		s.kept = append(s.kept, ev)
		// No caller may keep events of the cluster out for long: a scheduler that is paused, or that has lost its
		// lease.
		if s.clock > s.tried+s.period {
			s.end()
		}
		return
	}
	s.e.step(ev)
	switch _, synced := ev.(Synced); {
	case synced:
		s.due = s.clock
	case isTick && s.clock >= s.due && s.e.count.synced && !s.e.queue.Waiting():
		s.due += s.period * ((s.clock-s.due)/s.period + 1) // sessions without a unit
	}
}

// end lets in what was kept. The units that were not tried wait for the next session like those that were.
func (s *sessions) end() {
	kept := s.kept
	s.open, s.left, s.kept = false, nil, nil
	s.due = s.clock + s.period
	for _, ev := range kept {
		s.e.step(ev)
	}
}

func (s *sessions) ready() bool { return s.open || s.clock >= s.due && s.e.queue.Waiting() }

// next starts a session if none is open, and takes out its next unit that still waits to be tried: its own
// decisions may have changed that.
func (s *sessions) next() (*queue.Unit, bool) {
	if !s.open {
		s.due = s.clock + s.period // whatever goes wrong, the next one is not at once
		s.left = s.e.queue.ActivateAll()
		s.open = true
	}
	for len(s.left) > 0 {
		u := s.left[0]
		s.left[0], s.left = nil, s.left[1:]
		if s.e.queue.Take(u) {
			return u, true
		}
	}
	return nil, false
}

func (s *sessions) wakes() bool { return false }

func (s *sessions) wake(at record.Time) record.Time {
	if s.open {
		return 0
	}
	if s.due > s.clock && s.e.queue.Waiting() {
		return deadline.First(at, s.due)
	}
	return at
}
