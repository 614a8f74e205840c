// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Bounds of what is looked at for one question.
const (
	movedTried   = 1000 // pods that are made again, judged one by one
	blockedNamed = 5    // of those without a place
)

// WhatIfPod tells how a pod stands, and how it would stand under conditions (see ConditionForms), which are supposed one after
// the other. Names without a namespace are of the pod's. Asking changes nothing that shows, not even the revision of the
// store. The error is a *record.Refusal when the question is at fault.
func (e *Engine) WhatIfPod(namespace, name string, conditions []string) (record.WhatIf, error) {
	list, no := readConditions(namespace, conditions)
	if no != nil {
		return record.WhatIf{}, no
	}
	p := e.findPod(namespace, name)
	if p == nil {
		return record.WhatIf{}, &record.Refusal{About: true, Message: fmt.Sprintf("pod %s/%s is not known to the scheduler", namespace, name)}
	}
	ref := p.Ref()
	r := record.WhatIf{At: e.now, Revision: e.store.Snapshot().Revision(), Pod: &ref, Priority: p.Spec.Priority}
	err := e.supposed(p, func(w *supposing) {
		if p.Gang != nil && p.Gang.Bad == "" && !e.apart(p.Gang.Key) {
			w.note(fmt.Sprintf("it is judged alone, and gets its place with gang %s: ask kumiki why gang/%s", p.Gang.Key, p.Gang.Key.Name))
		}
		mark := w.trial.Checkpoint()
		r.Now = w.pod(p)
		w.trial.Rollback(mark)
		if no = w.supposeAll(list, &r); no == nil {
			self := func(other *cluster.Pod) bool { return other.UID == p.UID }
			r.Then = w.answer(&r, self, func() record.Prospect { return w.pod(p) })
		}
		r.Notes = w.notes
	})
	return r, cmpErr(no, err)
}

// WhatIfGang is WhatIfPod for a gang.
func (e *Engine) WhatIfGang(namespace, name string, conditions []string) (record.WhatIf, error) {
	list, no := readConditions(namespace, conditions)
	if no != nil {
		return record.WhatIf{}, no
	}
	key, ok := e.findGang(namespace, name)
	if !ok {
		return record.WhatIf{}, &record.Refusal{About: true, Message: fmt.Sprintf("gang %s/%s is not known to the scheduler", namespace, name)}
	}
	r := record.WhatIf{At: e.now, Revision: e.store.Snapshot().Revision(), Gang: key.String(), Priority: e.gangPriority(key)}
	err := e.supposed(&cluster.Pod{Namespace: namespace, Name: name}, func(w *supposing) {
		if u := e.queue.Gang(key); u != nil {
			w.promised = e.promises(u)
		}
		mark := w.trial.Checkpoint()
		r.Now = w.gang(key)
		w.trial.Rollback(mark)
		if no = w.supposeAll(list, &r); no == nil {
			member := func(p *cluster.Pod) bool { return p.Gang != nil && p.Gang.Key == key }
			r.Then = w.answer(&r, member, func() record.Prospect { return w.gang(key) })
		}
		r.Notes = w.notes
	})
	return r, cmpErr(no, err)
}

func cmpErr(no *record.Refusal, err error) error {
	if err == nil && no != nil {
		return no
	}
	return err
}

// gangPriority is what a gang ranks as.
func (e *Engine) gangPriority(key cluster.GangKey) int32 {
	if u := e.queue.Gang(key); u != nil {
		return u.Priority()
	}
	if obj := e.gangObject(key); obj != nil && obj.Priority != nil {
		return *obj.Priority
	}
	least, first := int32(0), true
	for _, m := range e.store.Snapshot().GangMembers(key) {
		if first || m.Pod.Spec.Priority < least {
			least, first = m.Pod.Spec.Priority, false
		}
	}
	return least
}

func (w *supposing) supposeAll(list []condition, r *record.WhatIf) *record.Refusal {
	for i := range list {
		done, no := w.suppose(&list[i])
		if no != nil {
			return no
		}
		r.If = append(r.If, done)
	}
	return nil
}

