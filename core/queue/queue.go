// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Labels of moves other than those by plugin events (upstream: framework/events.go; Pop, Done, SetAside, Recall and
// TriedEarly are ours, for moves that upstream does not count).
const (
	scheduleAttemptFailure = "ScheduleAttemptFailure"
	backoffComplete        = "BackoffComplete"
	popFromBackoffQ        = "PopFromBackoffQ"
	popped                 = "Pop"
	done                   = "Done"
	setAside               = "SetAside"
	returned               = "Recall"
	triedEarly             = "TriedEarly"
	gangChanged            = "GangChanged"
	sessionStart           = "SessionStart"
)

var (
	podAdd    = plugin.Event{Resource: plugin.UnscheduledPod, Action: plugin.Add}.String()
	podUpdate = plugin.Event{Resource: plugin.TargetPod, Action: plugin.Update}.String()
	podDelete = plugin.Event{Resource: plugin.UnscheduledPod, Action: plugin.Delete}.String()
)

// Queue holds the units that wait.
type Queue struct {
	cfg      Config              // derived: given to New
	profiles map[string]*profile // derived: made of the configuration. Scheduler name -> profile
	now      record.Time         // kept
	seq      uint64              // kept; of the last arrival

	units map[cluster.UID]*Unit     // kept; pod -> its unit. Invariant: no unit is in state nowhere.
	gangs map[cluster.GangKey]*Unit // derived: the units of gangs. Gang -> its unit; only units that are in a gang
	apart apartUnits                // derived: the units of pods that declare a gang
	asks  []gangAsk                 // kept; Invariant: sorted by time.
	asked []*Unit                   // kept; see TakeAsked
	shut  []cluster.GangKey         // kept; see TakeShut

	holders [inFlight + 1]holder  // derived: fixed. State -> what holds the units in it; nil for nowhere
	ties    func(a, b *Unit) bool // derived: from the configuration. See before
	active  heap                  // derived: the units in this place, in order
	backoff heap                  // derived: as active. After a rejection
	// rests are after a rejection that was not counted, see Rest; each is in its group, too.
	rests  heap // derived: as active
	errors heap // derived: as active. After an error
	aging  heap // derived: as active. All waiting units, oldest first

	// groups are in the order of their keys: hints are called in that order, also in a queue that was restored.
	groups   []*group              // derived: the waiting units by what rejected them
	groupOf  map[string]*group     // derived: the groups by key. See groupKey -> group
	aside    group                 // derived: the units in this place. The units set aside
	interest map[plugin.Event]bool // derived: from the profiles
	// gateWakes: plugin -> events that may open its gate, over all profiles.
	gateWakes map[string][]plugin.Event // derived: from the profiles

	flight    flight      // derived: empty between attempts
	watched   []*Unit     // derived: from the units; see Watch. In the order in which they were given
	nominated nominations // kept

	entities plugin.EntityLess // derived: from the configuration; nil if its Less reads pods alone

	moves, spare []record.QueueMove // derived: empty after TakeMoves
	movers       []mover            // derived: reused memory
}

// note is the reason of a move, for the record.
type note struct{ event, hint, cause string }

