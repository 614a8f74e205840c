// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"hash/fnv"
	"time"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// The sizes of a turn, as in the production loop (kube/loop.go).
const (
	turnBatch    = 512
	decidedAhead = 2048
)

// Tally is what was counted for a scheduler.
type Tally struct {
	Name string `json:"name"`
	// Attempts counts tried placements, Placed the decisions for a node, Rejected those without one.
	Attempts int `json:"attempts"`
	Placed   int `json:"placed"`
	Rejected int `json:"rejected"`
	// Binds counts pods that it bound. Of its other binds: Conflicts met a pod that is bound elsewhere, Failed had no
	// effect, Unknown lost their answer, Vanished met no such pod.
	Binds     int `json:"binds"`
	Conflicts int `json:"conflicts"`
	Failed    int `json:"failedBinds"`
	Unknown   int `json:"unknownBinds"`
	Vanished  int `json:"vanishedPods"`
	// Overcommits counts binds to a node that had no capacity for the pod, Turned the pods that the kubelet rejected.
	Overcommits int `json:"overcommits"`
	Turned      int `json:"kubeletRejections"`
	// Victims counts requested evictions, Wasted those that did not help.
	Victims int `json:"evictions"`
	Wasted  int `json:"wastedEvictions"`
	// Unsupported counts decisions that need devices, which are not simulated; Troubles what the scheduler reported as
	// unexpected.
	Unsupported int `json:"unsupported"`
	Troubles    int `json:"troubles"`
	// Busy is the virtual time that it spent deciding.
	Busy time.Duration `json:"busyNanoseconds"`
}

// delivery is an event on its way to a scheduler.
type delivery struct {
	at time.Duration
	ev engine.Event
}

// scheduler is one scheduler of a World, with its watch and its calls.
type scheduler struct {
	Scheduler
	w      *World
	index  int
	engine Stepper
	// watch holds what it has not seen yet. Invariant: the times never decrease.
	watch       fifo[delivery]
	answers     fifo[engine.Event] // the outcomes of its calls
	sights      uint64             // number of deliveries
	frozenUntil time.Duration
	failsUntil  time.Duration
	// busyUntil is the end of its last decision.
	busyUntil  time.Duration
	wake       time.Duration // as it asked
	unanswered int           // binds, writes and evictions
	// answerAfter is the delay of the answers to the call that the API server handles at the moment.
	answerAfter time.Duration
	// writes are its binds and evictions, patches the rest of its calls.
	writes, patches calls
	tally           *Tally
	dead            bool // it was killed
}

func newScheduler(w *World, index int, s Scheduler) *scheduler {
	out := &scheduler{Scheduler: s, w: w, index: index, engine: s.Make(), tally: &Tally{Name: s.Name}}
	out.writes = calls{s: out, limit: w.setup.Model.InFlight}
	out.patches = calls{s: out, limit: w.setup.Model.InFlight}
	return out
}

// wants reports whether a scheduler is to see a version of a pod.
func (s *scheduler) wants(p *cluster.Pod) bool {
	if p.NodeName != "" || s.Copies < 2 {
		return true
	}
	h := fnv.New64a()
	if p.Gang != nil {
		h.Write([]byte(p.Gang.Key.String())) // members stay together
	} else {
		h.Write([]byte(p.UID))
	}
	return h.Sum64()%uint64(s.Copies) == uint64(s.Copy)
}

// see puts an event on its watch.
func (s *scheduler) see(ev engine.Event) { s.seeAfter(s.w.setup.Model.Watch, ev) }

// seeAfter is see with another delay than that of the watch.
func (s *scheduler) seeAfter(delay Durations, ev engine.Event) {
	if s.dead {
		return
	}
	if s.w.setup.Ideal || !s.w.started {
		s.step(ev)
		return
	}
	s.sights++
	number := draws(&delay, s.w.now, s.sights)
	at := s.w.now + delay.draw(mix(s.w.setup.Seed, streamWatch, uint64(s.index), number))
	if last, is := s.watch.last(); is {
		at = max(at, last.at)
	}
	s.watch.push(delivery{at, ev})
}

