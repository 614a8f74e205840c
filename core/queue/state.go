// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// State is the facts of a Queue between two attempts: no unit is in flight then, and no move, event or ended
// nomination is left to be taken.
type State struct {
	Now record.Time
	Seq uint64
	// Units are those of the queue, then Outside units that have left it and may return. Other lists name units by
	// their index here.
	Units   []UnitState
	Outside int
	// Asks are the scheduled checks of gates by time; a unit that is gone for good has the index -1.
	Asks []CheckState
	// Asked are the units that TakeAsked would return, Shut the gangs that TakeShut would.
	Asked []int
	Shut  []cluster.GangKey
	// Nominations are those of one node after those of another, in the order in which they began.
	Nominations []NominationState
}

// UnitState is one unit.
type UnitState struct {
	Place   string // that of the unit; empty for one outside
	Profile string
	Gang    cluster.GangKey
	Members []*cluster.Pod

	First, Joined, Since, FirstActive record.Time
	Attempts                          int
	UnschedulableCount, ErrorCount    int
	BackoffUntil, FlushedAt, Ask      record.Time
	Plugins, Pending, MemberGates     []string
	Gate, GateReason, Aside           string
	Watched                           WaitResult
	Seq, Turn                         uint64
	Priority                          int32 // of a gang
	Flushed, Urgent, Extra, Declared  bool
}

// CheckState is a scheduled check of a unit's gate.
type CheckState struct {
	At   record.Time
	Unit int
}

// NominationState is a pod's nominated node.
type NominationState struct {
	Pod      *cluster.Pod
	Node     string
	Priority int32
}

// placeNames names the states of units that a State can hold.
var placeNames = [...]string{
	active: "active", backoff: "backoff", errorBackoff: "errorBackoff", waiting: "waiting", resting: "resting",
	aside: "aside",
}

// State returns the facts of the queue, with those of units that have left it and may return. index returns where the
// State has a unit, -1 for one that it does not have. No unit may be in flight.
func (q *Queue) State(outside []*Unit) (st State, index func(*Unit) int) {
	if q.flight.entries+len(q.moves)+len(q.nominated.freed) > 0 {
		panic(cluster.Broken(fmt.Sprintf("State with %d entries in flight, %d moves, %d ended nominations",
			q.flight.entries, len(q.moves), len(q.nominated.freed))))
	}
	units := make([]*Unit, 0, len(q.units)+len(outside))
	add := func(u *Unit) {
		units = append(units, u)
		u.stateIndex = len(units)
	}
	for _, h := range []*heap{&q.active, &q.backoff, &q.errors} {
		for _, u := range h.units {
			add(u)
		}
	}
	for _, g := range q.groups {
		g.each(add)
	}
	q.aside.each(add)
	inQueue := len(units)
	for _, u := range outside {
		add(u)
	}
	for _, u := range q.asked {
		if u.at == nowhere {
			add(u)
		}
	}
	index = func(u *Unit) int {
		if at := u.stateIndex - 1; at >= 0 && at < len(units) && units[at] == u {
			return at
		}
		return -1
	}
	st = State{
		Now: q.now, Seq: q.seq, Outside: len(units) - inQueue, Shut: slices.Clone(q.shut),
		Units: make([]UnitState, len(units)),
	}
	for i, u := range units {
		st.Units[i] = u.facts()
	}
	for _, a := range q.asks {
		st.Asks = append(st.Asks, CheckState{a.at, index(a.unit)})
	}
	for _, u := range q.asked {
		st.Asked = append(st.Asked, index(u))
	}
	for _, node := range q.nominated.nodes {
		for _, p := range q.nominated.on[node] {
			st.Nominations = append(st.Nominations, NominationState{p, node, q.nominated.of[p.UID].priority})
		}
	}
	return st, index
}

func (u *Unit) facts() UnitState {
	if len(u.next)+len(u.gone)+len(u.joining) > 0 {
		panic(cluster.Broken("State with changes of unit " + u.Key + " that it has not adopted"))
	}
	return UnitState{
		Place: placeNames[u.at], Profile: u.profileName(), Gang: u.Gang, Members: slices.Clone(u.Members),
		First: u.First, Joined: u.Joined, Since: u.Since, FirstActive: u.FirstActive, Attempts: u.Attempts,
		UnschedulableCount: u.UnschedulableCount, ErrorCount: u.ErrorCount,
		BackoffUntil: u.BackoffUntil, FlushedAt: u.flushedAt, Ask: u.ask,
		Plugins: slices.Clone(u.Plugins), Pending: slices.Clone(u.Pending), MemberGates: slices.Clone(u.memberGates),
		Gate: u.Gate, GateReason: u.GateReason, Aside: u.Aside,
		Watched: WaitResult{slices.Clone(u.watched.Plugins), slices.Clone(u.watched.Helped)},
		Seq:     u.seq, Turn: u.turn, Priority: u.declaredRank(),
		Flushed: u.Flushed, Urgent: u.urgent, Extra: u.extra, Declared: u.declared,
	}
}

func (u *Unit) profileName() string {
	if u.profile == nil {
		return "" // of a member of a gang that was placed: it returns to its gang, and not as this unit
	}
	return u.profile.name
}

