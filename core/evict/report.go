// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"cmp"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/preempt/units"
	"github.com/kumiki-scheduler/kumiki/record"
)

// RecordUnits records what a search by preemption units found.
func RecordUnits(d *record.Preemption, a *units.Answer) {
	d.Nodes, d.Tried, d.Violations = 0, a.Tried, a.Loss.Violations
	d.Unproved = a.Unproved
	for i := range a.Victims {
		v := &a.Victims[i]
		d.Units = append(d.Units, record.VictimUnit{
			Name: unitName(v.Gang, v.Pods[0]), Gang: v.Gang != (cluster.GangKey{}), Priority: v.Priority,
			Pods: len(v.Pods), Violations: v.Violations})
	}
	for i := range a.Considered {
		c := &a.Considered[i]
		d.Considered = append(d.Considered, record.VictimUnit{
			Name: unitName(c.Gang, c.Pod), Gang: c.Gang != (cluster.GangKey{}), Priority: c.Priority,
			Pods: c.Pods, Why: c.Why})
	}
	if len(a.Victims) > 0 {
		l := a.Loss
		if v := slices.MaxFunc(a.Victims, byPriority); v.Agreed { // it counted as the lowest
			l.Highest = v.Priority
		}
		d.Loss = &record.UnitsLoss{Violations: l.Violations, Highest: l.Highest, Units: l.Units, Pods: l.Pods}
		if l.Oldest < maxTime {
			d.Loss.Oldest = l.Oldest
		}
	}
	for _, p := range a.Stuck[:min(len(a.Stuck), units.MaxConsidered)] {
		d.Stuck = append(d.Stuck, p.Ref())
	}
	for _, p := range a.Terminating[:min(len(a.Terminating), units.MaxConsidered)] {
		d.Awaited = append(d.Awaited, p.Ref())
	}
}

func byPriority(a, b units.Victim) int { return cmp.Compare(a.Priority, b.Priority) }

func unitName(key cluster.GangKey, p *cluster.Pod) string {
	if key != (cluster.GangKey{}) {
		return key.String()
	}
	return p.Key()
}

// LossOf is a loss of a search by nodes as a decision records it.
func LossOf(l preempt.Loss) *record.UnitsLoss {
	out := &record.UnitsLoss{Violations: l.Violations, Highest: l.Highest, Units: l.Victims, Pods: l.Victims}
	if at, ok := l.HasStarted(); ok {
		out.Oldest = at
	}
	return out
}

// PauseOf returns the pause in which no pods are evicted for an owner; nil for none.
func (m *Manager) PauseOf(o Owner) *record.Preemption {
	until := m.pauses.until(o, m.host.Now())
	if until == 0 {
		return nil
	}
	return &record.Preemption{Message: PausedMessage, PausedUntil: until, Wasted: m.pauses.wasted(o)}
}

// WastedFor returns how many pods were evicted for an owner without use.
func (m *Manager) WastedFor(o Owner) int { return m.pauses.wasted(o) }

// Finder returns the search for victims, for questions: they work on a copy (units.Finder.ForQuestion).
func (m *Manager) Finder() *units.Finder { return &m.finder }

// NoteBarred notes a pod for which no pods are evicted because of budgets, or forgets it, by the message of its search.
func (m *Manager) NoteBarred(p record.PodRef, message string) {
	m.budgets.note(p, message, m.host.PendingPods(), m.host.Pending)
}

// ObjectChanged follows a change of an object. Either version may be nil.
func (m *Manager) ObjectChanged(was, is cluster.Object) { m.budgets.changed(was, is) }

// Relabelled follows a change of a bound pod.
func (m *Manager) Relabelled(old, p *cluster.Pod) { m.budgets.relabelled(old, p) }

// UnderWay returns how many gangs, and how many pods by themselves, have victims that are not gone, and how many
// preemptors budgets bar.
func (m *Manager) UnderWay() (gangs, pods, barred int) {
	s := m.store.Snapshot()
	for _, ev := range m.of { // order: only their number counts
		switch {
		case ev.unit.isGang():
			gangs += min(len(ev.left), 1)
		case ev.any(func(uid cluster.UID, how leaving) bool { return how == deleted && there(s, uid) }):
			pods++
		}
	}
	return gangs, pods, len(m.budgets.barred)
}

// Unanswered reports whether a request for a gang has no answer yet.
func (m *Manager) Unanswered(key cluster.GangKey) bool {
	ev := m.gang(key)
	return ev != nil && ev.state == Requested
}
