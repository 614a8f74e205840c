// SPDX-License-Identifier: Apache-2.0

// Package pace owns when units are tried and which is next, and when events count.
//
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
package pace

import (
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/deadline"
	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/core/state"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Pace decides when units are tried and which is next, and when events count.
type Pace interface {
	// Take takes an event in, now or later.
	Take(ev message.Event)
	// Ready reports whether a Cycle would find something to do.
	Ready() bool
	// Next takes the unit out that is to be tried.
	Next() (*queue.Unit, bool)
	// Wakes reports whether units wait to be woken. Where it is false, each is tried again whatever happens.
	Wakes() bool
	// Wake returns when a Tick is wanted at the latest, given when others want one; 0 for never.
	Wake(at record.Time) record.Time
	// State returns the facts, nil for none; index is where the units are in the State of the queue. Restore goes on
	// from facts of the same configuration.
	State(index func(*queue.Unit) int) *state.Session
	Restore(st *state.Session, units []*queue.Unit) error
}

// New returns sessions with a pause of a period between them, or, if that is 0, a pace at which units are tried as soon
// as they are ready. handle handles an event as a transaction; synced is set once the initial lists are complete.
func New(handle func(message.Event), synced *bool, q *queue.Queue, period record.Time) Pace {
	if period > 0 {
		return &Sessions{handle: handle, synced: synced, queue: q, period: period}
	}
	return steady{handle, q}
}

// steady tries units as soon as they are ready. Each event counts when it comes.
type steady struct {
	handle func(message.Event)
	queue  *queue.Queue
}

func (s steady) Take(ev message.Event)                      { s.handle(ev) }
func (s steady) Ready() bool                                { return s.queue.Ready() }
func (s steady) Next() (*queue.Unit, bool)                  { return s.queue.Pop() }
func (s steady) Wakes() bool                                { return true }
func (s steady) Wake(at record.Time) record.Time            { return at }
func (s steady) State(func(*queue.Unit) int) *state.Session { return nil }

func (s steady) Restore(st *state.Session, _ []*queue.Unit) error { return mustBe(false, st) }

// mustBe returns an error if facts of sessions are there and must not be, or are not and must be.
func mustBe(sessions bool, st *state.Session) error {
	if sessions != (st != nil) {
		return fmt.Errorf("resuming the engine: sessions in the configuration: %v, in the state: %v",
			sessions, st != nil)
	}
	return nil
}

// DefaultPeriod is the pause between two sessions of the model that they come from.
const DefaultPeriod = 5 * record.Second

// Sessions tries units in sessions.
type Sessions struct {
	handle func(message.Event) // derived: given to New
	synced *bool               // derived: given to New
	queue  *queue.Queue        // derived: given to New
	period record.Time         // derived: in the configuration
	// clock is the time of the last Tick, also of one that is kept.
	clock record.Time // kept
	// due is when the next session may start.
	due record.Time // kept
	// open: a session is under way. left are the units that it has not tried yet, in order; kept are the events
	// that came in since it started; tried is when the last cycle was.
	open  bool            // kept
	left  []*queue.Unit   // kept
	kept  []message.Event // kept
	tried record.Time     // kept
}

// Take handles an event, or keeps it until the session ends.
func (s *Sessions) Take(ev message.Event) {
	tick, isTick := ev.(message.Tick)
	if isTick {
		s.clock = max(s.clock, tick.Now)
	}
	if _, is := ev.(message.Cycle); is {
		s.tried = s.clock
		s.handle(ev)
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
	s.handle(ev)
	switch _, synced := ev.(message.Synced); {
	case synced:
		s.due = s.clock
	case isTick && s.clock >= s.due && *s.synced && !s.queue.Waiting():
		s.due += s.period * ((s.clock-s.due)/s.period + 1) // sessions without a unit
	}
}

// end lets in what was kept. The units that were not tried wait for the next session like those that were.
func (s *Sessions) end() {
	kept := s.kept
	s.open, s.left, s.kept = false, nil, nil
	s.due = s.clock + s.period
	for _, ev := range kept {
		s.handle(ev)
	}
}

// Ready reports whether a session is open or may start.
func (s *Sessions) Ready() bool { return s.open || s.clock >= s.due && s.queue.Waiting() }

// Next starts a session if none is open, and takes out its next unit that still waits to be tried: its own
// decisions may have changed that.
func (s *Sessions) Next() (*queue.Unit, bool) {
	if !s.open {
		s.due = s.clock + s.period // whatever goes wrong, the next one is not at once
		s.left = s.queue.ActivateAll()
		s.open = true
	}
	for len(s.left) > 0 {
		u := s.left[0]
		s.left[0], s.left = nil, s.left[1:]
		if s.queue.Take(u) {
			return u, true
		}
	}
	return nil, false
}

// Wakes reports whether units wait to be woken: a session tries every unit.
func (s *Sessions) Wakes() bool { return false }

// Wake is when the next session may start, if units wait.
func (s *Sessions) Wake(at record.Time) record.Time {
	if s.open {
		return 0
	}
	if s.due > s.clock && s.queue.Waiting() {
		return deadline.First(at, s.due)
	}
	return at
}

// Open reports whether a session is under way.
func (s *Sessions) Open() bool { return s.open }

// State returns the facts.
func (s *Sessions) State(index func(*queue.Unit) int) *state.Session {
	st := &state.Session{Clock: s.clock, Due: s.due, Tried: s.tried, Open: s.open, Kept: slices.Clone(s.kept)}
	for _, u := range s.left {
		st.Left = append(st.Left, index(u))
	}
	return st
}

// Restore goes on from facts.
func (s *Sessions) Restore(st *state.Session, units []*queue.Unit) error {
	if err := mustBe(true, st); err != nil {
		return err
	}
	s.clock, s.due, s.tried, s.open, s.kept = st.Clock, st.Due, st.Tried, st.Open, slices.Clone(st.Kept)
	s.left = nil
	for _, i := range st.Left {
		if i < 0 {
			s.left = append(s.left, &queue.Unit{}) // it is gone, and is passed over
		} else {
			s.left = append(s.left, units[i])
		}
	}
	return nil
}
