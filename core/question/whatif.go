// SPDX-License-Identifier: Apache-2.0

package question

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Limits of one answer.
const (
	displacedTried = 1000 // displaced pods that are scheduled again, one by one
	blockedNamed   = 5    // of those without a place
)

// WhatIfPod returns how a pod stands, and how it would stand under conditions (see ConditionForms), which are
// applied in the order given. Names without a namespace are of the pod's. Not even the revision of the store
// changes. The error is a *record.Refusal if the question is at fault.
func (i Inspector) WhatIfPod(namespace, name string, conditions []string) (record.WhatIf, error) {
	list, no := parseConditions(namespace, conditions)
	if no != nil {
		return record.WhatIf{}, no
	}
	p := i.findPod(namespace, name)
	if p == nil {
		return record.WhatIf{}, unknown("pod", namespace, name)
	}
	ref := p.Ref()
	r := record.WhatIf{At: i.view.Now(), Revision: i.view.Snapshot().Revision(), Pod: &ref, Priority: p.Spec.Priority}
	return i.whatIf(r, list, subject{
		about: p,
		is:    func(other *cluster.Pod) bool { return other.UID == p.UID },
		prepare: func(w *supposition) {
			if i.inGang(p) {
				w.note(fmt.Sprintf("it is judged alone, and gets its place with gang %s: ask kumiki why gang/%s",
					p.Gang.Key, p.Gang.Key.Name))
			}
		},
		judge: func(w *supposition) record.Prospect { return w.pod(p) },
	})
}

// WhatIfGang is WhatIfPod for a gang.
func (i Inspector) WhatIfGang(namespace, name string, conditions []string) (record.WhatIf, error) {
	list, no := parseConditions(namespace, conditions)
	if no != nil {
		return record.WhatIf{}, no
	}
	key, ok := i.findGang(namespace, name)
	if !ok {
		return record.WhatIf{}, unknown("gang", namespace, name)
	}
	r := record.WhatIf{
		At: i.view.Now(), Revision: i.view.Snapshot().Revision(), Gang: key.String(), Priority: i.gangPriority(key),
	}
	return i.whatIf(r, list, subject{
		about: &cluster.Pod{Namespace: namespace, Name: name},
		is:    func(p *cluster.Pod) bool { return p.Gang != nil && p.Gang.Key == key },
		prepare: func(w *supposition) {
			if u := i.view.Queue().Gang(key); u != nil {
				w.nominations = i.view.Gangs().Nominations(u)
			}
		},
		judge: func(w *supposition) record.Prospect { return w.gang(key) },
	})
}

func unknown(kind, namespace, name string) *record.Refusal {
	message := fmt.Sprintf("%s %s/%s is not known to the scheduler", kind, namespace, name)
	return &record.Refusal{About: true, Message: message}
}

// subject is the pod or gang that a question is about.
type subject struct {
	about   *cluster.Pod            // how errors name it
	is      func(*cluster.Pod) bool // reports whether a pod belongs to it
	prepare func(*supposition)
	judge   func(*supposition) record.Prospect
}

// whatIf judges a subject as the cluster is and under conditions, and completes the answer r.
func (i Inspector) whatIf(r record.WhatIf, list []condition, of subject) (record.WhatIf, error) {
	var no *record.Refusal
	err := i.suppose(of.about, func(w *supposition) {
		of.prepare(w)
		mark := w.trial.Checkpoint()
		r.Now = of.judge(w)
		w.trial.Rollback(mark)
		if r.If, no = w.apply(list); no == nil {
			w.judgeAmongDisplaced(&r, of)
		}
		r.Notes = w.notes
	})
	if err == nil && no != nil {
		return r, no
	}
	return r, err
}

// gangPriority returns the priority by which a gang is ordered: as its waiting unit has it, as it declares, or the
// least of its pods'.
func (i Inspector) gangPriority(key cluster.GangKey) int32 {
	if u := i.view.Queue().Gang(key); u != nil {
		return u.Priority()
	}
	if obj := i.view.Snapshot().GangObject(key); obj != nil && obj.Priority != nil {
		return *obj.Priority
	}
	least, first := int32(0), true
	i.view.Snapshot().EachInGang(key, func(p *cluster.Pod, _ cluster.NodeIdx) {
		if first || p.Spec.Priority < least {
			least, first = p.Spec.Priority, false
		}
	})
	return least
}