// New returns an empty queue.
func New(cfg Config) *Queue {
	if cfg.Meter == nil {
		cfg.Meter = noMeter{}
	}
	q := &Queue{
		cfg:       cfg,
		profiles:  map[string]*profile{},
		units:     map[cluster.UID]*Unit{},
		gangs:     map[cluster.GangKey]*Unit{},
		apart:     apartUnits{},
		groupOf:   map[string]*group{},
		interest:  map[plugin.Event]bool{},
		gateWakes: map[string][]plugin.Event{},
		nominated: nominations{on: map[string][]*cluster.Pod{}, of: map[cluster.UID]nominatedNode{},
			follower: cfg.Nominator},
	}
	q.entities, _ = cfg.Less.(plugin.EntityLess)
	for name, p := range cfg.Profiles { // order: profiles are independent, and gateWakes is used as a set
		ready := newProfile(name, p)
		q.profiles[name] = ready
		for _, r := range ready.wakes {
			q.gateWakes[r.plugin] = append(q.gateWakes[r.plugin], r.Event)
		}
	}
	q.ties = firstComer
	if cfg.OldestFirst {
		q.ties = oldestPod
	}
	q.active.less = q.before
	q.errors.less = earlierEnd
	q.rests.less = earlierEnd
	q.backoff.less = earlierEnd
	if cfg.PopFromBackoff {
		q.backoff.less = func(a, b *Unit) bool {
			if a.BackoffUntil != b.BackoffUntil {
				return a.BackoffUntil < b.BackoffUntil
			}
			return q.before(a, b)
		}
	}
	q.aging.less = older
	q.holders = [...]holder{
		active: &q.active, backoff: &q.backoff, errorBackoff: &q.errors, waiting: listeners{q, &q.aging},
		resting: listeners{q, &q.rests}, aside: &q.aside, inFlight: &q.flight,
	}
	return q
}

// before reports whether a is ordered before b in the active queue: by QueueSort, surplus members of gangs last, then
// by ties: last arrival, or age.
func (q *Queue) before(a, b *Unit) bool {
	if q.cfg.Less != nil {
		if q.less(a, b) {
			return true
		}
		if q.less(b, a) {
			return false
		}
	}
	if a.extra != b.extra {
		return b.extra
	}
	return q.ties(a, b)
}

// less reports whether the configured order puts a before b.
func (q *Queue) less(a, b *Unit) bool {
	if q.entities != nil {
		return q.entities.EntityBefore(a.entity(), b.entity())
	}
	return q.cfg.Less.Before(a.rank, b.rank)
}

// Before reports whether a unit is ordered before another in the active queue.
func (q *Queue) Before(a, b *Unit) bool { return q.before(a, b) }

func firstComer(a, b *Unit) bool { return a.turn < b.turn }

// oldestPod reports whether a is before b by their oldest pods, then by name.
func oldestPod(a, b *Unit) bool {
	if a.oldest != b.oldest {
		return a.oldest < b.oldest
	}
	if a.Key != b.Key {
		return a.Key < b.Key
	}
	return a.turn < b.turn
}

func earlierEnd(a, b *Unit) bool {
	if a.BackoffUntil != b.BackoffUntil {
		return a.BackoffUntil < b.BackoffUntil
	}
	return older(a, b)
}

// older reports whether a arrived before b; the sequence rises with the time.
func older(a, b *Unit) bool { return a.seq < b.seq }

// Add adds a pending pod of one of the profiles. A pod that is known already is updated.
func (q *Queue) Add(p *cluster.Pod) {
	if u := q.units[p.UID]; u != nil {
		q.Update(u.latest(p.UID), p)
		return
	}
	q.enter(p, podAdd, "the pod is new")
}

// enter adds an unknown pod: to its gang if that waits, or else as a unit of its own.
func (q *Queue) enter(p *cluster.Pod, event, cause string) {
	if u := q.gangs[q.gangOf(p)]; u != nil {
		q.join(u, p, note{event: event, cause: "a pod came to the gang"})
		return
	}
	u := q.newUnit(p)
	q.toActive(u, note{event: event, cause: cause})
	// A nomination counts for a gated pod also. Capacity that was freed for a gang before a restart thus stays reserved
	// while the other pods of the gang are listed.
	q.NominateAsStatus(p)
}

func (q *Queue) newUnit(p *cluster.Pod) *Unit {
	prof := q.profiles[p.Spec.SchedulerName]
	if prof == nil {
		panic(fmt.Sprintf("queue: pod %s (%s) is of profile %q, which there is not", p.Key(), p.UID,
			p.Spec.SchedulerName))
	}
	u := &Unit{Key: p.Key(), Members: []*cluster.Pod{p}, profile: prof, sub: record.Gone, First: q.now, Joined: q.now}
	if u.Gang = q.gangOf(p); u.Gang != (cluster.GangKey{}) {
		u.Key = u.Gang.String()
	}
	q.changed(u)
	q.arrive(u)
	return u
}

