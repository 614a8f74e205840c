// SPDX-License-Identifier: Apache-2.0

package question

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/evict"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/preempt/units"
	"github.com/kumiki-scheduler/kumiki/record"
)

// unitVictimsOfPod returns which units a pod by itself would have evicted. Its profile must evict.
func (w *supposition) unitVictimsOfPod(prof *engine.Profile, p *cluster.Pod) *record.Preemption {
	return w.unitVictims(prof, w.view.Preemption().LimitsOfPod(p), string(p.UID))
}

// unitVictimsOfGang returns which units a gang would have evicted for which no places were found; nil where it
// never evicts.
func (w *supposition) unitVictimsOfGang(
	key cluster.GangKey, prof *engine.Profile, need gang.Need, ans gang.Answer,
) *record.Preemption {
	if ans.Verdict != gang.Unschedulable && ans.Verdict != gang.GaveUp {
		return nil
	}
	limits, may := w.view.Preemption().LimitsOfGang(key, prof.Name, need)
	if !may {
		return nil
	}
	r := w.unitVictims(prof, limits, key.String())
	r.Message = preempt.ForGroup(r.Message)
	return r
}

// unitVictims searches victims in units for each set of preemptors in turn, until one is found.
func (w *supposition) unitVictims(
	prof *engine.Profile, limits evict.Limits, draw string,
) *record.Preemption {
	switch {
	case limits.NotEligible != "":
		return &record.Preemption{Message: limits.NotEligible}
	case limits.Pause != nil:
		return limits.Pause
	}
	var r *record.Preemption
	for _, set := range limits.Sets {
		found := w.searchUnits(prof, limits.Units, set, draw)
		if r == nil || found.Node != "" || r.Message != preempt.AllProtected {
			r = found
		}
		if r.Node != "" {
			break
		}
	}
	if limits.VictimsStuck && r.Node == "" {
		r.Message = evict.NoOther
	}
	if r.Node != "" {
		r.DelayedUntil = limits.Delayed
	}
	r.Wasted = limits.Wasted
	return r
}

// searchUnits searches victims for one set of preemptors, and leaves the supposition as it was.
func (w *supposition) searchUnits(
	prof *engine.Profile, q units.Question, set evict.Preemptor, draw string,
) *record.Preemption {
	need := set.Need
	run := evict.DryRun{Need: need, Trial: w.trial, Ground: func() *gang.Ground { return w.ground(draw, prof) }}
	q.Members, q.Quorum, q.Priority, q.Trial, q.Fits = need.Members, need.Quorum, set.Priority, w.trial, run.Fits
	q.Placement = units.Placement{
		Placer: w.placer(prof), Nominations: w, Bound: need.Bound, TopologyKeys: evict.RequiredKeys(need),
	}
	a := w.finder.FindUnits(q)
	r := &record.Preemption{Message: a.Message}
	evict.RecordUnits(r, &a)
	if a.Verdict == preempt.NotHelpful {
		return r
	}
	victims := evict.VictimPods(&a)
	nodes := run.Without(append(slices.Clone(victims), a.Terminating...))
	s := w.view.Snapshot()
	for k := range nodes {
		if nodes[k] != cluster.NoNode {
			r.Places = append(r.Places, record.Nomination{Pod: need.Members[k].Ref(), Node: s.NodeName(nodes[k])})
		}
	}
	if len(r.Places) == 0 {
		return r
	}
	r.Node = r.Places[0].Node
	for _, v := range victims {
		withdrawable := w.view.Preemption().Withdrawable(v.UID)
		r.Victims = append(r.Victims, record.Victim{Pod: v.Ref(), Priority: v.Spec.Priority, TurnedBack: withdrawable,
			Agreed: q.Agreed != nil && q.Agreed(v)})
	}
	return r
}