// judgeAmongDisplaced judges the subject together with the displaced pods that are created again: those of higher
// priority are tried before it, the others after it, if it gets a place without evictions.
func (w *supposition) judgeAmongDisplaced(r *record.WhatIf, of subject) {
	m := &record.Moved{Pods: len(w.displaced)}
	var again []*cluster.Pod
	for _, p := range w.displaced {
		switch {
		case of.is(p):
			m.Pods--
		case !p.Owned:
			m.Lost++
		case w.view.Profile(p.Spec.SchedulerName) == nil:
			m.OtherSchedulers++
		default:
			again = append(again, p)
		}
	}
	slices.SortFunc(again, func(a, b *cluster.Pod) int {
		stronger := cmp.Compare(b.Spec.Priority, a.Spec.Priority)
		return cmp.Or(stronger, cmp.Compare(a.Created, b.Created), cmp.Compare(a.UID, b.UID))
	})
	if len(again) > displacedTried {
		w.note(fmt.Sprintf("of %d pods that are made again the first %d are judged", len(again), displacedTried))
		again = again[:displacedTried]
	}
	for len(again) > 0 && again[0].Spec.Priority > r.Priority {
		w.reschedule(again[0], m)
		m.First++
		again = again[1:]
	}
	r.Then = of.judge(w)
	for _, p := range again {
		w.reschedule(p, m)
	}
	if m.Pods > 0 {
		r.Moved = m
	}
}