// Decided returns the unit of a pod that another instance has decided, as Done leaves one.
func (q *Queue) Decided(p *cluster.Pod) *Unit { return q.newUnit(p) }

// arrive starts the unit's time in the queue.
func (q *Queue) arrive(u *Unit) {
	u.Since = q.now
	q.seq++
	u.seq = q.seq
	// A gang keeps its turn however often it is rejected: otherwise single pods that arrived later could always take
	// the capacity before it does (rule R13).
	if u.turn == 0 || u.Gang == (cluster.GangKey{}) {
		u.turn = q.seq
	}
}

// Update records a new version of a pod. An unknown pod is added. In flight the change is kept until the unit
// returns. A waiting unit moves if the change wakes it, as any event would. Equal versions change nothing.
func (q *Queue) Update(old, p *cluster.Pod) {
	u := q.units[p.UID]
	switch {
	case old != nil && old.ResourceVersion == p.ResourceVersion && p.ResourceVersion != "":
		return
	case u == nil:
		q.enter(p, podAdd, "the pod was not known")
		return
	}
	if old == nil {
		old = u.latest(p.UID)
	}
	for _, ev := range plugin.PodChanges(old, p) {
		q.cfg.Meter.Happened(ev)
	}
	if u.at != inFlight && q.gangOf(p) != u.Gang {
		q.leave(u, p.UID, note{event: podUpdate, cause: "the pod says that it is in another gang"})
		q.Add(p)
		return
	}
	if u.at == inFlight {
		u.seen(p)
		for _, ev := range plugin.PodChanges(old, p) {
			q.flight.happened(plugin.Change{Event: ev, OldPod: old, NewPod: p})
		}
		return
	}
	q.replace(u, p)
	q.renominate(old, p)
	if u.Gang != (cluster.GangKey{}) && u.at != aside && concernsScheduling(old, p) {
		q.regrouped(u, note{event: podUpdate, cause: "a pod of the gang has changed"})
		return
	}
	switch u.at {
	case waiting, resting:
		q.updateWaiting(u, old, p)
	case aside:
		if concernsScheduling(old, p) {
			u.Aside = ""
			q.requeueAs(u, afterBackoff, note{event: podUpdate, cause: "the pod that was set aside has changed"})
		}
	}
}

// updateWaiting evaluates each change of a waiting unit's own pod until one wakes the unit.
func (q *Queue) updateWaiting(u *Unit, old, p *cluster.Pod) {
	for _, ev := range plugin.PodChanges(old, p) {
		v := q.judge(u.group, p, plugin.Change{Event: ev, OldPod: old, NewPod: p})
		if v.how == stay {
			continue
		}
		q.requeueAs(u, v.how, v.note(ev.String()))
		if !u.receivesEvents() {
			return
		}
	}
	if u.Gate != "" {
		q.explainGate(u)
	}
}

// explainGate updates the reason for which a gate holds a unit.
func (q *Queue) explainGate(u *Unit) {
	if u.Gang != (cluster.GangKey{}) {
		q.regrouped(u, note{event: gangChanged, cause: "its gates are asked again"})
		return
	}
	for _, g := range u.profile.gates {
		if g.Name() != u.Gate {
			continue
		}
		if reason, ok := g.Gated(q.cfg.State, u.Pod()); !ok {
			u.GateReason = reason
		}
	}
}

// Delete removes a pod and its nomination. A unit in flight stays until Done or Requeue, which then removes it.
func (q *Queue) Delete(p *cluster.Pod) {
	q.Unnominate(p.UID)
	u := q.units[p.UID]
	switch {
	case u == nil:
	case u.at == inFlight:
		u.lost(p.UID)
	default:
		q.leave(u, p.UID, note{event: podDelete, cause: "the pod was deleted or bound"})
	}
}

// Ready reports whether Pop would return a unit.
func (q *Queue) Ready() bool {
	return q.active.len() > 0 || q.cfg.PopFromBackoff && q.backoff.len() > 0
}

