// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/evict"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
)

// candidatesShown is how many nodes a report on victims tells of, the chosen one among them.
const candidatesShown = 11

// mayEvict tells whether victims would be looked for, for a pod that found no node.
func mayEvict(prof *profile, pl *place.Placer, out place.Outcome) bool {
	return prof.Preemption != nil && out.Nodes > 0 && out.Err == nil &&
		!slices.ContainsFunc(prof.Remediers, func(r plugin.Remedier) bool { return !pl.Prepared(out, r.Name()) })
}

// victimsNow is whom a pod that found no node would evict now, and what the other nodes would cost; nil where its profile
// evicts nobody. It looks at all nodes, also where the configuration lets a decision look at some.
func (e *Engine) victimsNow(prof *profile, p *cluster.Pod, out place.Outcome) (r *record.Preemption) {
	switch {
	case !mayEvict(prof, prof.placer, out):
		return nil
	case e.evictions.GoesByUnits(&prof.evicts, e.evictions.Finder(), p):
		if err := e.supposed(p, func(w *supposing) { r = w.unitsForPod(prof, p) }); err != nil {
			return &record.Preemption{Message: err.Error()}
		}
		return r
	}
	return e.victimsOnNodes(prof, prof.placer, e.queue, e.evictions.Finder(), p, out)
}

// victimsOnNodes is the search of upstream, with what other nodes would cost.
func (e *Engine) victimsOnNodes(prof *profile, pl *place.Placer, noms place.Nominations, finder *preempt.Finder, p *cluster.Pod, out place.Outcome) *record.Preemption {
	if r := e.evictions.PauseOf(evict.OwnerOf(e.store.Snapshot(), p)); r != nil {
		return r
	}
	s := e.store.Snapshot()
	a := finder.Find(s, preempt.Question{
		Pod: p, Nominated: e.evictions.CountsOn(p), Awaited: e.evictions.Awaited(p.UID),
		Relief: pl.Relief(s, out), Best: candidatesShown, Strict: prof.Preemption.Strict,
	})
	r := &record.Preemption{Nodes: a.Nodes, Tried: a.Tried, Message: a.Message, Wasted: e.evictions.WastedFor(evict.OwnerOf(s, p))}
	if a.Verdict == preempt.Evict {
		e.tellCandidates(r, a)
	}
	return r
}

// tellCandidates tells of the best candidate, and why it is not one of the others.
func (e *Engine) tellCandidates(r *record.Preemption, a preempt.Answer) {
	s, best := e.store.Snapshot(), &a.Best
	r.Node, r.Violations, r.Loss = s.NodeName(best.Node), best.Loss.Violations, evict.LossOf(best.Loss)
	for i, v := range best.Victims {
		f := e.withdrawable(v.UID)
		r.Victims = append(r.Victims, record.Victim{
			Pod: v.Ref(), Priority: v.Spec.Priority, TurnedBack: f != nil, Going: v.Terminating && f == nil, Shielded: best.Shielded(i)})
	}
	for _, c := range a.Candidates {
		if c.Node == best.Node {
			continue
		}
		r.Others = append(r.Others, record.VictimNode{
			Node: s.NodeName(c.Node), Victims: c.Loss.Victims, Violations: c.Loss.Violations, Highest: c.Loss.Highest, Why: whyNot(c.Loss, best.Loss)})
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