// reschedule searches a place for a displaced pod, and takes it.
func (w *supposition) reschedule(p *cluster.Pod, m *record.Moved) {
	pl, s := w.placer(w.view.Profile(p.Spec.SchedulerName)), w.view.Snapshot()
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
func (w *supposition) pod(p *cluster.Pod) (r record.Prospect) {
	s := w.view.Snapshot()
	if _, n, _, holds := s.PodOn(p.UID); holds {
		return record.Prospect{Outcome: record.HasPlace, Node: s.NodeName(n)}
	}
	for _, d := range w.displaced {
		if d.UID == p.UID {
			p = d
		}
	}
	prof := w.view.Profile(p.Spec.SchedulerName)
	switch {
	case w.deleted[p.UID]:
		return record.Prospect{Outcome: record.NoneLeft}
	case prof == nil:
		return record.Prospect{Outcome: record.NotOurs, Reason: "it asks for scheduler " + p.Spec.SchedulerName}
	case len(p.Spec.Gates) > 0:
		return record.Prospect{Outcome: record.MayNot, Reason: fmt.Sprintf("scheduling gates %v", p.Spec.Gates)}
	}
	pl := w.placer(prof)
	w.nominations = w.view.NominationsFor(p)
	r.Fit, _ = fitOf(s, pl, w, p)
	out := pl.Place(s, p, w, w.draw(string(p.UID)))
	w.nominations = w.view.Queue() // a search for victims respects what is held
	switch {
	case out.Err != nil:
		r.Outcome, r.Reason = record.Unanswered, out.Err.Error()
	case out.Node != cluster.NoNode:
		r.Outcome, r.Node = record.Fits, s.NodeName(out.Node)
		w.trial.Assume(p, out.Node)
	default:
		r.Outcome = record.FitsNot
		switch {
		case !mayEvict(prof, pl, out):
		case w.view.Preemption().GoesByUnits(&w.finder, p):
			r.Preemption = w.unitVictimsOfPod(prof, p)
		default:
			r.Preemption = w.nodeVictims(pl.WhatIf(s, out), &w.finder, p)
		}
		if r.Preemption != nil && r.Preemption.Node != "" {
			r.Outcome, r.Node = record.FitsEvict, r.Preemption.Node
		}
	}
	return r
}

// gang judges the pods of a gang that wait, displaced ones among them, and takes the places that it finds.
func (w *supposition) gang(key cluster.GangKey) (r record.Prospect) {
	waiting, no := w.waitingOf(key)
	if no != nil {
		return *no
	}
	prof := w.view.Profile(waiting[0].Spec.SchedulerName)
	if prof == nil {
		reason := "its pods ask for scheduler " + waiting[0].Spec.SchedulerName
		return record.Prospect{Outcome: record.NotOurs, Reason: reason}
	}
	need := w.need(key, waiting)
	if len(need.Members) < need.Quorum {
		reason := fmt.Sprintf("it needs places for %d pods more, and %d of its pods can be tried",
			need.Quorum, len(need.Members))
		return record.Prospect{Outcome: record.MayNot, Reason: reason}
	}
	ans := w.placeGang(key.String(), prof, need)
	r.Gang = gangFit(need, ans)
	switch ans.Verdict {
	case gang.Placed:
		r.Outcome = record.Fits
		s := w.view.Snapshot()
		for k, p := range need.Members {
			if ans.Nodes[k] != cluster.NoNode {
				r.Places = append(r.Places, record.Nomination{Pod: p.Ref(), Node: s.NodeName(ans.Nodes[k])})
			}
		}
	case gang.Failed:
		r.Outcome, r.Reason = record.Unanswered, r.Gang.Message
	default:
		r.Outcome = record.FitsNot
		if r.Preemption = w.unitVictimsOfGang(key, prof, need, ans); r.Preemption != nil && r.Preemption.Node != "" {
			r.Outcome, r.Places = record.FitsEvict, r.Preemption.Places
		}
	}
	return r
}

// waitingOf returns the pods of a gang that wait or are displaced. If the gang is not tried at all, no is the answer.
func (w *supposition) waitingOf(key cluster.GangKey) (waiting []*cluster.Pod, no *record.Prospect) {
	u := w.view.Queue().Gang(key)
	if u != nil {
		waiting = slices.DeleteFunc(slices.Clone(u.Members), func(p *cluster.Pod) bool { return w.deleted[p.UID] })
	}
	displaced := 0
	for _, p := range w.displaced {
		if p.Gang != nil && p.Gang.Bad == "" && p.Gang.Key == key {
			waiting = append(waiting, p)
			displaced++
		}
	}
	live, _ := w.view.Snapshot().GangCounts(key)
	switch {
	case w.oneByOne(key) && len(w.view.Queue().Apart(key))+displaced > 0:
		const reason = "its pods are scheduled one by one: ask about each of them"
		return nil, &record.Prospect{Outcome: record.MayNot, Reason: reason}
	case len(waiting) == 0 && live > 0:
		return nil, &record.Prospect{Outcome: record.HasPlace}
	case len(waiting) == 0:
		return nil, &record.Prospect{Outcome: record.NoneLeft}
	case u != nil && displaced == 0 && u.Gate+u.Aside != "":
		return nil, &record.Prospect{Outcome: record.MayNot, Reason: cmp.Or(u.Aside, u.GateReason)}
	}
	return waiting, nil
}

// placeGang searches places, and takes them if there are enough.
func (w *supposition) placeGang(draw string, prof *engine.Profile, need gang.Need) gang.Answer {
	return gang.Place(need, w.ground(draw, prof))
}

// ground returns what one search for places of a gang works with.
func (w *supposition) ground(draw string, prof *engine.Profile) *gang.Ground {
	return &gang.Ground{
		Trial: w.trial, Placer: w.placer(prof), Nominations: w, Draw: w.draw(draw), Reservers: prof.Reservers,
		Placements: prof.Placements, Meter: engine.NoMeter{},
	}
}

// need returns what the search is asked for the members that wait in the supposition.
func (w *supposition) need(key cluster.GangKey, waiting []*cluster.Pod) gang.Need {
	var need gang.Need
	need.Members, _ = w.view.Gangs().OpenMembers(waiting)
	slices.SortStableFunc(need.Members, func(a, b *cluster.Pod) int {
		stronger := cmp.Compare(b.Spec.Priority, a.Spec.Priority)
		return cmp.Or(stronger, cmp.Compare(a.Created, b.Created), cmp.Compare(a.Name, b.Name))
	})
	quorum, stated := w.view.Gangs().Quorum(key, waiting)
	held := w.view.Gangs().Staying(key)
	need.Quorum = quorum - held
	if !stated && held > 0 {
		need.Quorum = min(need.Quorum, len(need.Members))
	}
	need.Quorum = max(need.Quorum, 1)
	if obj := w.view.Snapshot().GangObject(key); obj != nil {
		need.Topology = obj.Topology
	}
	for _, m := range w.view.Snapshot().GangMembers(key) {
		need.Bound = append(need.Bound, m.Row)
	}
	return need
}

// gangFit returns what a search found, as reports show it.
func gangFit(need gang.Need, ans gang.Answer) *record.GangFit {
	f := &record.GangFit{
		Verdict: ans.Verdict.String(), Placed: max(ans.Most, 0), Needed: need.Quorum, Tried: ans.Tried,
		Message: ans.Why.Message, Proof: ans.Proof, Domains: ans.Domains,
	}
	if ans.Err != nil {
		f.Message = ans.Err.Error()
	}
	if ans.Blocked >= 0 && ans.Blocked < len(need.Members) {
		f.Blocked = need.Members[ans.Blocked].Name
	}
	return f
}
