// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/deadline"
	"github.com/kumiki-scheduler/kumiki/core/preempt/victim"
	"github.com/kumiki-scheduler/kumiki/record"
)

// ManagerState is the facts of a Manager. Lists whose order means nothing are in no order before Sort.
type ManagerState struct {
	Synced    bool
	Evictions []EvictionState
	// Victims are the units for which a pod leaves, in the order in which that was decided.
	Victims     []VictimState
	Whole       []WholeState
	Pending     []PendingState
	Losses      []LossState
	Waited      []Owner
	Swept       record.Time
	Delays      []DelayState
	Barred      []record.PodRef
	Charges     []ChargeState
	Spent       []victim.Spent
	Placed      []cluster.UID // pods that got their placement by evictions
	Requested   []cluster.UID // pods whose eviction was requested
	Terminating []TerminatingState
	Deferred    []DeferredState
	Checks      []CheckState
}

// EvictionState is the eviction for one unit.
type EvictionState struct {
	Unit               Unit
	State              State
	Asked              record.PodRef
	Decision           uint64
	Draw               uint64
	Node               string
	Owner              Owner
	Left               map[cluster.UID]uint8 // victim -> how it leaves
	Order              []cluster.UID
	From               []string
	Evicted            int
	Failures           int
	Retry              record.Time
	ByUnits            bool
	WakeAt             record.Time
	Denominated, Taken bool
	GaveUp             int
	Told               []cluster.UID
	Spared             map[cluster.UID]string // pod -> its node
	Stalled            record.Time
}

// VictimState is a pod that leaves for units.
type VictimState struct {
	Pod cluster.UID
	For []Unit
}

// WholeState is the eviction of a gang that goes whole.
type WholeState struct {
	Gang     cluster.GangKey
	Asked    record.PodRef
	Node     string
	Decision uint64
	State    State
	Failures int
	Retry    record.Time
}

// PendingState is a pod of a gang whose eviction was requested.
type PendingState struct {
	Pod      cluster.UID
	Gang     cluster.GangKey
	By       string
	Decision uint64
}

// LossState is what became of the capacity that was freed for one owner.
type LossState struct {
	Owner  Owner
	Times  []record.Time
	Pauses int
	Until  record.Time
	Waits  []record.PodRef
	Wasted int
	Last   record.Time
}

// DelayState is since when a unit has been unschedulable, and when it is tried again.
type DelayState struct {
	Unit       Unit
	Since, End record.Time
}

// ChargeState is an eviction that budgets were charged with.
type ChargeState struct {
	Preemptor cluster.UID
	Decision  uint64
	Victims   []cluster.UID
}

// TerminatingState is since when a pod is seen to terminate.
type TerminatingState struct {
	Pod   cluster.UID
	Since record.Time
}

// DeferredState is a deferred wake-up.
type DeferredState struct {
	At  record.Time
	Pod record.PodRef
}

// CheckState is a check of victims.
type CheckState struct {
	At       record.Time
	Unit     Unit
	Decision uint64
	Refused  bool
}

// Facts returns the facts of the manager.
func (m *Manager) Facts() ManagerState {
	st := ManagerState{
		Synced: m.synced, Waited: slices.Clone(m.pauses.waited), Swept: m.pauses.swept,
		Barred: slices.Clone(m.budgets.barred), Spent: m.finder.Budgets.Spent(m.store.Snapshot()),
		Placed: keys(m.placedByPreemption), Requested: keys(m.evictionRequested),
	}
	for _, ev := range m.of { // order: Sort brings them in order
		st.Evictions = append(st.Evictions, ev.facts())
	}
	for uid, list := range m.byVictim { // order: Sort brings them in order
		leaving := VictimState{Pod: uid}
		for _, ev := range list {
			leaving.For = append(leaving.For, ev.unit)
		}
		st.Victims = append(st.Victims, leaving)
	}
	for _, w := range m.whole { // order: Sort brings them in order
		st.Whole = append(st.Whole, WholeState{
			w.gang, w.asked, w.node, w.decision, w.state, w.failures, w.retry.At(),
		})
	}
	for uid, p := range m.pending.of { // order: Sort brings them in order
		st.Pending = append(st.Pending, PendingState{uid, p.gang, p.by, p.decision})
	}
	for o, l := range m.pauses.of { // order: Sort brings them in order
		st.Losses = append(st.Losses, LossState{
			o, slices.Clone(l.times), l.pauses, l.until, slices.Clone(l.waits), l.wasted, l.last,
		})
	}
	for u, d := range m.delays.of { // order: Sort brings them in order
		st.Delays = append(st.Delays, DelayState{u, d.since, d.end})
	}
	for c, victims := range m.budgets.charges { // order: Sort brings them in order
		st.Charges = append(st.Charges, ChargeState{c.preemptor, c.decision, slices.Clone(victims)})
	}
	for uid, since := range m.terminating { // order: Sort brings them in order
		st.Terminating = append(st.Terminating, TerminatingState{uid, since})
	}
	for _, d := range m.deferred {
		st.Deferred = append(st.Deferred, DeferredState{d.at, d.pod})
	}
	for _, c := range m.checks {
		st.Checks = append(st.Checks, CheckState{c.at, c.unit, c.decision, c.refused})
	}
	return st
}

