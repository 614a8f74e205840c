// SPDX-License-Identifier: Apache-2.0

package question

import (
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/evict"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/preempt/units"
	"github.com/kumiki-scheduler/kumiki/record"
)

// candidatesShown is how many nodes a report on victims names, the chosen one among them.
const candidatesShown = 11

// mayEvict reports whether a cycle would search victims for a pod, given the search that found no node for it.
func mayEvict(prof *engine.Profile, pl *place.Placer, out place.Outcome) bool {
	return prof.Preemption != nil && out.Nodes > 0 && out.Err == nil &&
		!slices.ContainsFunc(prof.Remediers, func(r plugin.Remedier) bool { return !pl.Prepared(out, r.Name()) })
}

// victimsNow returns which pods a pod that found no node would evict now, and what the other nodes would cost; nil
// where its profile evicts no pods. It scans all nodes, also where the configuration lets a decision sample them.
func (i Inspector) victimsNow(prof *engine.Profile, p *cluster.Pod, out place.Outcome) (r *record.Preemption) {
	finder, placer := i.view.Preemption().Finder(), i.view.Placer(prof.Name)
	switch {
	case !mayEvict(prof, placer, out):
		return nil
	case i.view.Preemption().GoesByUnits(finder, p):
		if err := i.suppose(p, func(w *supposition) { r = w.unitVictimsOfPod(prof, p) }); err != nil {
			return &record.Preemption{Message: err.Error()}
		}
		return r
	}
	return i.nodeVictims(placer.WhatIf(i.view.Snapshot(), out), finder, p)
}

// nodeVictims searches the node on which the victims of a pod are the smallest loss, with what other nodes would
// cost (as upstream does).
func (i Inspector) nodeVictims(check *place.WhatIf, finder *units.Finder, p *cluster.Pod) *record.Preemption {
	limits := i.view.Preemption().LimitsOfPod(p)
	if limits.Pause != nil {
		return limits.Pause
	}
	question := limits.Node
	question.WhatIf, question.Best = check, candidatesShown
	a := finder.Find(i.view.Snapshot(), question)
	r := &record.Preemption{Nodes: a.Nodes, Tried: a.Tried, Message: a.Message, Wasted: limits.Wasted}
	if a.Verdict == preempt.Evict {
		r.DelayedUntil = limits.Delayed
		i.addCandidates(r, a)
	}
	return r
}

// addCandidates adds the best candidate to a report, and why it is not one of the others.
func (i Inspector) addCandidates(r *record.Preemption, a preempt.Answer) {
	s, best := i.view.Snapshot(), &a.Best
	r.Node, r.Violations, r.Loss = s.NodeName(best.Node), best.Loss.Violations, evict.LossOf(best.Loss)
	for k, v := range best.Victims {
		withdrawable := i.view.Preemption().Withdrawable(v.UID)
		r.Victims = append(r.Victims, record.Victim{
			Pod: v.Ref(), Priority: v.Spec.Priority, TurnedBack: withdrawable, Going: v.Terminating && !withdrawable,
			Shielded: best.Protected(k),
		})
	}
	for _, c := range a.Candidates {
		if c.Node == best.Node {
			continue
		}
		r.Others = append(r.Others, record.VictimNode{
			Node: s.NodeName(c.Node), Victims: c.Loss.Victims, Violations: c.Loss.Violations, Highest: c.Loss.Highest,
			Why: whyNot(c.Loss, best.Loss),
		})
	}
}

// whyNot says by what a loss is larger than the one that was chosen.
func whyNot(l, chosen preempt.Loss) string {
	switch l.Differs(chosen) {
	case preempt.MoreViolations:
		return fmt.Sprintf("disruption budgets protect %d of its victims, not %d", l.Violations, chosen.Violations)
	case preempt.HigherPriority:
		return fmt.Sprintf("a victim has priority %d, not at most %d", l.Highest, chosen.Highest)
	case preempt.HigherSum:
		return "the priorities of its victims add up to more"
	case preempt.MoreVictims:
		return fmt.Sprintf("%d victims, not %d", l.Victims, chosen.Victims)
	case preempt.RanLonger:
		return "its most important victim has run longer"
	}
	return "it costs the same, and comes later among the nodes"
}
