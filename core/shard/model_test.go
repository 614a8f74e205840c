// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/kumiki-scheduler/kumiki/record"
)

// The model: three instances, one of them the arbiter; two nodes of two slots; three pods and a gang of two, so that
// one pod does not fit. Each instance is what the protocol says with the types of this package in it. The network
// loses, repeats and reorders; the arbiter can be cut off from the lease or die at any step.
//
// What the model leaves out: evictions, devices, volumes, promises, and the timeout of AckWithin. The guarantee ends
// where the log counts a decision that was sent without a follower, and with it what the model checks.

const (
	instances = 3
	nodes     = 2
	slots     = 2
	modelPods = 5
	noNode    = int8(-1)
)

// modelUnits are the pods of each unit.
var modelUnits = [][]int8{{0}, {1}, {2}, {3, 4}}

// placement is the node of each pod of a unit.
type placement [2]int8

// modelEntry is an entry of the log: a promotion (unit -1) or a decision.
type modelEntry struct {
	epoch Epoch
	unit  int8
	on    placement
}

// proposal is one that a planner has made and that has no verdict yet.
type proposal struct {
	epoch   Epoch
	session Session
	seq     Sequence
	unit    int8
	on      placement
	from    Ordinal
}

// instance is the state of one process.
type instance struct {
	alive bool
	log   []modelEntry

	// of a planner
	follows Epoch // 0 for none
	session Session
	seq     Sequence
	has     uint8     // the units that are lent to it, as bits
	open    *proposal // that it has sent; nil for none

	// of an arbiter
	arbiter  bool
	leased   bool // it holds the lease
	epoch    Epoch
	log2     *Log
	sessions *Sessions
	loans    *Loans
	sent     uint64 // bit i is set if the binds of the entry at position i are sent
}

// bind is a request under way to the API server.
type bind struct{ pod, node int8 }

// system is one state of the model.
type system struct {
	of    [instances]instance
	wire  []proposal // proposals under way, in no order
	binds []bind     // in no order
	bound [modelPods]int8
	epoch Epoch
	// touched are the units that were lent, as bits. The others are alike, so one of them stands for all.
	touched uint8
	// The budgets bound how much goes wrong in one history.
	deaths, faults int
}

func newSystem() *system {
	s := &system{epoch: 1, deaths: 1, faults: 2}
	for i := range s.bound {
		s.bound[i] = noNode
	}
	for i := range s.of {
		s.of[i].alive = true
	}
	s.promote(0)
	for o := Ordinal(1); o < instances; o++ {
		s.join(o, 0)
	}
	return s
}

func (s *system) clone() *system {
	c := *s
	c.wire, c.binds = slices.Clone(s.wire), slices.Clone(s.binds)
	for i := range c.of {
		in := &c.of[i]
		in.log = slices.Clone(in.log)
		if in.open != nil {
			open := *in.open
			in.open = &open
		}
		if !in.arbiter {
			continue
		}
		log, sessions := *in.log2, *in.sessions
		log.origins, log.waiting = slices.Clone(log.origins), slices.Clone(log.waiting)
		for o := range instances {
			sessions.of[o].verdicts = slices.Clone(sessions.of[o].verdicts)
		}
		loans := Loans{of: map[string]*Loan{}, load: in.loans.load, refusals: maps.Clone(in.loans.refusals)}
		for unit, loan := range in.loans.of { // order: a copy
			l := *loan
			loans.of[unit] = &l
		}
		in.log2, in.sessions, in.loans = &log, &sessions, &loans
	}
	return &c
}

// key identifies a state; states with equal keys go on alike.
func (s *system) key() []byte {
	b := make([]byte, 0, 256)
	add := func(values ...int) {
		for _, v := range values {
			b = append(b, byte(v)) // every number of the model is small
		}
	}
	flag := func(is bool) int {
		if is {
			return 1
		}
		return 0
	}
	message := func(p proposal) {
		add(int(p.epoch), int(p.session), int(p.seq), int(p.unit), int(p.on[0]), int(p.on[1]), int(p.from))
	}
	wire, binds := slices.Clone(s.wire), slices.Clone(s.binds)
	slices.SortFunc(wire, proposal.compare)
	slices.SortFunc(binds, func(p, q bind) int { return int(p.pod)*4 + int(p.node) - int(q.pod)*4 - int(q.node) })
	add(len(wire), len(binds), int(s.epoch), s.deaths, s.faults, int(s.touched))
	for _, p := range wire {
		message(p)
	}
	for _, bind := range binds {
		add(int(bind.pod), int(bind.node))
	}
	for _, node := range s.bound {
		add(int(node))
	}
	for i := range s.of {
		in := &s.of[i]
		add(flag(in.alive), len(in.log), int(in.follows), int(in.session), int(in.seq), int(in.has), flag(in.open != nil))
		for _, e := range in.log {
			add(int(e.epoch), int(e.unit), int(e.on[0]), int(e.on[1]))
		}
		if in.open != nil {
			message(*in.open)
		}
		if !in.arbiter {
			continue
		}
		add(flag(in.leased), int(in.log2.sendable), int(in.log2.followers), int(in.log2.waived), int(in.sent))
		for o := range Ordinal(instances) {
			of := &in.sessions.of[o]
			add(int(in.log2.acked[o]), int(of.id), len(of.verdicts))
			for _, v := range of.verdicts {
				add(int(v))
			}
		}
		for u := range modelUnits {
			loan, _ := in.loans.Of(unitNames[u])
			add(int(loan.To), int(loan.Session))
		}
	}
	return b
}

