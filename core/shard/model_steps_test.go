// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"fmt"
	"slices"
)

// step is one thing that can happen next.
type step struct {
	name string
	do   func(*system)
}

// steps returns everything that can happen in a state. What two planners could do alike is there for both.
func (s *system) steps() (all []step) {
	add := func(do func(*system), format string, args ...any) {
		all = append(all, step{fmt.Sprintf(format, args...), do})
	}
	_, ruled := s.active()
	for i := range s.of {
		o := Ordinal(i)
		switch in := &s.of[i]; {
		case !in.alive:
		case in.arbiter:
			s.arbiterSteps(o, add)
		default:
			s.plannerSteps(o, add)
			if !ruled {
				add(func(s *system) { s.promote(o) }, "promote %d", o)
			}
		}
	}
	s.networkSteps(add)
	return all
}

type addStep func(do func(*system), format string, args ...any)

func (s *system) arbiterSteps(o Ordinal, add addStep) {
	a := &s.of[o]
	for p := range Ordinal(instances) {
		if !s.follower(p, o) {
			continue
		}
		for u := range modelUnits {
			unit := int8(u)
			if s.lendable(o, p, unit) {
				add(func(s *system) {
					s.touched |= 1 << unit
					session := s.of[o].sessions.Current(p)
					s.of[o].loans.Lend(Loan{Unit: unitName(unit), Pods: len(modelUnits[unit]), To: p, Session: session})
					s.of[p].has |= 1 << unit
				}, "%d lends u%d to %d", o, unit, p)
			}
		}
		if n := len(s.of[p].log); n < len(a.log) {
			replicate := func(acked bool) func(*system) {
				return func(s *system) {
					s.of[p].log = append(s.of[p].log, s.of[o].log[n])
					if acked {
						s.of[o].log2.Acked(p, Position(n+1))
					} else {
						s.faults--
					}
				}
			}
			add(replicate(true), "%d gets entry %d of %d", p, n+1, o)
			if s.faults > 0 {
				add(replicate(false), "%d gets entry %d of %d, whose ack is lost", p, n+1, o)
			}
		}
		if s.faults > 0 && a.sessions.Current(p) != 0 {
			add(func(s *system) {
				s.of[o].sessions.Close(p)
				s.of[o].loans.Reclaim(p)
				s.of[o].log2.Unfollow(p)
				s.faults--
			}, "%d expels %d", o, p)
		}
	}
	if !a.leased {
		return // what it decides is never sent
	}
	for i, e := range a.log {
		at := Position(i + 1)
		if e.unit >= 0 && a.sent&(1<<at) == 0 && at <= a.log2.Sendable() {
			add(func(s *system) {
				s.of[o].sent |= 1 << at
				for i, pod := range modelUnits[e.unit] {
					s.binds = append(s.binds, bind{pod, e.on[i]})
				}
			}, "%d sends the binds of entry %d", o, at)
		}
	}
	if s.deaths > 0 {
		add(func(s *system) { s.of[o].alive = false; s.deaths-- }, "%d dies", o)
		add(func(s *system) { s.of[o].leased = false; s.deaths-- }, "%d loses the lease and goes on", o)
	}
}

// lendable reports whether an arbiter can lend a unit to a planner. Of choices that are alike it permits one: the
// single pods are lent first in their order, and the first loan of all goes to the first planner.
func (s *system) lendable(arbiter, p Ordinal, unit int8) bool {
	a := &s.of[arbiter]
	_, lent := a.loans.Of(unitName(unit))
	if lent || decided(a.log, unit) || a.sessions.Current(p) != s.of[p].session {
		return false
	}
	lower := uint8(1)<<unit - 1
	if unit < 3 && s.touched&(1<<unit) == 0 && s.touched&lower != lower {
		return false
	}
	alike := s.touched == 0 && len(s.of[1].log) == len(s.of[2].log) && a.log2.acked[1] == a.log2.acked[2] &&
		arbiter == 0 && s.follower(1, 0) && s.follower(2, 0) && a.sessions.Current(1) != 0 && a.sessions.Current(2) != 0 &&
		s.of[1].session+1 == s.of[2].session
	return !alike || p == 1
}

// alikeNodes reports whether no pod was ever proposed for a node, so that the nodes are alike.
func (s *system) alikeNodes() bool {
	for i := range s.of {
		if s.of[i].seq > 0 || used(s.of[i].log) != [nodes]int{} {
			return false
		}
	}
	return len(s.wire) == 0
}

func (s *system) plannerSteps(o Ordinal, add addStep) {
	p := &s.of[o]
	if p.open != nil && s.faults > 0 && !slices.Contains(s.wire, *p.open) {
		add(func(s *system) { s.wire = append(s.wire, *s.of[o].open); s.faults-- }, "%d sends its proposal again", o)
	}
	for u := range modelUnits {
		if unit := int8(u); p.has&(1<<unit) != 0 && p.open == nil {
			for _, on := range placements(p.log, unit) {
				if on[0] != 0 && s.alikeNodes() {
					continue // the first placement is on the first node
				}
				add(func(s *system) {
					p := &s.of[o]
					p.seq++
					p.open = &proposal{p.follows, p.session, p.seq, unit, on, o}
					s.wire = append(s.wire, *p.open)
				}, "%d proposes u%d on %v", o, unit, on)
			}
		}
	}
	if a, ruled := s.active(); ruled && (!s.follower(o, a) || s.of[a].sessions.Current(o) != p.session) {
		add(func(s *system) { s.join(o, a) }, "%d joins %d", o, a)
	}
}

