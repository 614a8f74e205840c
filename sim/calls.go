// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"time"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// calls are calls of one kind to the API server, of which a bounded number is on the way.
type calls struct {
	s        *scheduler
	limit    int // 0 for none
	inFlight int
	sent     uint64
	recent   []time.Duration // when calls were sent in the last LoadWindow
	waiting  []call          // in the order in which they were requested
}

// call is one call; do runs when the API server has handled it.
type call struct {
	bind *engine.Bind // nil if it is none
	do   func()
}

// send sends a call as soon as the limit allows it.
func (c *calls) send(x call) {
	if c.s.dead {
		return
	}
	if c.s.w.setup.Ideal {
		x.do()
		return
	}
	if c.limit > 0 && c.inFlight >= c.limit {
		c.waiting = append(c.waiting, x)
		return
	}
	c.inFlight++
	c.sent++
	w := c.s.w
	number := c.sent
	if c == &c.s.patches {
		number |= 1 << 63
	}
	distribution := w.setup.Model.Call
	if c == &c.s.writes {
		distribution = w.setup.Model.call(c.inFlight, c.load())
	}
	latency := distribution.draw(mix(w.setup.Seed, streamCall, uint64(c.s.index), number))
	patch := c == &c.s.patches
	w.agenda.add(w.now+latency, patch, func() {
		delay := w.setup.Model.Answer.draw(mix(w.setup.Seed, streamAnswer, uint64(c.s.index), number))
		if patch || delay == 0 {
			c.inFlight--
			x.do()
			c.sendNext()
			return
		}
		c.s.answerAfter = delay
		x.do()
		c.s.answerAfter = 0
		w.After(delay, func() {
			c.inFlight--
			c.sendNext()
		})
	})
}

// load counts a call that is sent now, and returns how many were sent in the last LoadWindow.
func (c *calls) load() int {
	now := c.s.w.now
	for len(c.recent) > 0 && c.recent[0] <= now-LoadWindow {
		c.recent = c.recent[1:]
	}
	c.recent = append(c.recent, now)
	return len(c.recent)
}

// sendNext sends the call that waits longest.
func (c *calls) sendNext() {
	if len(c.waiting) > 0 {
		next := c.waiting[0]
		c.waiting = c.waiting[1:]
		c.send(next)
	}
}

// recall withdraws a bind that was not sent yet, and reports whether there was one.
func (c *calls) recall(r engine.Recall) bool {
	for i, x := range c.waiting {
		if x.bind != nil && x.bind.Pod.UID == r.Pod.UID && x.bind.Decision == r.Decision {
			c.waiting = append(c.waiting[:i:i], c.waiting[i+1:]...)
			return true
		}
	}
	return false
}

// act carries out effects.
func (s *scheduler) act(effects []engine.Effect) {
	if s.dead {
		return
	}
	for _, f := range effects {
		switch f := f.(type) {
		case engine.Bind:
			s.unanswered++
			s.writes.send(call{&f, func() { s.bind(f) }})
		case engine.Recall:
			if s.writes.recall(f) {
				s.answer(engine.BindDone{Pod: f.Pod, Node: f.Node, Outcome: engine.BindRecalled, Message: "recalled"})
			}
		case engine.Prepare:
			s.unanswered++
			s.prepare(f, 0)
		case engine.Evict:
			s.unanswered++
			s.evict(f)
		case engine.Condition, engine.Nominate:
			if !s.w.setup.Ideal {
				s.patches.send(call{do: func() { s.w.patch(f) }})
			}
		}
	}
}

// prepare carries out the writes before a bind one after the other, from a number on, and answers with the last one, or
// with the first that fails.
func (s *scheduler) prepare(p engine.Prepare, from int) {
	s.writes.send(call{do: func() {
		failed, simulated := "the API server is not available", true
		if s.w.now >= s.failsUntil {
			failed, simulated = s.w.write(p.Writes[from])
		}
		if !simulated {
			s.tally.Unsupported++
		}
		if failed == "" && from+1 < len(p.Writes) {
			s.prepare(p, from+1)
			return
		}
		s.answer(engine.WritesDone{Pod: p.Pod, Decision: p.Decision, Message: failed})
	}})
}

// bind is the API server's handling of a bind: it may be lost before or after it.
func (s *scheduler) bind(b engine.Bind) {
	w := s.w
	p := w.pods[cluster.UID(b.Pod.UID)]
	m := &w.setup.Model
	fate := 1.0
	if p != nil {
		p.binds++
		fate = unit(mix(w.setup.Seed, streamFate, p.Number, p.binds))
	}
	switch {
	case w.now < s.failsUntil || fate < m.Failed:
		s.tally.Failed++
		s.answer(engine.BindDone{Pod: b.Pod, Outcome: engine.BindFailed, Message: "the API server is not available"})
	case fate < m.Failed+m.Lost:
		s.tally.Unknown++
		if fate < m.Failed+m.Lost/2 {
			w.bind(b, s)
			w.showBind(p)
		}
		w.After(m.Reread, func() { s.answer(w.reread(b)) })
	default:
		outcome := w.bind(b, s)
		s.answer(outcome)
		if outcome.Outcome == engine.Bound {
			w.showBind(p)
		}
	}
}

// reread returns the outcome of a bind whose answer was lost, from what the API server has.
func (w *World) reread(b engine.Bind) engine.BindDone {
	out := engine.BindDone{Pod: b.Pod, Node: b.Node}
	p := w.pods[cluster.UID(b.Pod.UID)]
	switch {
	case p == nil:
		out.Outcome, out.Message = engine.PodVanished, "the pod is gone"
	case p.Record.NodeName == "":
		out.Outcome, out.Message = engine.BindFailed, "the answer was lost, and the pod is not bound"
	case p.Record.NodeName != b.Node:
		out.Outcome, out.Node, out.Message = engine.BoundElsewhere, p.Record.NodeName, "bound elsewhere"
	}
	return out
}

// evict deletes victims: the last one after all others.
func (s *scheduler) evict(e engine.Evict) {
	s.tally.Victims += len(e.Victims)
	for _, d := range e.Denominate {
		s.patches.send(call{do: func() { s.w.patch(engine.Nominate{Pod: d}) }})
	}
	kill := func(list []record.PodRef) {
		for _, v := range list {
			if p := s.w.pods[cluster.UID(v.UID)]; p != nil {
				s.w.Delete(p, Evicted)
			}
		}
	}
	finish := func() { s.answer(engine.EvictDone{For: e.For, Decision: e.Decision}) }
	victims := append([]record.PodRef(nil), e.Victims...)
	n := len(victims)
	if n < 2 {
		s.writes.send(call{do: func() { kill(victims); finish() }})
		return
	}
	s.writes.send(call{do: func() {
		kill(victims[:n-1])
		s.writes.send(call{do: func() { kill(victims[n-1:]); finish() }})
	}})
}
