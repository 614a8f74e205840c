// SPDX-License-Identifier: Apache-2.0

package evict

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/preempt/units"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Limits say whether pods may be evicted for a pod or a gang now, and what bounds the search for them. Questions read
// them; a plan (ForPod, ForGang) has the same limits.
type Limits struct {
	// NotEligible is why no victims are sought in units; empty if they are.
	NotEligible string
	// Pause is the pause in which no pods are evicted, nil for none.
	Pause *record.Preemption
	// Delayed is until when no pods are evicted, so that an autoscaler can create nodes; 0 for no such time. Victims
	// are sought all the same, to be shown.
	Delayed record.Time
	// Wasted is how many pods were evicted without use.
	Wasted int
	// VictimsStuck: pods that were evicted before do not go.
	VictimsStuck bool
	// Sets are the members for which pods may be evicted, to be tried in this order.
	Sets []Preemptor
	// Units holds the limits of a search in units: Own, Agreed, Rule, Never, Stuck, Runs and Strict.
	Units units.Question
	// Node holds the limits of a search on one node, for a pod by itself: Pod, Nominated, Awaited and Strict.
	Node preempt.Question
}

// LimitsOfPod returns the limits for a pod by itself. Its profile must evict.
func (m *Manager) LimitsOfPod(prof *Profile, p *cluster.Pod) Limits {
	owner := OwnerOf(m.store.Snapshot(), p)
	l := Limits{
		Pause: m.PauseOf(owner), Wasted: m.WastedFor(owner), VictimsStuck: len(m.StuckOfPod(prof, p)) > 0,
		Sets:  []Preemptor{{needOf(p), p.Spec.Priority}},
		Units: m.unitLimits(prof, nil, Unit{Pod: p.UID}),
		Node: preempt.Question{
			Pod: p, Nominated: m.CountsOn(p), Awaited: m.Awaited(p.UID), Strict: prof.Preemption.Strict,
		},
	}
	l.Delayed = m.delayedUntil(prof, Unit{Pod: p.UID}, []*cluster.Pod{p}, 1)
	switch {
	case p.Spec.NeverPreempts:
		l.NotEligible = NeverMessage
	case l.Node.Awaited || m.GoingFor(prof, m.queue.NominationOf(p.UID), p.Spec.Priority, m.GaveUp(p.UID)):
		l.NotEligible = TerminatingMessage
	}
	return l
}

// LimitsOfGang returns the limits for a gang that needs places for some members. Its profile must evict. ok is false if
// the gang has its quorum and therefore evicts no pods.
func (m *Manager) LimitsOfGang(prof *Profile, key cluster.GangKey, need gang.Need) (l Limits, ok bool) {
	if m.Staying(key) >= m.host.Quorum(key, need.Members) && !SurplusEvicts(key) {
		return Limits{}, false
	}
	owner, unit := OwnerOfGang(key), Unit{Gang: key}
	l = Limits{
		Pause: m.PauseOf(owner), Wasted: m.WastedFor(owner), VictimsStuck: len(m.StuckOfGang(prof, key)) > 0,
		Sets:  m.preemptors(key, need),
		Units: m.unitLimits(prof, m.NeverForGang, unit),
	}
	l.Units.Own, l.Units.Agreed = key, m.agreed(key, need.Members)
	l.Delayed = m.delayedUntil(prof, unit, need.Members, need.Quorum)
	going := func(p *cluster.Pod) bool {
		return m.GoingFor(prof, m.queue.NominationOf(p.UID), l.Sets[0].Priority, 0)
	}
	switch {
	case len(l.Sets) == 0:
		l.NotEligible = NeverMessage
	case m.Remaining(prof, key), !m.Known(unit) && slices.ContainsFunc(need.Members, going):
		l.NotEligible = RemainingMessage
	}
	return l, true
}

// unitLimits returns the limits of a search in units for a unit: never keeps pods from being evicted, nil none.
func (m *Manager) unitLimits(prof *Profile, never func(*cluster.Pod) string, u Unit) units.Question {
	return units.Question{
		Rule: m.RuleOf, Never: m.SparingNodes(never, m.Spared(u)), Stuck: m.OverdueOn(prof),
		Runs: prof.Preemption.Runs, Strict: prof.Preemption.Strict,
	}
}