func (p proposal) compare(q proposal) int {
	return cmp.Or(cmp.Compare(p.epoch, q.epoch), cmp.Compare(p.session, q.session), cmp.Compare(p.seq, q.seq))
}

var unitNames = []string{"u0", "u1", "u2", "gang"}

func unitName(u int8) string { return unitNames[u] }

// used returns the slots that the decisions of a log take on each node.
func used(log []modelEntry) (used [nodes]int) {
	for _, e := range log {
		if e.unit >= 0 {
			for i := range modelUnits[e.unit] {
				used[e.on[i]]++
			}
		}
	}
	return used
}

func decided(log []modelEntry, unit int8) bool {
	return slices.ContainsFunc(log, func(e modelEntry) bool { return e.unit == unit })
}

// placements returns the placements of a unit that fit what a log leaves.
func placements(log []modelEntry, unit int8) (fit []placement) {
	taken := used(log)
	for a := range int8(nodes) {
		if len(modelUnits[unit]) == 1 {
			if taken[a] < slots {
				fit = append(fit, placement{a, noNode})
			}
			continue
		}
		for b := range int8(nodes) {
			after := taken
			after[a]++
			after[b]++
			if after[a] <= slots && after[b] <= slots {
				fit = append(fit, placement{a, b})
			}
		}
	}
	return fit
}

// take appends a decision to the arbiter's log.
func (in *instance) take(unit int8, on placement) {
	in.log = append(in.log, modelEntry{in.epoch, unit, on})
	in.log2.Append(0, true)
	in.loans.Gone(unitName(unit))
}

// promote makes an instance the arbiter: it adopts the longest log that the living planners have, adds what the API
// server lists, and sends inherited binds again.
func (s *system) promote(o Ordinal) {
	in := &s.of[o]
	var claims []Claim
	for i := range s.of {
		if p := &s.of[i]; p.alive && !p.arbiter {
			claims = append(claims, Claim{fmt.Sprint(i), Position(len(p.log)), lastEpoch(p.log)})
		}
	}
	if longest, ok := Longest(claims, fmt.Sprint(o)); ok {
		var from int
		fmt.Sscan(longest.Member, &from)
		in.log = slices.Clone(s.of[from].log)
	}
	var origins []Origin
	for i, e := range in.log {
		if len(origins) == 0 || origins[len(origins)-1].Epoch != e.epoch {
			origins = append(origins, Origin{e.epoch, Position(i + 1)})
		}
	}
	in.arbiter, in.leased, in.epoch, in.follows, in.has, in.open = true, true, s.epoch, 0, 0, nil
	in.log2 = NewLog(AckOne, 100, s.epoch, origins, Position(len(in.log)))
	in.sessions, in.loans, in.sent = NewSessions(s.epoch, record.Second), &Loans{of: map[string]*Loan{}}, 0
	in.log = append(in.log, modelEntry{s.epoch, -1, placement{noNode, noNode}})
	in.log2.Append(0, false)
	s.epoch++
}

func lastEpoch(log []modelEntry) Epoch {
	if len(log) == 0 {
		return 0
	}
	return log[len(log)-1].epoch
}

// join connects a planner to an arbiter. It goes on from its log, or from a snapshot.
func (s *system) join(o, to Ordinal) {
	p, a := &s.of[o], &s.of[to]
	a.loans.Reclaim(o)
	if !a.log2.Follow(o, Position(len(p.log)), lastEpoch(p.log)) {
		p.log = slices.Clone(a.log)
		a.log2.Follow(o, Position(len(p.log)), lastEpoch(p.log))
	}
	p.follows, p.session, p.seq, p.has, p.open = a.epoch, a.sessions.Open(o, 0), 0, 0, nil
}

// active returns the arbiter that holds the lease.
func (s *system) active() (Ordinal, bool) {
	for i := range s.of {
		if s.of[i].alive && s.of[i].arbiter && s.of[i].leased {
			return Ordinal(i), true
		}
	}
	return 0, false
}

// follower reports whether a planner follows an arbiter.
func (s *system) follower(o, arbiter Ordinal) bool {
	p, a := &s.of[o], &s.of[arbiter]
	return o != arbiter && p.alive && !p.arbiter && p.follows == a.epoch
}
