// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/deadline"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/core/replica"
	"github.com/kumiki-scheduler/kumiki/core/shard"
)

// Waiting reports whether a proposal can be checked.
func (a *Arbiter) Waiting() bool { return a.inbox.Ready() }

// Next checks the proposal that is next. Must be called if Waiting, in a transaction of its own, after Note. inHand is
// set to the unit that is being checked.
func (a *Arbiter) Next(inHand **queue.Unit) {
	p, verdict, repeated, _ := a.inbox.Next()
	ans := shard.Answer{Verdict: verdict}
	if repeated {
		_, ans.Stays = a.lentIn(p)
	} else {
		ans.Verdict = shard.Gone // of a proposal whose check panics
		defer func() { a.inbox.Answered(p.From, ans.Verdict) }()
	}
	defer func() {
		ans.Session, ans.Sequence = p.Session, p.Sequence
		a.answers[p.From] = append(a.answers[p.From], ans)
	}()
	if !repeated {
		ans = a.judge(p, inHand)
	}
}

// lentIn returns the loan of the unit of a proposal; ok is false if the unit is not lent in its session.
func (a *Arbiter) lentIn(p Proposal) (loan shard.Loan, ok bool) {
	loan, ok = a.loans.Of(p.Unit)
	return loan, ok && loan.To == p.From && loan.Session == p.Session
}

// judge checks a proposal that was not answered yet, and acts on it.
func (a *Arbiter) judge(p Proposal, inHand **queue.Unit) shard.Answer {
	gone := shard.Answer{Verdict: shard.Gone}
	loan, lent := a.lentIn(p)
	if !lent {
		return gone
	}
	u, _, waits := a.cfg.Queue.Lookup(cluster.UID(a.lent[p.Unit][0].UID))
	a.loans.Return(p.Unit, p.Session) // so the gate is open
	switch {
	case !waits || ID(u) != p.Unit, u.Gang == (cluster.GangKey{}) && u.Pod().Terminating,
		!a.cfg.Queue.TakeGated(u, GateName):
		a.endLoan(p.Unit, loan.To, "it cannot be placed at present")
		return gone
	}
	*inHand = u
	a.forgetPods(p.Unit)
	no := a.cfg.Host.Take(u, p.On)
	if no == nil {
		a.forget(p.Unit)
		return shard.Answer{Verdict: shard.Taken}
	}
	ans := shard.Answer{Verdict: shard.Refused, Node: no.Node, Plugin: no.Plugin, Reason: no.Reason,
		Entry: a.newest.Since(no.Node, p.At)}
	switch a.loans.Refused(a.describe(u)) {
	case shard.DecideHere:
		a.cfg.Host.Decide(u)
		return ans
	case shard.Promise:
		ans.Promised = a.promise(u, p)
	}
	ans.Stays = true
	a.lend(p.Unit, u, p.From, false)
	return ans
}

// promise is capacity that is kept for a unit for a while, by nominations: proposals of others of its priority or less
// are checked against them.
type promise struct {
	end  deadline.Entry
	pods []cluster.UID
}

// promise keeps the nodes of a refused proposal that are still free for its unit, in flight, and returns them.
func (a *Arbiter) promise(u *queue.Unit, p Proposal) (kept []shard.Placement) {
	a.endPromise(p.Unit)
	made, entry := &promise{end: deadline.Entry{Phase: a.cfg.Phase}}, replica.Promise{}
	for _, on := range p.On {
		i := slices.IndexFunc(u.Members, func(m *cluster.Pod) bool { return string(m.UID) == on.Pod.UID })
		if i < 0 || !a.cfg.Host.Fits(u.Members[i], on.Node) {
			continue
		}
		a.cfg.Queue.Nominate(u.Members[i], on.Node)
		made.pods = append(made.pods, u.Members[i].UID)
		entry.On = append(entry.On, replica.Placement{Pod: u.Members[i], Node: on.Node})
		kept = append(kept, on)
	}
	if len(kept) == 0 {
		return nil
	}
	entry.Until = a.cfg.Host.Now() + shard.PromiseFor
	a.cfg.Deadlines.Set(&made.end, entry.Until)
	a.promises[p.Unit] = made
	a.cfg.Log.Append(replica.Entry{Kind: replica.Promised, Unit: p.Unit, Promise: entry})
	return kept
}

// endPromise ends what is promised to a unit, if anything is.
func (a *Arbiter) endPromise(id string) {
	made := a.promises[id]
	if made == nil {
		return
	}
	a.cfg.Deadlines.Stop(&made.end)
	delete(a.promises, id)
	for _, uid := range made.pods {
		a.cfg.Queue.Unnominate(uid)
	}
	a.cfg.Log.Append(replica.Entry{Kind: replica.PromiseEnded, Unit: id})
}

// Due ends promises whose time has come.
func (a *Arbiter) Due() {
	var over []string
	for id, made := range a.promises { // order: sorted below
		if at := made.end.At(); at != 0 && at <= a.cfg.Host.Now() {
			over = append(over, id)
		}
	}
	slices.Sort(over)
	for _, id := range over {
		a.endPromise(id)
	}
}