// declaredRank returns the priority of the unit of a gang; 0 for a pod by itself.
func (u *Unit) declaredRank() int32 {
	if u.Gang == (cluster.GangKey{}) || u.rank == nil {
		return 0
	}
	return u.rank.Spec.Priority
}

// Restore gives a new queue the facts of another one, whose units it returns by index. The state of the cluster that
// gates read must be restored. It is an error if the facts contradict each other.
func (q *Queue) Restore(st State) (units []*Unit, err error) {
	q.now, q.seq, q.shut = st.Now, st.Seq, slices.Clone(st.Shut)
	inQueue := len(st.Units) - st.Outside
	if st.Outside < 0 || inQueue < 0 {
		return nil, fmt.Errorf("restoring the queue: %d units of %d are outside", st.Outside, len(st.Units))
	}
	for i := range st.Units {
		u, err := q.restoreUnit(&st.Units[i], i < inQueue)
		if err != nil {
			return nil, err
		}
		units = append(units, u)
	}
	find := func(i int) (*Unit, error) {
		switch {
		case i == -1:
			return &Unit{}, nil // it never waits again
		case i < 0 || i >= len(units):
			return nil, fmt.Errorf("restoring the queue: unit %d of %d", i, len(units))
		}
		return units[i], nil
	}
	for _, a := range st.Asks {
		u, err := find(a.Unit)
		if err != nil {
			return nil, err
		}
		if n := len(q.asks); n > 0 && q.asks[n-1].at > a.At {
			return nil, fmt.Errorf("restoring the queue: a check at %d follows one at %d", a.At, q.asks[n-1].at)
		}
		q.asks = append(q.asks, gangAsk{a.At, u})
	}
	for _, i := range st.Asked {
		u, err := find(i)
		if err != nil || i < 0 {
			return nil, fmt.Errorf("restoring the queue: unit %d was asked: %w", i, err)
		}
		q.asked = append(q.asked, u)
	}
	for _, n := range st.Nominations {
		if _, twice := q.nominated.of[n.Pod.UID]; twice || n.Node == "" {
			return nil, fmt.Errorf("restoring the queue: pod %s is nominated twice or nowhere", n.Pod.Key())
		}
		q.nominated.add(n.Pod, n.Node, n.Priority)
	}
	q.nominated.made = q.nominated.made[:0]
	return units, nil
}

// restoreUnit makes a unit, and puts it into its place.
func (q *Queue) restoreUnit(st *UnitState, inQueue bool) (*Unit, error) {
	at := slices.Index(placeNames[:], st.Place)
	prof := q.profiles[st.Profile]
	switch {
	case len(st.Members) == 0 || slices.Contains(st.Members, nil):
		return nil, fmt.Errorf("restoring the queue: a unit of gang %q lacks a pod", st.Gang)
	case inQueue != (st.Place != ""), at < 0:
		return nil, fmt.Errorf("restoring the queue: unit of pod %s in place %q", st.Members[0].Key(), st.Place)
	case prof == nil && (inQueue || st.Profile != ""):
		return nil, fmt.Errorf("restoring the queue: pod %s is of profile %q, which there is not",
			st.Members[0].Key(), st.Profile)
	}
	u := &Unit{
		Key: st.Members[0].Key(), Gang: st.Gang, Members: slices.Clone(st.Members), First: st.First,
		Joined: st.Joined, Attempts: st.Attempts, UnschedulableCount: st.UnschedulableCount,
		ErrorCount: st.ErrorCount, Since: st.Since, FirstActive: st.FirstActive, BackoffUntil: st.BackoffUntil,
		Plugins: slices.Clone(st.Plugins), Pending: slices.Clone(st.Pending), Gate: st.Gate,
		GateReason: st.GateReason, memberGates: slices.Clone(st.MemberGates), Aside: st.Aside, Flushed: st.Flushed,
		flushedAt: st.FlushedAt, profile: prof, seq: st.Seq, turn: st.Turn, urgent: st.Urgent, extra: st.Extra,
		declared: st.Declared, ask: st.Ask, sub: record.Gone, rank: st.Members[0],
	}
	u.oldest = u.Members[0].Created
	if u.Gang != (cluster.GangKey{}) {
		u.Key = u.Gang.String()
		for _, p := range u.Members {
			u.oldest = min(u.oldest, p.Created)
		}
		rank, spec := *u.Members[0], *u.Members[0].Spec
		spec.Priority, rank.Spec = st.Priority, &spec
		u.rank = &rank
	}
	if !inQueue {
		if len(st.Watched.Plugins) > 0 {
			u.watched = WaitResult{slices.Clone(st.Watched.Plugins), slices.Clone(st.Watched.Helped)}
			q.watched = append(q.watched, u)
		}
		return u, nil
	}
	for _, p := range u.Members {
		if q.units[p.UID] != nil {
			return nil, fmt.Errorf("restoring the queue: pod %s waits twice", p.Key())
		}
	}
	if u.Gang != (cluster.GangKey{}) && q.gangs[u.Gang] != nil {
		return nil, fmt.Errorf("restoring the queue: gang %s waits twice", u.Gang)
	}
	u.at = place(at)
	if h, sorted := q.holders[u.at].(*heap); sorted && q.entities != nil {
		h.put(u) // a State has the units of a heap in its order, and answers of a plugin may contradict each other
	} else {
		q.holders[u.at].add(u)
	}
	q.know(u)
	u.sub = u.shown()
	return u, nil
}
