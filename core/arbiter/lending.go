// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/core/shard"
	"github.com/kumiki-scheduler/kumiki/record"
)

// GateName is the name under which a lent unit waits.
const GateName = "Instances"

// Gate holds pods of lent units back. It opens when the loan ends.
type Gate struct {
	// Lent returns why a pod waits; not ok if it is not lent.
	Lent func(*cluster.Pod) (reason string, lent bool)
}

// Name is GateName.
func (Gate) Name() string { return GateName }

// Gated holds a pod that is lent.
func (g Gate) Gated(_ cluster.Snapshot, p *cluster.Pod) (reason string, ok bool) {
	reason, lent := g.Lent(p)
	return reason, !lent
}

// OpensItself says that the end of a loan brings the unit back, and no event.
func (Gate) OpensItself() {}

// ID returns the identity of a unit in messages: the UID of a pod, or source, namespace and name of a gang.
func ID(u *queue.Unit) string {
	if u.Gang != (cluster.GangKey{}) {
		return gangID(u.Gang)
	}
	return string(u.UID())
}

func gangID(key cluster.GangKey) string {
	return string(key.Source) + "/" + key.Namespace + "/" + key.Name
}

// Lent returns which planner decides a pod. ok is false if none does.
func (a *Arbiter) Lent(p *cluster.Pod) (reason string, lent bool) {
	if a.loans.Len() == 0 {
		return "", false
	}
	loan, lent := a.loans.Of(a.has[p.UID])
	if !lent && p.Gang != nil { // it may have come after the loan
		loan, lent = a.loans.Of(gangID(p.Gang.Key))
	}
	if !lent {
		return "", false
	}
	return fmt.Sprintf("instance %s decides it", a.member(loan.To)), true
}

// Lends reports whether a unit in flight goes to a planner, and lends it.
func (a *Arbiter) Lends(u *queue.Unit) bool {
	if a.planners == 0 || a.kept[ID(u)] || a.cfg.Host.Keeps(u) {
		return false
	}
	unit := a.describe(u)
	choice := shard.Dispatch(&a.cfg.Policy, &a.members, &a.loans, a.self, a.busy, unit)
	if choice.Outcome != shard.Lent {
		return false
	}
	a.lend(unit.ID, u, choice.To, true)
	return true
}

// describe returns a unit as the dispatch sees it.
func (a *Arbiter) describe(u *queue.Unit) shard.Unit {
	p := u.Pod()
	owner := string(p.UID)
	switch {
	case u.Gang != (cluster.GangKey{}):
		owner = gangID(u.Gang)
	case p.Owner != 0:
		owner = fmt.Sprint(p.Owner)
	}
	return shard.Unit{
		ID: ID(u), Owner: owner, Pods: len(u.Members), Scheduler: p.Spec.SchedulerName, Namespace: p.Namespace,
		Labels: p.Spec.Labels, Priority: u.Priority(), Foreign: a.cfg.Host.Foreign(p.Spec.SchedulerName),
	}
}

// lend lends a unit in flight and puts it behind the gate. Its planner gets the pods unless it has them.
func (a *Arbiter) lend(id string, u *queue.Unit, to shard.Ordinal, send bool) {
	a.loans.Lend(shard.Loan{Unit: id, Pods: len(u.Members), To: to, Session: a.inbox.Session(to),
		Since: a.cfg.Host.Now()})
	for _, p := range u.Members {
		a.give(id, p)
	}
	if send {
		a.out = append(a.out, message.Lend{To: to, Unit: id, Pods: slices.Clone(u.Members)})
	}
	a.cfg.Queue.Readmit(u)
}

// give records that the planner of a unit has a pod.
func (a *Arbiter) give(id string, p *cluster.Pod) {
	if a.has[p.UID] == "" {
		a.lent[id] = append(a.lent[id], p.Ref())
	}
	a.has[p.UID] = id
}

// takeBack records that the planner of a unit does not have a pod any more.
func (a *Arbiter) takeBack(id string, uid cluster.UID) {
	delete(a.has, uid)
	left := slices.DeleteFunc(a.lent[id], func(p record.PodRef) bool { return p.UID == string(uid) })
	if a.lent[id] = left; len(left) == 0 {
		delete(a.lent, id)
	}
}

// forgetPods records that the planner of a unit has none of its pods any more, and returns them.
func (a *Arbiter) forgetPods(id string) []record.PodRef {
	pods := a.lent[id]
	for _, p := range pods {
		delete(a.has, cluster.UID(p.UID))
	}
	delete(a.lent, id)
	return pods
}

// endLoan follows the end of a loan, of which package shard knows: the planner is to forget the pods, and the unit's
// gate opens.
func (a *Arbiter) endLoan(id string, to shard.Ordinal, cause string) {
	pods := a.forgetPods(id)
	if len(pods) > 0 {
		a.out = append(a.out, message.EndLoan{To: to, Pods: pods})
	}
	var last *queue.Unit // a gang is asked once
	for _, p := range pods {
		if u, _, waits := a.cfg.Queue.Lookup(cluster.UID(p.UID)); waits && u != last {
			a.cfg.Queue.ReconsiderPod(cluster.UID(p.UID), cause)
			last = u
		}
	}
}

// Waits follows a version of a pod that waits: its planner gets it, or learns that it has another unit now.
func (a *Arbiter) Waits(p *cluster.Pod) {
	if a.loans.Len() == 0 {
		return
	}
	u, _, waits := a.cfg.Queue.Lookup(p.UID)
	if !waits {
		return
	}
	id, was := ID(u), a.has[p.UID]
	if was != "" && was != id {
		a.leaves(was, p.UID)
	}
	if loan, lent := a.loans.Of(id); lent {
		a.give(id, p)
		a.out = append(a.out, message.Lend{To: loan.To, Unit: id, Pods: []*cluster.Pod{p}})
	}
}

// Gone follows a pod that does not wait any more, other than by a decision here.
func (a *Arbiter) Gone(p *cluster.Pod) {
	if was := a.has[p.UID]; was != "" {
		a.leaves(was, p.UID)
	}
	a.forget(string(p.UID))
	if p.Gang != nil && !a.cfg.Queue.HasGang(p.Gang.Key) {
		a.forget(gangID(p.Gang.Key))
	}
}

// leaves takes a pod from a lent unit. The loan ends with the last one.
func (a *Arbiter) leaves(id string, uid cluster.UID) {
	loan, _ := a.loans.Of(id)
	for _, p := range a.lent[id] {
		if p.UID == string(uid) {
			a.out = append(a.out, message.EndLoan{To: loan.To, Pods: []record.PodRef{p}})
		}
	}
	a.takeBack(id, uid)
	if len(a.lent[id]) == 0 {
		a.forget(id)
	}
	a.cfg.Queue.ReconsiderPod(uid, "it is in another unit now, which is not lent")
}

// Placed follows a unit that has its placement.
func (a *Arbiter) Placed(u *queue.Unit) { a.forget(ID(u)) }

// forget forgets a unit that has its placement, or does not exist any more.
func (a *Arbiter) forget(id string) {
	a.loans.Gone(id)
	a.endPromise(id)
	delete(a.kept, id)
}