// answer judges what is asked about in the company of the pods that left their nodes and are made again: those of higher
// priority are tried before it, the others after it, if it gets a place without evicting anybody.
func (w *supposing) answer(r *record.WhatIf, self func(*cluster.Pod) bool, judge func() record.Prospect) record.Prospect {
	m := &record.Moved{Pods: len(w.left)}
	var again []*cluster.Pod
	for _, p := range w.left {
		switch {
		case self(p):
			m.Pods--
		case !p.Owned:
			m.Lost++
		case w.e.profiles[p.Spec.SchedulerName] == nil:
			m.Strangers++
		default:
			again = append(again, p)
		}
	}
	slices.SortFunc(again, func(a, b *cluster.Pod) int {
		return cmp.Or(cmp.Compare(b.Spec.Priority, a.Spec.Priority), cmp.Compare(a.Created, b.Created), cmp.Compare(a.UID, b.UID))
	})
	if len(again) > movedTried {
		w.note(fmt.Sprintf("of %d pods that are made again the first %d are judged", len(again), movedTried))
		again = again[:movedTried]
	}
	for len(again) > 0 && again[0].Spec.Priority > r.Priority {
		w.tryAgain(again[0], m)
		m.First++
		again = again[1:]
	}
	then := judge()
	for _, p := range again {
		w.tryAgain(p, m)
	}
	if m.Pods > 0 {
		r.Moved = m
	}
	return then
}

// tryAgain looks for a place for a pod that left its node, and takes it.
func (w *supposing) tryAgain(p *cluster.Pod, m *record.Moved) {
	pl, s := w.placer(w.e.profiles[p.Spec.SchedulerName]), w.e.store.Snapshot()
	m.Tried++
	out := pl.Place(s, p, w, w.draw(string(p.UID)))
	if out.Err == nil && out.Node != cluster.NoNode {
		m.Fit++
		w.trial.Assume(p, out.Node)
		return
	}
	if len(m.Blocked) < blockedNamed {
		message := pl.Why(s, out).Message
		if out.Err != nil {
			message = out.Err.Error()
		}
		m.Blocked = append(m.Blocked, record.BlockedPod{Pod: p.Ref(), Message: message})
	}
}

// pod judges the pod that is asked about, and takes the place that it finds.
func (w *supposing) pod(p *cluster.Pod) (r record.Prospect) {
	e, s := w.e, w.e.store.Snapshot()
	if _, n, _, holds := s.PodOn(p.UID); holds {
		return record.Prospect{Outcome: record.HasPlace, Node: s.NodeName(n)}
	}
	for _, l := range w.left {
		if l.UID == p.UID {
			p = l
		}
	}
	prof := e.profiles[p.Spec.SchedulerName]
	switch {
	case w.gone[p.UID]:
		return record.Prospect{Outcome: record.NoneLeft}
	case prof == nil:
		return record.Prospect{Outcome: record.NotOurs, Reason: "it asks for scheduler " + p.Spec.SchedulerName}
	case len(p.Spec.Gates) > 0:
		return record.Prospect{Outcome: record.MayNot, Reason: fmt.Sprintf("scheduling gates %v", p.Spec.Gates)}
	}
	pl := w.placer(prof)
	r.Fit, _ = fitOf(s, pl, w, p)
	out := pl.Place(s, p, w, w.draw(string(p.UID)))
	switch {
	case out.Err != nil:
		r.Outcome, r.Reason = record.Unanswered, out.Err.Error()
	case out.Node != cluster.NoNode:
		r.Outcome, r.Node = record.Fits, s.NodeName(out.Node)
		w.trial.Assume(p, out.Node)
		return r
	default:
		r.Outcome = record.FitsNot
		switch {
		case !mayEvict(prof, pl, out):
		case e.evictions.GoesByUnits(&prof.evicts, &w.finder, p):
			r.Preemption = w.unitsForPod(prof, p)
		default:
			r.Preemption = e.victimsOnNodes(prof, pl, w, &w.finder, p, out)
		}
		if r.Preemption != nil && r.Preemption.Node != "" {
			r.Outcome, r.Node = record.FitsEvict, r.Preemption.Node
		}
	}
	return r
}

