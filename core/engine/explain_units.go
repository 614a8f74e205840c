// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
)

// unitsForPod is whom a pod by itself would evict, where gangs are among those that may go.
func (w *supposing) unitsForPod(prof *profile, p *cluster.Pod) *record.Preemption {
	e := w.e
	switch {
	case p.Spec.NeverPreempts:
		return &record.Preemption{Message: "preemption: not eligible due to preemptionPolicy=Never."}
	case e.awaited(p.UID) || e.goingFor(prof, e.queue.NominationOf(p.UID), p.Spec.Priority, e.gaveUpFor(p.UID)):
		return &record.Preemption{Message: "preemption: not eligible due to a terminating pod on the nominated node."}
	}
	if r := e.pausedFor(e.thrashKeyOf(p)); r != nil {
		return r
	}
	r := w.units(prof, gang.Need{Members: []*cluster.Pod{p}, Quorum: 1}, cluster.GangKey{}, p.Spec.Priority, string(p.UID), e.sparedFor(p.UID))
	if len(e.stuckFor(prof, p, e.gaveUpFor(p.UID))) > 0 && r.Node == "" {
		r.Message = noOther
	}
	r.Wasted = e.wastedFor(e.thrashKeyOf(p))
	return r
}

// unitsForGang is whom a gang would evict that was found no places, nil where it evicts nobody by its nature: as seekRoom has
// it, and without acting on it.
func (w *supposing) unitsForGang(key cluster.GangKey, prof *profile, need gang.Need, ans gang.Answer) *record.Preemption {
	e, members := w.e, need.Members
	late := e.gangStaying(key) >= e.quorumOf(key, members).pods && !e.surplusEvicts(key)
	if prof.Preemption == nil || late || ans.Verdict != gang.NoRoom && ans.Verdict != gang.GaveUp {
		return nil
	}
	c, sets := e.clearances[key], e.preemptors(key, e.queue.Gang(key), need)
	going := func(p *cluster.Pod) bool {
		return e.goingFor(prof, e.queue.NominationOf(p.UID), sets[0].power, 0)
	}
	switch {
	case len(sets) == 0:
		return &record.Preemption{Message: neverMessage}
	case e.leftBehind(prof, c):
		return &record.Preemption{Message: notGoneMessage}
	case c == nil && slices.ContainsFunc(members, going):
		return &record.Preemption{Message: "preemption: pods on the nominated nodes that were evicted are not gone yet."}
	}
	if r := e.pausedFor(thrashKey{gang: key}); r != nil {
		return r
	}
	var r *record.Preemption
	for _, by := range sets {
		found := w.units(prof, by.need, key, by.power, key.String(), e.sparedNodes(c))
		if r == nil || found.Node != "" || r.Message != preempt.AllProtected {
			r = found
		}
		if r.Node != "" {
			break
		}
	}
	if len(e.stuckLeft(prof, c)) > 0 && r.Node == "" {
		r.Message = noOther
	}
	r.Wasted = e.wastedFor(thrashKey{gang: key})
	return r
}

// pausedFor tells of the pause in which nobody is evicted for somebody; nil for none.
func (e *Engine) pausedFor(key thrashKey) *record.Preemption {
	t := e.thrash[key]
	if t == nil || t.until <= e.now {
		return nil
	}
	return &record.Preemption{Message: pausedMessage, PausedUntil: t.until, Wasted: t.wasted}
}

// units searches for victims in units, and leaves the supposition as it was.
func (w *supposing) units(prof *profile, need gang.Need, own cluster.GangKey, power int32, draw string, spared map[string]bool) *record.Preemption {
	e := w.e
	run := dryRun{need, func() *gang.Ground {
		return &gang.Ground{Trial: w.trial, Placer: w.placer(prof), Nominations: w, Draw: w.draw(draw), Reservers: prof.Reservers, Meter: NoMeter{}}
	}, w.trial}
	ground := preempt.UnitsGround{Placer: w.placer(prof), Nominations: w, Bound: need.Bound}
	for _, level := range need.Topology {
		if level.Required {
			ground.Keys = append(ground.Keys, level.Key)
		}
	}
	var never func(*cluster.Pod) string
	if own != (cluster.GangKey{}) {
		never = e.neverForGang
	}
	a := w.finder.FindUnits(preempt.UnitsQuestion{
		Members: need.Members, Quorum: need.Quorum, Own: own, Power: power, Trial: w.trial, Fits: run.fits,
		Rule: e.ruleOf, Never: e.sparingNodes(never, spared), Stuck: e.stuckOn(prof), Ground: ground, Runs: prof.Preemption.Runs, Strict: prof.Preemption.Strict,
	})
	r := &record.Preemption{Message: a.Message}
	tellUnits(r, &a)
	if a.Verdict == preempt.NotHelpful {
		return r
	}
	victims := victimPods(&a)
	nodes := run.without(append(slices.Clone(victims), a.Going...))
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
		r.Victims = append(r.Victims, record.Victim{Pod: v.Ref(), Priority: v.Spec.Priority, TurnedBack: e.turnable(v.UID) != nil})
	}
	return r
}
