// SPDX-License-Identifier: Apache-2.0

package blocked

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/record"
)

// State is the facts of Gangs as data.
type State struct {
	Gangs []GangState // in no order before Sort
	Hold  *HoldState  // nil for none
	// BudgetFull and PausedUntil are the budget of holds: when it is full, and until when nothing is held.
	BudgetFull, PausedUntil record.Time
}

// GangState is what is known of a gang that was rejected.
type GangState struct {
	Gang               cluster.GangKey
	Since, NoHoldUntil record.Time
	NoPlace            bool
	FirstPlaced        int
	Spared             []Placement
	ScaleUp, DueAt     record.Time
	Verdict            gang.Verdict
}

// Placement is one that a blocked gang could use.
type Placement struct {
	Pod  *cluster.Pod
	Node string
}

// HoldState is capacity that is held for a gang.
type HoldState struct {
	Gang         cluster.GangKey
	Since, Until record.Time
	Pods         []*cluster.Pod
	Backfill     BackfillState
}

// Sort brings what is in no order into one.
func (st *State) Sort() {
	slices.SortFunc(st.Gangs, func(a, b GangState) int { return a.Gang.Compare(b.Gang) })
}

// Facts returns the facts of g.
func (g *Gangs) Facts() State {
	st := State{BudgetFull: g.budget.full, PausedUntil: g.budget.pausedUntil}
	for key, h := range g.of { // order: Sort brings them in order
		facts := GangState{
			Gang: key, Since: h.since, NoHoldUntil: h.noHoldUntil, NoPlace: h.noPlace, FirstPlaced: h.firstPlaced,
			ScaleUp: h.scaleUp.At(), DueAt: h.dueAt, Verdict: h.verdict,
		}
		for _, s := range h.spared {
			facts.Spared = append(facts.Spared, Placement{s.pod, s.node})
		}
		st.Gangs = append(st.Gangs, facts)
	}
	if h := g.hold; h != nil {
		st.Hold = &HoldState{Gang: h.gang, Since: h.since, Until: h.until.At(), Pods: slices.Clone(h.pods),
			Backfill: h.backfill.facts()}
	}
	return st
}

// Restore makes g go on from facts. It must be called on new Gangs.
func (g *Gangs) Restore(st State) {
	g.budget = budget{st.BudgetFull, st.PausedUntil}
	for i := range st.Gangs {
		is := &st.Gangs[i]
		h := g.historyOf(is.Gang)
		h.since, h.noHoldUntil, h.firstPlaced, h.verdict = is.Since, is.NoHoldUntil, is.FirstPlaced, is.Verdict
		h.noPlace = is.NoPlace
		for _, s := range is.Spared {
			h.spared = append(h.spared, sparedPlace{s.Pod, s.Node})
		}
		g.cfg.Deadlines.Set(&h.scaleUp, is.ScaleUp)
		if h.dueAt = is.DueAt; h.dueAt > g.cfg.Host.Now() {
			g.cfg.Deadlines.Set(&h.due, h.dueAt)
		} else if h.dueAt != 0 {
			g.due[is.Gang] = true
		}
	}
	if h := st.Hold; h != nil {
		g.hold = g.newHold(h.Gang, h.Since)
		g.hold.pods = slices.Clone(h.Pods)
		g.cfg.Deadlines.Set(&g.hold.until, h.Until)
		g.restoreBackfill(h.Backfill)
	}
}
