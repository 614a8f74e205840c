// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"time"
)

// Limits say when a run ends.
type Limits struct {
	// Until is the time at which it ends at the latest.
	Until time.Duration
	// Done ends it; nil for never.
	Done func() bool
	// WhenQuiet ends it when nothing is due but retries: at once if no pod is pending, else after
	// QuietFor of that.
	WhenQuiet bool
}

// QuietFor is longer than a rejected pod waits until it is tried without an event.
const QuietFor = 11 * time.Minute

// Reason is why a run ended.
type Reason string

// The reasons.
const (
	AtLimit  Reason = "the time limit was reached"
	Finished Reason = "nothing is left to do"
	Stuck    Reason = "pods wait, and nothing is left that could change that"
	IsDone   Reason = "everything that is measured is done"
)

// Run lets time pass until a limit is reached.
func (w *World) Run(l Limits) Reason {
	for w.now < l.Until {
		if l.Done != nil && l.Done() {
			return IsDone
		}
		if at, is := w.agenda.next(); is && at <= w.now {
			w.agenda.pop().do()
			continue
		}
		if w.turns() {
			continue
		}
		if l.WhenQuiet && w.agenda.firm == 0 {
			if why := w.quiet(); why != "" {
				return why
			}
		}
		w.pass(w.next(l.Until))
	}
	return AtLimit
}

// quiet returns why a run in which nothing firm is due has ended, empty if it has not.
func (w *World) quiet() Reason {
	idle := len(w.agenda.list) == 0
	for _, s := range w.schedulers {
		_, works := s.nextWork()
		idle = idle && !works
	}
	switch long := w.now-w.changed > QuietFor; {
	case w.pending == 0 && (idle || long):
		return Finished
	case long:
		return Stuck
	}
	return ""
}

// turns lets each scheduler that is free do a bounded amount of work, and reports whether one did something.
func (w *World) turns() (did bool) {
	for _, s := range w.schedulers {
		if s.turn() {
			did = true
		}
	}
	return did
}

// next returns when something happens next.
func (w *World) next(until time.Duration) time.Duration {
	at := until
	if due, is := w.agenda.next(); is {
		at = min(at, due)
	}
	for _, s := range w.schedulers {
		if due, is := s.nextWork(); is {
			at = min(at, due)
		}
		if s.wake > w.now && !s.dead {
			at = min(at, s.wake)
		}
	}
	return at
}

// pass advances the time.
func (w *World) pass(to time.Duration) {
	if to < w.now {
		panic(fmt.Sprintf("sim: time goes from %v back to %v", w.now, to))
	}
	w.setup.Observer.Passing(w, to)
	w.now = to
	w.setup.Observer.Advanced(w)
	for _, s := range w.schedulers {
		if s.busyUntil <= w.now && !s.dead {
			s.tick()
		}
	}
}