// answer gives it the outcome of a call.
func (s *scheduler) answer(ev engine.Event) {
	s.unanswered--
	if s.dead {
		return
	}
	if s.w.setup.Ideal {
		s.step(ev)
		return
	}
	if s.answerAfter > 0 {
		s.w.After(s.answerAfter, func() { s.answers.push(ev) })
		return
	}
	s.answers.push(ev)
}

// nextWork returns when it has something to do at the earliest, its own wake aside, and false if there is nothing.
func (s *scheduler) nextWork() (time.Duration, bool) {
	if s.dead {
		return 0, false
	}
	if s.busyUntil > s.w.now {
		return s.busyUntil, true
	}
	if first, is := s.watch.first(); is {
		return max(first.at, s.frozenUntil), true
	}
	return 0, false
}

// turn feeds what has arrived, or runs one cycle, and reports whether there was something to do.
func (s *scheduler) turn() bool {
	if s.dead || s.busyUntil > s.w.now {
		return false
	}
	if s.feed() {
		return true
	}
	if !s.engine.Ready() || s.unanswered >= decidedAhead {
		return false
	}
	s.step(engine.Cycle{})
	return true
}

// feed gives the scheduler a bounded batch of what has arrived, and reports whether there was something.
func (s *scheduler) feed() (did bool) {
	for range turnBatch {
		if ev, is := s.answers.first(); is {
			s.answers.pop()
			s.step(ev)
			did = true
			continue
		}
		first, is := s.watch.first()
		if !is || first.at > s.w.now || s.frozenUntil > s.w.now {
			break
		}
		s.watch.pop()
		s.step(first.ev)
		did = true
	}
	return did
}

// tick gives the scheduler the time.
func (s *scheduler) tick() { s.step(engine.Tick{Now: s.w.record(s.w.now)}) }

// step gives the scheduler an event, and carries out the effects.
func (s *scheduler) step(ev engine.Event) {
	var acts []engine.Effect
	tried, places, path := 0, false, record.Path("")
	for _, f := range s.engine.Step(ev) {
		switch f := f.(type) {
		case engine.Wake:
			s.wake = time.Duration(f.At - s.w.setup.Epoch)
		case engine.Decided:
			tried, path = max(tried+1, s.decided(f.Decision)), f.Decision.Path
		case engine.Wasted:
			s.tally.Wasted += f.Pods
		case engine.Trouble:
			s.tally.Troubles++
		case engine.Bind, engine.Evict:
			acts, places = append(acts, f), true
		case engine.Recall, engine.Prepare, engine.Condition, engine.Nominate:
			acts = append(acts, f)
		}
	}
	if _, cycle := ev.(engine.Cycle); !cycle {
		s.act(acts)
		return
	}
	cost := time.Duration(max(tried, 1)) * s.w.setup.Model.decision(path)
	s.tally.Attempts += tried
	s.tally.Busy += cost
	if s.w.setup.Ideal {
		s.act(acts)
		s.w.pass(s.w.now + cost)
		return
	}
	s.busyUntil = s.w.now + cost
	if len(acts) > 0 {
		s.w.agenda.add(s.busyUntil, !places, func() { s.act(acts) })
	}
}

// decided counts a decision, and returns how many placements of a gang were tried for it.
func (s *scheduler) decided(d record.Decision) int {
	switch d.Verdict {
	case record.Placed:
		s.tally.Placed++
	default:
		s.tally.Rejected++
	}
	if d.Gang == nil {
		return 0
	}
	return d.Gang.Tried
}

// fifo is a queue.
type fifo[T any] struct {
	list []T
	head int
}

func (q *fifo[T]) push(x T) { q.list = append(q.list, x) }

// first returns the oldest entry, and false if there is none.
func (q *fifo[T]) first() (x T, is bool) {
	if q.head == len(q.list) {
		return x, false
	}
	return q.list[q.head], true
}

// last returns the newest entry, and false if there is none.
func (q *fifo[T]) last() (x T, is bool) {
	if q.head == len(q.list) {
		return x, false
	}
	return q.list[len(q.list)-1], true
}

func (q *fifo[T]) pop() {
	var none T
	q.list[q.head] = none
	q.head++
	if q.head == len(q.list) {
		q.list, q.head = q.list[:0], 0
	} else if q.head > 1024 && q.head > len(q.list)/2 {
		q.list = append(q.list[:0], q.list[q.head:]...)
		q.head = 0
	}
}