// gang judges the pods of a gang that wait, those among them that left their nodes, and takes the places that it finds.
func (w *supposing) gang(key cluster.GangKey) (r record.Prospect) {
	e := w.e
	var waiting []*cluster.Pod
	u := e.queue.Gang(key)
	if u != nil {
		waiting = slices.DeleteFunc(slices.Clone(u.Members), func(p *cluster.Pod) bool { return w.gone[p.UID] })
	}
	cameBack := 0
	for _, p := range w.left {
		if p.Gang != nil && p.Gang.Bad == "" && p.Gang.Key == key {
			waiting = append(waiting, p)
			cameBack++
		}
	}
	switch {
	case e.apart(key) && len(e.queue.Apart(key))+cameBack > 0:
		return record.Prospect{Outcome: record.MayNot, Reason: "its pods are scheduled one by one: ask about each of them"}
	case len(waiting) == 0 && e.gangLive(key) > 0:
		return record.Prospect{Outcome: record.HasPlace}
	case len(waiting) == 0:
		return record.Prospect{Outcome: record.NoneLeft}
	case u != nil && cameBack == 0 && u.Gate+u.Aside != "":
		return record.Prospect{Outcome: record.MayNot, Reason: cmp.Or(u.Aside, u.GateReason)}
	}
	prof := e.profiles[waiting[0].Spec.SchedulerName]
	if prof == nil {
		return record.Prospect{Outcome: record.NotOurs, Reason: "its pods ask for scheduler " + waiting[0].Spec.SchedulerName}
	}
	need := w.need(key, waiting)
	if len(need.Members) < need.Quorum {
		return record.Prospect{Outcome: record.MayNot,
			Reason: fmt.Sprintf("it needs places for %d pods more, and %d of its pods can be tried", need.Quorum, len(need.Members))}
	}
	ans := w.placeGang(key.String(), prof, need)
	r.Gang = gangFit(need, ans)
	switch ans.Verdict {
	case gang.Placed:
		r.Outcome = record.Fits
		s := e.store.Snapshot()
		for i, p := range need.Members {
			if ans.Nodes[i] != cluster.NoNode {
				r.Places = append(r.Places, record.Nomination{Pod: p.Ref(), Node: s.NodeName(ans.Nodes[i])})
			}
		}
		return r
	case gang.Failed:
		r.Outcome, r.Reason = record.Unanswered, r.Gang.Message
	default:
		r.Outcome = record.FitsNot
		if r.Preemption = w.unitsForGang(key, prof, need, ans); r.Preemption != nil && r.Preemption.Node != "" {
			r.Outcome, r.Places = record.FitsEvict, r.Preemption.Places
		}
	}
	return r
}

// placeGang looks for places, and takes them if there are enough.
func (w *supposing) placeGang(key string, prof *profile, need gang.Need) gang.Answer {
	return gang.Place(need, &gang.Ground{
		Trial: w.trial, Placer: w.placer(prof), Nominations: w, Draw: w.draw(key), Reservers: prof.Reservers, Meter: NoMeter{},
	})
}

// need is gangNeed for the members that wait in the supposition.
func (w *supposing) need(key cluster.GangKey, waiting []*cluster.Pod) gang.Need {
	e := w.e
	var need gang.Need
	need.Members, _, _, _ = e.openMembers(waiting)
	slices.SortStableFunc(need.Members, func(a, b *cluster.Pod) int {
		return cmp.Or(cmp.Compare(b.Spec.Priority, a.Spec.Priority), cmp.Compare(a.Created, b.Created), cmp.Compare(a.Name, b.Name))
	})
	q, held := e.quorumOf(key, waiting), e.evictions.Staying(key)
	need.Quorum = q.pods - held
	if q.open && held > 0 {
		need.Quorum = min(need.Quorum, len(need.Members))
	}
	need.Quorum = max(need.Quorum, 1)
	if obj := e.gangObject(key); obj != nil {
		need.Topology = obj.Topology
	}
	for _, m := range e.store.Snapshot().GangMembers(key) {
		need.Bound = append(need.Bound, m.Row)
	}
	return need
}

// gangFit is what a search found, as reports tell of it.
func gangFit(need gang.Need, ans gang.Answer) *record.GangFit {
	f := &record.GangFit{
		Verdict: ans.Verdict.String(), Placed: max(ans.Most, 0), Needed: need.Quorum, Tried: ans.Tried, Message: ans.Why.Message,
		Proof: ans.Proof, Domains: ans.Domains,
	}
	if ans.Err != nil {
		f.Message = ans.Err.Error()
	}
	if ans.Blocked >= 0 && ans.Blocked < len(need.Members) {
		f.Blocked = need.Members[ans.Blocked].Name
	}
	return f
}
