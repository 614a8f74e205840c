// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/evict"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
)

// unitsForPod is whom a pod by itself would evict, where gangs are among those that may go.
func (w *supposing) unitsForPod(prof *profile, p *cluster.Pod) *record.Preemption {
	e := w.e
	owner := evict.OwnerOf(e.store.Snapshot(), p)
	switch {
	case p.Spec.NeverPreempts:
		return &record.Preemption{Message: evict.NeverMessage}
	case e.evictions.Awaited(p.UID) || e.evictions.GoingFor(&prof.evicts, e.queue.NominationOf(p.UID), p.Spec.Priority, e.evictions.GaveUp(p.UID)):
		return &record.Preemption{Message: evict.TerminatingMessage}
	}
	if r := e.evictions.PauseOf(owner); r != nil {
		return r
	}
	r := w.units(prof, gang.Need{Members: []*cluster.Pod{p}, Quorum: 1}, cluster.GangKey{}, p.Spec.Priority, string(p.UID), e.evictions.Spared(evict.Unit{Pod: p.UID}))
	if len(e.evictions.StuckOfPod(&prof.evicts, p)) > 0 && r.Node == "" {
		r.Message = evict.NoOther
	}
	r.Wasted = e.evictions.WastedFor(owner)
	return r
}

// unitsForGang is whom a gang would evict that was found no places, nil where it evicts nobody by its nature: as seekRoom has
// it, and without acting on it.
func (w *supposing) unitsForGang(key cluster.GangKey, prof *profile, need gang.Need, ans gang.Answer) *record.Preemption {
	e, members := w.e, need.Members
	late := e.evictions.Staying(key) >= e.quorumOf(key, members).pods && !evict.SurplusEvicts(key)
	if prof.Preemption == nil || late || ans.Verdict != gang.NoRoom && ans.Verdict != gang.GaveUp {
		return nil
	}
	sets, unit := e.evictions.Preemptors(key, e.queue.Gang(key), need), evict.Unit{Gang: key}
	going := func(p *cluster.Pod) bool {
		return e.evictions.GoingFor(&prof.evicts, e.queue.NominationOf(p.UID), sets[0].Priority, 0)
	}
	switch {
	case len(sets) == 0:
		return &record.Preemption{Message: evict.NeverMessage}
	case e.evictions.Remaining(&prof.evicts, key):
		return &record.Preemption{Message: evict.RemainingMessage}
	case !e.evictions.Known(unit) && slices.ContainsFunc(members, going):
		return &record.Preemption{Message: "preemption: pods on the nominated nodes that were evicted are not gone yet."}
	}
	if r := e.evictions.PauseOf(evict.OwnerOfGang(key)); r != nil {
		return r
	}
	var r *record.Preemption
	for _, by := range sets {
		found := w.units(prof, by.Need, key, by.Priority, key.String(), e.evictions.Spared(unit))
		if r == nil || found.Node != "" || r.Message != preempt.AllProtected {
			r = found
		}
		if r.Node != "" {
			break
		}
	}
	if len(e.evictions.StuckOfGang(&prof.evicts, key)) > 0 && r.Node == "" {
		r.Message = evict.NoOther
	}
	r.Wasted = e.evictions.WastedFor(evict.OwnerOfGang(key))
	return r
}

// units searches for victims in units, and leaves the supposition as it was.
func (w *supposing) units(prof *profile, need gang.Need, own cluster.GangKey, power int32, draw string, spared map[string]bool) *record.Preemption {
	e := w.e
	run := evict.DryRun{Need: need, Ground: func() *gang.Ground {
		return &gang.Ground{Trial: w.trial, Placer: w.placer(prof), Nominations: w, Draw: w.draw(draw), Reservers: prof.Reservers, Meter: NoMeter{}}
	}, Trial: w.trial}
	ground := preempt.UnitsGround{Placer: w.placer(prof), Nominations: w, Bound: need.Bound, Keys: evict.RequiredKeys(need)}
	var never func(*cluster.Pod) string
	if own != (cluster.GangKey{}) {
		never = e.evictions.NeverForGang
	}
	a := w.finder.FindUnits(preempt.UnitsQuestion{
		Members: need.Members, Quorum: need.Quorum, Own: own, Power: power, Trial: w.trial, Fits: run.Fits,
		Rule: e.evictions.RuleOf, Never: e.evictions.SparingNodes(never, spared), Stuck: e.evictions.OverdueOn(&prof.evicts), Ground: ground, Runs: prof.Preemption.Runs, Strict: prof.Preemption.Strict,
	})
	r := &record.Preemption{Message: a.Message}
	evict.RecordUnits(r, &a)
	if a.Verdict == preempt.NotHelpful {
		return r
	}
	victims := evict.VictimPods(&a)
	nodes := run.Without(append(slices.Clone(victims), a.Going...))
	s := e.store.Snapshot()
	for i := range nodes {
		if nodes[i] != cluster.NoNode {
			r.Places = append(r.Places, record.Nomination{Pod: need.Members[i].Ref(), Node: s.NodeName(nodes[i])})
		}
	}
	if len(r.Places) == 0 {
		return r
	}
	r.Node = r.Places[0].Node
	for _, v := range victims {
		r.Victims = append(r.Victims, record.Victim{Pod: v.Ref(), Priority: v.Spec.Priority, TurnedBack: e.withdrawable(v.UID) != nil})
	}
	return r
}
