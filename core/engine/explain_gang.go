// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/record"
)

// sources are the ways to declare a gang in the order in which a name is looked up.
var sources = []cluster.GangSource{
	cluster.GangOfGroup, cluster.GangOfAnnotation, cluster.GangOfSigs, cluster.GangOfVolcano, cluster.GangOfPfnet,
}

// ExplainGang reports on a gang by namespace and name. Asking changes no decision. Of several gangs of the name the first
// by source is told of: native ones first.
func (e *Engine) ExplainGang(namespace, name string) (record.GangReport, bool) {
	key, ok := e.findGang(namespace, name)
	if !ok {
		return record.GangReport{}, false
	}
	return e.explainGang(key, e.queue.Gang(key)), true
}

// findGang is the gang of a name, by the first source that knows one.
func (e *Engine) findGang(namespace, name string) (cluster.GangKey, bool) {
	for _, source := range sources {
		key := cluster.GangKey{Source: source, Namespace: namespace, Name: name}
		if e.queue.Gang(key) != nil || e.gangObject(key) != nil || e.store.Snapshot().GangHolds(key) > 0 {
			return key, true
		}
	}
	return cluster.GangKey{}, false
}

func (e *Engine) explainGang(key cluster.GangKey, u *queue.Unit) record.GangReport {
	s := e.store.Snapshot()
	var waiting []*cluster.Pod
	if u != nil {
		waiting = u.Members
	}
	q := e.quorumOf(key, waiting)
	r := record.GangReport{
		At: e.now, Revision: s.Revision(), Name: key.String(), Source: string(key.Source), Quorum: q.pods, Stated: !q.open,
		Waiting: len(waiting), Where: record.Gone,
	}
	for _, m := range s.GangMembers(key) {
		p := record.GangPod{Pod: m.Pod.Ref(), State: "bound", Node: s.NodeName(m.Row)}
		switch f := e.binds.of[m.Pod.UID]; {
		case m.Pod.Terminating:
			p.State = "terminating"
		case m.Assumed:
			p.State = "coming"
			r.Coming++
			if f != nil && len(f.before) > 0 {
				p.Note = f.before[0]
			}
		default:
			r.Bound++
		}
		r.Pods = append(r.Pods, p)
		r.Priority = m.Pod.Spec.Priority
	}
	if st := e.gangs[key]; st != nil {
		r.PartialSince = st.partialSince
	}
	r.Desired = max(q.pods, e.desired(key, waiting, r.Bound+r.Coming))
	if u != nil {
		e.explainWaiting(&r, u)
	} else if r.OneByOne = e.apart(key); r.OneByOne {
		e.explainApart(&r, key)
	}
	r.Holds, r.HeldByOther = e.explainHold(key)
	return r
}

// desired is how many pods a gang shall have: as is stated, or as there are.
func (e *Engine) desired(key cluster.GangKey, waiting []*cluster.Pod, live int) int {
	most := live + len(waiting)
	for _, p := range waiting {
		most = max(most, p.Gang.Desired)
	}
	for _, m := range e.store.Snapshot().GangMembers(key) {
		if m.Pod.Gang != nil && !m.Pod.Terminating {
			most = max(most, m.Pod.Gang.Desired)
		}
	}
	return most
}