func (s *system) networkSteps(add addStep) {
	for i, p := range s.wire {
		for a := range Ordinal(instances) {
			if s.of[a].alive && s.of[a].arbiter {
				deliver := func(lost bool) func(*system) {
					return func(s *system) {
						s.wire = slices.Delete(s.wire, i, i+1)
						s.deliver(a, p, lost)
					}
				}
				add(deliver(false), "%d gets %v", a, p)
				if s.faults > 0 {
					add(deliver(true), "%d gets %v, whose verdict is lost", a, p)
					add(func(s *system) { s.deliver(a, p, true); s.faults-- }, "%d gets %v, which is repeated", a, p)
				}
			}
		}
		if s.faults > 0 {
			add(func(s *system) { s.wire = slices.Delete(s.wire, i, i+1); s.faults-- }, "%v is lost", p)
		}
	}
	for i, b := range s.binds {
		add(func(s *system) {
			s.binds = slices.Delete(s.binds, i, i+1)
			s.apply(b)
		}, "the API server gets %v", b)
	}
}

// apply is the API server: it checks that the pod has no node, and nothing about capacity.
func (s *system) apply(b bind) {
	if s.bound[b.pod] == noNode {
		s.bound[b.pod] = b.node
	}
}

// deliver is an arbiter that gets a proposal, and the planner that gets the verdict unless it is lost.
func (s *system) deliver(to Ordinal, p proposal, lost bool) {
	a := &s.of[to]
	admission, verdict := a.sessions.Arrived(p.from, p.epoch, p.session, p.seq)
	switch admission {
	case Admit:
		verdict = a.check(p)
		a.sessions.Answered(p.from, verdict)
	case Repeat:
	default:
		return // the planner learns that its session has ended when it joins anew
	}
	if lost {
		s.faults = max(s.faults-1, 0)
		return
	}
	planner := &s.of[p.from]
	if planner.open != nil && *planner.open == p {
		planner.open = nil
		planner.has &^= 1 << p.unit
	}
}

// check decides a proposal on the arbiter's ledger. A refused one is decided at once.
func (a *instance) check(p proposal) Verdict {
	loan, lent := a.loans.Of(unitName(p.unit))
	switch {
	case !lent || loan.Session != p.session || decided(a.log, p.unit):
		return Gone
	case slices.Contains(placements(a.log, p.unit), p.on):
		a.take(p.unit, p.on)
		return Taken
	}
	a.loans.Refused(Unit{ID: unitName(p.unit), Pods: len(modelUnits[p.unit])})
	if fit := placements(a.log, p.unit); len(fit) > 0 {
		a.take(p.unit, fit[0])
		return Refused
	}
	a.loans.Gone(unitName(p.unit)) // it waits at the arbiter
	return Refused
}

// wrong returns the rule that a state breaks; "" for none.
func (s *system) wrong() string {
	for i := range s.of {
		if in := &s.of[i]; in.arbiter && in.log2.Waived() > 0 {
			return ""
		}
	}
	var taken [nodes]int
	for _, node := range s.bound {
		if node != noNode {
			taken[node]++
		}
	}
	for node, n := range taken {
		if n > slots {
			return fmt.Sprintf("M1: node %d has %d pods", node, n)
		}
	}
	a, ruled := s.active()
	if !ruled {
		return ""
	}
	in := &s.of[a]
	planned := [modelPods]int8{noNode, noNode, noNode, noNode, noNode}
	for _, e := range in.log {
		if e.unit < 0 {
			continue
		}
		for i, pod := range modelUnits[e.unit] {
			if planned[pod] != noNode {
				return fmt.Sprintf("M2: pod %d is decided twice", pod)
			}
			planned[pod] = e.on[i]
		}
	}
	for node, n := range used(in.log) {
		if n > slots {
			return fmt.Sprintf("M1: the ledger gives node %d to %d pods", node, n)
		}
	}
	for pod, node := range s.bound {
		if node != noNode && planned[pod] != node {
			return fmt.Sprintf("M12: pod %d is on node %d, of which the arbiter does not know", pod, node)
		}
	}
	for _, b := range s.binds {
		if planned[b.pod] != b.node {
			return fmt.Sprintf("M12: the arbiter does not know of a bind of pod %d to node %d under way", b.pod, b.node)
		}
	}
	for o := range Ordinal(instances) {
		if p := &s.of[o]; s.follower(o, a) && !slices.Equal(p.log, in.log[:min(len(p.log), len(in.log))]) {
			return fmt.Sprintf("M7: the log of %d is not a prefix of the arbiter's", o)
		}
	}
	return ""
}

// settle lets everything that was decided end: there is an arbiter, it sends what it may, and every bind arrives.
func (s *system) settle() {
	a, ruled := s.active()
	if !ruled {
		for i := range s.of {
			if s.of[i].alive && !s.of[i].arbiter {
				a, ruled = Ordinal(i), true
			}
		}
		if !ruled {
			return
		}
		s.promote(a)
	}
	for _, b := range s.binds {
		s.apply(b)
	}
	for _, e := range s.of[a].log {
		if e.unit >= 0 {
			for i, pod := range modelUnits[e.unit] {
				s.apply(bind{pod, e.on[i]})
			}
		}
	}
	s.binds = nil
}

// wrongAtRest returns the rule that a settled state breaks; "" for none.
func (s *system) wrongAtRest() string {
	if wrong := s.wrong(); wrong != "" {
		return wrong
	}
	if s.bound[3] == noNode != (s.bound[4] == noNode) {
		return fmt.Sprintf("M3: the gang is on %v", s.bound[3:])
	}
	return ""
}