func (ev *Eviction) facts() EvictionState {
	st := EvictionState{
		Unit: ev.unit, State: ev.state, Asked: ev.asked, Decision: ev.decision, Draw: ev.draw, Node: ev.node,
		Owner: ev.owner, Order: slices.Clone(ev.order), From: keys(ev.from), Evicted: ev.evicted,
		Failures: ev.failures, Retry: ev.retry, ByUnits: ev.byUnits, WakeAt: ev.wakeAt, Denominated: ev.denominated,
		Taken: ev.taken, GaveUp: ev.gaveUp, Told: keys(ev.told), Spared: maps.Clone(ev.spared), Stalled: ev.stalled,
	}
	for uid, how := range ev.left { // order: a map is made of a map
		if st.Left == nil {
			st.Left = map[cluster.UID]uint8{}
		}
		st.Left[uid] = uint8(how)
	}
	return st
}

// keys returns the keys of a set, in no order.
func keys[K cmp.Ordered](set map[K]bool) (list []K) {
	for k := range set { // order: ManagerState.Sort brings them in order
		list = append(list, k)
	}
	return list
}

func setOf[K comparable](list []K) map[K]bool {
	set := map[K]bool{}
	for _, k := range list {
		set[k] = true
	}
	return set
}

// compare orders units.
func (u Unit) compare(other Unit) int {
	return cmp.Or(u.Gang.Compare(other.Gang), cmp.Compare(u.Pod, other.Pod))
}

func (o Owner) compare(other Owner) int {
	return cmp.Or(o.Gang.Compare(other.Gang), cmp.Compare(o.Controller, other.Controller),
		cmp.Compare(o.Pod, other.Pod))
}

// Sort brings what is in no order into one.
func (st *ManagerState) Sort() {
	for i := range st.Evictions {
		slices.Sort(st.Evictions[i].From)
		slices.Sort(st.Evictions[i].Told)
	}
	slices.SortFunc(st.Evictions, func(a, b EvictionState) int { return a.Unit.compare(b.Unit) })
	slices.SortFunc(st.Victims, func(a, b VictimState) int { return cmp.Compare(a.Pod, b.Pod) })
	slices.SortFunc(st.Whole, func(a, b WholeState) int { return a.Gang.Compare(b.Gang) })
	slices.SortFunc(st.Pending, func(a, b PendingState) int { return cmp.Compare(a.Pod, b.Pod) })
	slices.SortFunc(st.Losses, func(a, b LossState) int { return a.Owner.compare(b.Owner) })
	slices.SortFunc(st.Delays, func(a, b DelayState) int { return a.Unit.compare(b.Unit) })
	slices.SortFunc(st.Charges, func(a, b ChargeState) int {
		return cmp.Or(cmp.Compare(a.Preemptor, b.Preemptor), cmp.Compare(a.Decision, b.Decision))
	})
	slices.Sort(st.Placed)
	slices.Sort(st.Requested)
	slices.SortFunc(st.Terminating, func(a, b TerminatingState) int { return cmp.Compare(a.Pod, b.Pod) })
	victim.SortSpent(st.Spent)
}