// explainApart lists the pods of a group that wait one by one.
func (e *Engine) explainApart(r *record.GangReport, key cluster.GangKey) {
	for _, p := range e.queue.Apart(key) {
		u, where, _ := e.queue.Lookup(p.UID)
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
	if obj := e.gangObject(key); obj.Priority != nil {
		r.Priority = *obj.Priority
	}
}

func (e *Engine) explainWaiting(r *record.GangReport, u *queue.Unit) {
	_, r.Where, _ = e.queue.Lookup(u.UID())
	r.Since, r.Attempts, r.Priority = u.Since, u.Attempts, u.Priority()
	r.Gate, r.Reason = u.Gate, u.GateReason
	if spared := e.blocked(); u.Extra() && len(spared) > 0 {
		r.SparedFor = spared[0].Gang.String()
	}
	if u.Aside != "" {
		r.Reason = u.Aside
	}
	if r.Where == record.Backoff {
		r.BackoffUntil = u.BackoffUntil
	}
	ready, _, _, _ := e.openMembers(u.Members)
	r.Missing = max(0, r.Quorum-r.Bound-r.Coming-len(ready))
	at := len(r.Pods)
	for _, p := range u.Members {
		one := record.GangPod{Pod: p.Ref(), State: "waiting"}
		switch {
		case p.Terminating:
			one.State = "terminating"
		case !slices.Contains(ready, p):
			one.State = "gated"
			_, _, one.Note, _ = e.openMembers([]*cluster.Pod{p})
		}
		r.Pods = append(r.Pods, one)
	}
	if u.Gate != "" || u.Aside != "" || len(ready) == 0 {
		return
	}
	need, _ := e.gangNeed(u)
	ans := e.tryGang(u, need, r)
	r.Fit = gangFit(need, ans)
	s := e.store.Snapshot()
	for i, p := range need.Members {
		if i >= len(ans.Partial) || ans.Partial[i] == cluster.NoNode {
			continue
		}
		for j := at; j < len(r.Pods); j++ {
			if r.Pods[j].Pod.UID == string(p.UID) {
				r.Pods[j].Node = s.NodeName(ans.Partial[i])
			}
		}
	}
	e.estimate(r, u, ans)
}

// tryGang looks for places as a cycle would. What it supposes for that is gone when it returns.
func (e *Engine) tryGang(u *queue.Unit, need gang.Need, r *record.GangReport) (ans gang.Answer) {
	err := e.supposed(u.Pod(), func(w *supposing) {
		w.promised = e.promises(u)
		prof := e.profiles[u.Pod().Spec.SchedulerName]
		ans = w.placeGang(u.Key, prof, need)
		if ans.Verdict != gang.Placed {
			r.Preemption = w.unitsForGang(u.Gang, prof, need, ans)
		}
	})
	if err != nil {
		return gang.Answer{Verdict: gang.Failed, Blocked: -1, Err: err}
	}
	return ans
}

// estimate says when the gang may start by how its best try grew, if it did.
func (e *Engine) estimate(r *record.GangReport, u *queue.Unit, ans gang.Answer) {
	st := e.gangs[u.Gang]
	switch {
	case ans.Verdict == gang.Placed:
		r.Estimate, r.Basis = max(e.now, r.BackoffUntil), "there is room for it now"
		if r.HeldByOther != nil {
			r.Estimate, r.Basis = 0, ""
		}
	case ans.Verdict == gang.NeverFits:
		r.Basis = "never, with the nodes that there are"
	case st == nil || st.blocked == 0 || e.now <= st.blocked:
		r.Basis = "none: it has been tried too short a time"
	case ans.Most <= st.firstMost:
		r.Basis = fmt.Sprintf("none: its best try has not grown in %d s; it was %d of %d pods then", (e.now-st.blocked)/record.Second, st.firstMost, r.Fit.Needed)
	default:
		grown, left := int64(ans.Most-st.firstMost), int64(r.Fit.Needed-ans.Most)
		took := int64(e.now - st.blocked)
		r.Estimate = e.now + record.Time(took/grown*left)
		r.Basis = fmt.Sprintf("its best try grew from %d to %d of %d pods in %d s, and may go on so", st.firstMost, ans.Most, r.Fit.Needed, took/int64(record.Second))
	}
}

// explainHold is the room held for a gang, or for another.
func (e *Engine) explainHold(key cluster.GangKey) (mine, other *record.GangHold) {
	if e.hold == nil {
		return nil, nil
	}
	h := &record.GangHold{Gang: e.hold.gang.String(), Pods: len(e.hold.pods), Since: e.hold.since, Until: e.hold.until.At()}
	for _, p := range e.hold.pods {
		if node := e.queue.NominationOf(p.UID); node != "" {
			h.Nodes = append(h.Nodes, node)
		}
	}
	slices.Sort(h.Nodes)
	h.Nodes = slices.Compact(h.Nodes)
	if e.hold.gang == key {
		return h, nil
	}
	return nil, h
}
