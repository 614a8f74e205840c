// SPDX-License-Identifier: Apache-2.0

package question

import (
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// ExplainGang reports on a gang by namespace and name; ok is false for a gang that is not known. Of several gangs
// of the name it reports on the first by source, native ones first.
func (i Inspector) ExplainGang(namespace, name string) (r record.GangReport, ok bool) {
	key, ok := i.findGang(namespace, name)
	if !ok {
		return record.GangReport{}, false
	}
	return i.explainGang(key, i.view.Queue().Gang(key)), true
}

// explainGang reports on a gang, whose waiting unit may be nil.
func (i Inspector) explainGang(key cluster.GangKey, u *queue.Unit) record.GangReport {
	var waiting []*cluster.Pod
	if u != nil {
		waiting = u.Members
	}
	quorum, stated := i.view.Gangs().Quorum(key, waiting)
	r := record.GangReport{
		At: i.view.Now(), Revision: i.view.Snapshot().Revision(), Name: key.String(), Source: string(key.Source),
		Quorum: quorum, Stated: stated, Waiting: len(waiting), Where: record.Gone,
		PartialSince: i.view.Gangs().History(key).PartialSince,
	}
	i.addPlacedMembers(&r, key)
	r.Desired = max(quorum, i.desired(key, waiting, r.Bound+r.Coming))
	if u != nil {
		i.addGangWaiting(&r, u)
	} else if r.OneByOne = i.oneByOne(key); r.OneByOne {
		i.addOneByOne(&r, key)
	}
	r.Holds, r.HeldByOther = i.heldCapacity(key)
	return r
}

// addPlacedMembers lists the members that hold capacity.
func (i Inspector) addPlacedMembers(r *record.GangReport, key cluster.GangKey) {
	s := i.view.Snapshot()
	for _, m := range s.GangMembers(key) {
		p := record.GangPod{Pod: m.Pod.Ref(), State: "bound", Node: s.NodeName(m.Row)}
		switch {
		case m.Pod.Terminating:
			p.State = "terminating"
		case m.Assumed:
			p.State = "coming"
			r.Coming++
			if before := i.view.BeforeBind(m.Pod.UID); len(before) > 0 {
				p.Note = before[0]
			}
		default:
			r.Bound++
		}
		r.Pods = append(r.Pods, p)
		r.Priority = m.Pod.Spec.Priority
	}
}

// desired returns how many pods a gang shall have: as its pods state, or as there are.
func (i Inspector) desired(key cluster.GangKey, waiting []*cluster.Pod, live int) int {
	most := live + len(waiting)
	for _, p := range waiting {
		most = max(most, p.Gang.Desired)
	}
	i.view.Snapshot().EachInGang(key, func(p *cluster.Pod, _ cluster.NodeIdx) {
		if p.Gang != nil && !p.Terminating {
			most = max(most, p.Gang.Desired)
		}
	})
	return most
}

// addOneByOne lists the waiting pods of a group that are scheduled one by one.
func (i Inspector) addOneByOne(r *record.GangReport, key cluster.GangKey) {
	for _, p := range i.view.Queue().Apart(key) {
		u, where, _ := i.view.Queue().Lookup(p.UID)
		one := record.GangPod{Pod: p.Ref(), State: "waiting", Note: u.GateReason}
		switch {
		case p.Terminating:
			one.State = "terminating"
		case where == record.Gated:
			one.State = "gated"
		}
		r.Pods = append(r.Pods, one)
		r.Where = where
		r.Waiting++
	}
	if obj := i.view.Snapshot().GangObject(key); obj.Priority != nil {
		r.Priority = *obj.Priority
	}
}

// addGangWaiting adds what the queue knows of a gang's unit and, if it may be tried, what a search finds now.
func (i Inspector) addGangWaiting(r *record.GangReport, u *queue.Unit) {
	wait := i.gangWait(u)
	r.Where, r.Since, r.Attempts, r.Priority = wait.where, u.Since, u.Attempts, u.Priority()
	r.Gate, r.Reason, r.BackoffUntil = u.Gate, wait.reason, wait.backoffUntil
	if first, ok := i.view.Gangs().KeptFrom(); u.Extra() && ok {
		r.SparedFor = first.String()
	}
	open := wait.open
	r.Missing = wait.missing(r.Quorum, r.Bound+r.Coming)
	placed := len(r.Pods)
	for _, p := range u.Members {
		one := record.GangPod{Pod: p.Ref(), State: "waiting"}
		switch {
		case p.Terminating:
			one.State = "terminating"
		case !slices.Contains(open, p):
			one.State = "gated"
			_, one.Note = i.view.Gangs().OpenMembers([]*cluster.Pod{p})
		}
		r.Pods = append(r.Pods, one)
	}
	if u.Gate == "" && u.Aside == "" && len(open) > 0 {
		i.addGangFit(r, u, r.Pods[placed:])
	}
}

// gangWait is how the unit of a gang waits.
type gangWait struct {
	where record.SubQueue
	// reason is why the gate is closed, or why the unit is set aside; empty if neither is the case.
	reason       string
	backoffUntil record.Time    // 0 if it does not back off
	open         []*cluster.Pod // the members that may be tried
}

func (i Inspector) gangWait(u *queue.Unit) gangWait {
	w := gangWait{reason: u.GateReason}
	_, w.where, _ = i.view.Queue().Lookup(u.UID())
	w.open, _ = i.view.Gangs().OpenMembers(u.Members)
	if u.Aside != "" {
		w.reason = u.Aside
	}
	if w.where == record.Backoff {
		w.backoffUntil = u.BackoffUntil
	}
	return w
}

// missing returns the number of pods that must be created before a gang is tried, of which live have a node.
func (w gangWait) missing(quorum, live int) int { return max(0, quorum-live-len(w.open)) }

// addGangFit adds what a search for the places of a gang's unit finds now, also to its waiting pods.
func (i Inspector) addGangFit(r *record.GangReport, u *queue.Unit, waiting []record.GangPod) {
	need := i.view.Gangs().Need(u)
	ans := i.tryGang(u, need, r)
	r.Fit = gangFit(need, ans)
	s := i.view.Snapshot()
	for k, p := range need.Members {
		if k >= len(ans.Partial) || ans.Partial[k] == cluster.NoNode {
			continue
		}
		for j := range waiting {
			if waiting[j].Pod.UID == string(p.UID) {
				waiting[j].Node = s.NodeName(ans.Partial[k])
			}
		}
	}
	i.addEstimate(r, u, ans)
}

// tryGang searches places as a cycle would, and victims if there are too few.
func (i Inspector) tryGang(u *queue.Unit, need gang.Need, r *record.GangReport) (ans gang.Answer) {
	err := i.suppose(u.Pod(), func(w *supposition) {
		w.nominations = i.view.Gangs().Nominations(u)
		prof := i.view.Profile(u.Pod().Spec.SchedulerName)
		ans = w.placeGang(u.Key, prof, need)
		if ans.Verdict != gang.Placed {
			r.Preemption = w.unitVictimsOfGang(u.Gang, prof, need, ans)
		}
		if ans.Verdict == gang.Unschedulable || ans.Verdict == gang.GaveUp {
			r.Estimate, r.Basis = w.startByEnds(u.Gang, u.Key, prof, need)
		}
	})
	if err != nil {
		return gang.Answer{Verdict: gang.Failed, Blocked: -1, Err: err}
	}
	return ans
}

// addEstimate adds when the gang may start, if the known ends of pods do not say so: by how its best attempt grew, if
// it did.
func (i Inspector) addEstimate(r *record.GangReport, u *queue.Unit, ans gang.Answer) {
	if r.Estimate != 0 {
		return
	}
	now, past := i.view.Now(), i.view.Gangs().History(u.Gang)
	took := now - past.BlockedSince
	switch {
	case ans.Verdict == gang.Placed:
		r.Estimate, r.Basis = max(now, r.BackoffUntil), "there is room for it now"
	case ans.Verdict == gang.NeverFits:
		r.Basis = "never, with the nodes that there are"
	case past.BlockedSince == 0 || took <= 0:
		r.Basis = "none: it has been tried too short a time"
	case ans.Most <= past.FirstPlaced:
		r.Basis = fmt.Sprintf("none: its best try has not grown in %d s; it was %d of %d pods then",
			took/record.Second, past.FirstPlaced, r.Fit.Needed)
	default:
		grown, left := int64(ans.Most-past.FirstPlaced), int64(r.Fit.Needed-ans.Most)
		r.Estimate = now + record.Time(int64(took)/grown*left)
		r.Basis = fmt.Sprintf("its best try grew from %d to %d of %d pods in %d s, and may go on so",
			past.FirstPlaced, ans.Most, r.Fit.Needed, int64(took)/int64(record.Second))
	}
}

// heldCapacity returns the capacity that is held for a gang, or for another one.
func (i Inspector) heldCapacity(key cluster.GangKey) (mine, other *record.GangHold) {
	held, ok := i.view.Gangs().Held()
	if !ok {
		return nil, nil
	}
	h := &record.GangHold{Gang: held.Gang.String(), Pods: len(held.Pods), Since: held.Since, Until: held.Until,
		Start: held.Start, Backfilled: held.Backfilled}
	for _, p := range held.Pods {
		if node := i.view.Queue().NominationOf(p.UID); node != "" {
			h.Nodes = append(h.Nodes, node)
		}
	}
	slices.Sort(h.Nodes)
	h.Nodes = slices.Compact(h.Nodes)
	if held.Gang == key {
		return h, nil
	}
	return nil, h
}