// Happened handles an event: it wakes the units that the change may help, and records the change for units in flight.
// These see it whatever their priority, as in upstream; OnlyUpTo applies to waiting units only.
func (q *Queue) Happened(ch plugin.Change) {
	q.cfg.Meter.Happened(ch.Event)
	if !q.interesting(ch.Event) {
		return
	}
	movers := q.movers[:0]
	for _, g := range q.groups {
		if g.n > 0 && g.of(ch.Event).wakes() {
			movers = q.judgeGroup(g, ch, movers)
		}
	}
	q.move(movers, ch)
	q.flight.happened(ch)
	q.test(ch)
}

// Activate makes waiting units active whatever their backoff; the gates still apply. A unit in flight skips waiting
// when it returns, but not its backoff; so does a watched one. Unknown pods and units that are set aside are ignored.
func (q *Queue) Activate(pods []record.PodRef) {
	n := note{event: plugin.ForceActivate.Label, cause: "asked for"}
	for _, ref := range pods {
		u := q.units[cluster.UID(ref.UID)]
		if u == nil {
			q.test(plugin.Change{Event: plugin.ForceActivate, NewPod: &cluster.Pod{UID: cluster.UID(ref.UID)}})
			continue
		}
		switch u.at {
		case waiting, resting:
			q.toActive(u, n)
		case backoff, errorBackoff:
			q.fromBackoff(u, n)
		case inFlight:
			q.flight.happened(plugin.Change{Event: plugin.ForceActivate, NewPod: u.latest(cluster.UID(ref.UID))})
		}
	}
}

// TakeMoves returns the moves since the last call; the slice is valid until the next call.
func (q *Queue) TakeMoves() []record.QueueMove {
	taken := q.moves
	q.moves, q.spare = q.spare[:0], taken
	return taken
}

// Counts returns the number of units in each sub-queue.
func (q *Queue) Counts() map[record.SubQueue]int {
	gated := 0
	for _, g := range q.groups {
		if g.gate != "" {
			gated += g.n
		}
	}
	return map[record.SubQueue]int{
		record.Active:        q.active.len(),
		record.Backoff:       q.backoff.len() + q.rests.len() + q.errors.len(),
		record.Unschedulable: q.aging.len() - gated + q.aside.n,
		record.Gated:         gated,
		record.InFlight:      q.flight.units,
	}
}

// Lookup returns the unit of a pod and its sub-queue.
func (q *Queue) Lookup(uid cluster.UID) (*Unit, record.SubQueue, bool) {
	u := q.units[uid]
	if u == nil {
		return nil, record.Gone, false
	}
	return u, u.shown(), true
}

// Each visits the units of a sub-queue: active and backing off in the order in which they would be popped, units that
// back off after an error last; the others in the order of their last arrival, units in flight in the order of their
// Pop.
func (q *Queue) Each(sub record.SubQueue, visit func(*Unit)) {
	var units []*Unit
	list := func(u *Unit) {
		if u.at != resting {
			units = append(units, u)
		}
	}
	switch sub {
	case record.Active:
		units = sorted(q.active.units, q.active.less)
	case record.Backoff:
		for _, h := range []*heap{&q.backoff, &q.rests, &q.errors} {
			units = append(units, sorted(h.units, h.less)...)
		}
	case record.Unschedulable, record.Gated:
		for _, g := range q.groups {
			if (g.gate != "") == (sub == record.Gated) {
				g.each(list)
			}
		}
		if sub == record.Unschedulable {
			q.aside.each(list)
		}
		units = sorted(units, older)
	case record.InFlight:
		units = q.flight.inOrder()
	}
	for _, u := range units {
		visit(u)
	}
}

func sorted(units []*Unit, less func(a, b *Unit) bool) []*Unit {
	units = slices.Clone(units)
	slices.SortFunc(units, func(a, b *Unit) int {
		if less(a, b) {
			return -1
		}
		return 1
	})
	return units
}

// InFlightEvents returns the length of the in-flight list: one for each unit in flight and one for each event kept
// for them. It is 0 when nothing is in flight.
func (q *Queue) InFlightEvents() int { return q.flight.entries }