// Restore gives a new manager the facts of another one. The cluster must be restored. It is an error if they
// contradict each other.
func (m *Manager) Restore(st ManagerState) error {
	m.synced, m.budgets.barred = st.Synced, slices.Clone(st.Barred)
	m.placedByPreemption, m.evictionRequested = setOf(st.Placed), setOf(st.Requested)
	m.finder.Budgets.Restore(m.store.Snapshot(), st.Spent)
	for i := range st.Evictions {
		m.restoreEviction(&st.Evictions[i])
	}
	for _, leaving := range st.Victims {
		for _, u := range leaving.For {
			ev := m.of[u]
			if ev == nil {
				return fmt.Errorf("restoring evictions: pod %s leaves for %v, for which no pod does", leaving.Pod, u)
			}
			m.byVictim[leaving.Pod] = append(m.byVictim[leaving.Pod], ev)
		}
	}
	for _, w := range st.Whole {
		whole := &wholeEviction{w.Gang, w.Asked, w.Node, w.Decision, w.State, w.Failures,
			deadline.Entry{Phase: phaseWhole}}
		m.whole[w.Gang] = whole
		m.deadlines.Set(&whole.retry, w.Retry)
	}
	for _, p := range st.Pending {
		m.pending.of[p.Pod] = pending{p.Gang, p.By, p.Decision}
		m.pending.count[p.Gang]++
	}
	m.restorePauses(st)
	for _, d := range st.Delays {
		m.delays.begin(d.Unit, d.Since)
		if d.End != 0 {
			m.delays.wait(d.Unit, d.End)
		}
	}
	for _, c := range st.Charges {
		m.budgets.charges[charge{c.Preemptor, c.Decision}] = slices.Clone(c.Victims)
	}
	for _, t := range st.Terminating {
		m.terminating[t.Pod] = t.Since
	}
	for _, d := range st.Deferred {
		m.deferred = append(m.deferred, deferredWakeup{d.At, d.Pod})
		m.deadlines.Set(&m.wakeDue, m.deferred[0].at)
	}
	for _, c := range st.Checks {
		check := victimCheck{c.At, c.Unit, c.Decision, c.Refused}
		if u, prof := m.waitsFor(check); u != nil && !c.Refused && prof.Preemption.VictimTimeout == 0 {
			return fmt.Errorf("restoring evictions: victims of %s are checked, and have no limit", u.Key) // without end
		}
		m.checks = append(m.checks, check)
		m.deadlines.Set(&m.checkDue, m.checks[0].at)
	}
	return nil
}

func (m *Manager) restoreEviction(st *EvictionState) {
	ev := &Eviction{
		unit: st.Unit, state: st.State, asked: st.Asked, decision: st.Decision, draw: st.Draw, node: st.Node,
		owner: st.Owner, order: slices.Clone(st.Order), evicted: st.Evicted, failures: st.Failures, retry: st.Retry,
		byUnits: st.ByUnits, wakeAt: st.WakeAt, denominated: st.Denominated, taken: st.Taken, stalled: st.Stalled,
		left: map[cluster.UID]leaving{}, from: setOf(st.From),
		stuck:    stuck{gaveUp: st.GaveUp, told: setOf(st.Told), spared: maps.Clone(st.Spared)},
		stallEnd: deadline.Entry{Phase: phaseStalls},
	}
	for uid, how := range st.Left { // order: a map is made of a map
		ev.left[uid] = leaving(how)
	}
	if ev.stalled != 0 {
		m.deadlines.Set(&ev.stallEnd, ev.stalled+m.stallTime)
	}
	m.of[ev.unit] = ev
	if ev.unit.isGang() {
		m.gangs++
	}
}

func (m *Manager) restorePauses(st ManagerState) {
	m.pauses.waited, m.pauses.swept = slices.Clone(st.Waited), st.Swept
	for _, l := range st.Losses {
		loss := &losses{
			times: slices.Clone(l.Times), pauses: l.Pauses, until: l.Until, waits: slices.Clone(l.Waits),
			wasted: l.Wasted, last: l.Last, end: deadline.Entry{Phase: phasePauses},
		}
		m.pauses.of[l.Owner] = loss
		if len(loss.waits) > 0 {
			m.deadlines.Set(&loss.end, loss.until)
		}
	}
}
