// SPDX-License-Identifier: Apache-2.0

package engine

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/arbiter"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/evict"
	"github.com/kumiki-scheduler/kumiki/core/message"
	"github.com/kumiki-scheduler/kumiki/core/planner"
	"github.com/kumiki-scheduler/kumiki/core/queue"
	"github.com/kumiki-scheduler/kumiki/core/replica"
	"github.com/kumiki-scheduler/kumiki/core/shard"
)

// plannerRole decides units that an arbiter lends, and proposes the placements. The store follows the arbiter's log;
// besides it assumes the open proposals. Package planner owns what it knows of the arbiter.
//
// Rejected: to withdraw the own assumptions before each frame and to make them again after it. The store would be the
// arbiter's also in the order of pods on a node, at the price of up to 2,048 assumptions a frame.
type plannerRole struct {
	alone
	p *planner.Planner
	// leaving are the pods of the unit in hand.
	leaving []*flight
}

// Follow makes a planner's engine that goes on from a snapshot of an arbiter's log. It decides nothing before Welcomed.
func Follow(cfg Config, from *replica.Follower) (*Engine, error) {
	e := newEngine(cfg)
	if err := e.store.Restore(from.Store().State()); err != nil {
		return nil, err
	}
	e.search.window.SetNodes(e.store.Snapshot())
	e.count.synced = true
	e.role = &plannerRole{alone: alone{e}, p: planner.New(from.Reader, e.emit)}
	return e, nil
}

func (r *plannerRole) ready() bool { return !r.p.Full() }

func (r *plannerRole) handle(ev Event) bool {
	switch ev := ev.(type) {
	case message.Welcomed:
		r.p.Welcome(ev)
	case message.Entries:
		r.p.Read(ev.Frame)
	case message.Lent:
		for _, p := range ev.Pods {
			r.e.setPod(p)
		}
	case message.LoanOver:
		for _, p := range ev.Pods {
			r.forget(cluster.UID(p.UID))
		}
	case message.Answered:
		for _, ans := range ev.List {
			r.answered(ans)
		}
	case message.Promoted:
		r.promote(ev.Epoch)
	default:
		return false
	}
	return true
}

// proceed applies the entries that were read.
func (r *plannerRole) proceed(ev Event) {
	for _, entry := range r.p.Take() {
		err := error(planner.ErrPanic) // unless it is replaced
		r.e.atomic(ev, func(**queue.Unit) { err = r.apply(entry.Change) })
		if err != nil {
			r.p.Break(err.Error())
			return
		}
	}
}

// apply makes a change that the arbiter's store has made, with all that follows from it here.
func (r *plannerRole) apply(ch cluster.Change) error {
	if ev, is := planner.EventOf(ch); is {
		r.e.handle(ev, nil)
		return nil
	}
	switch ch.Kind {
	case 0: // of the log alone
		return nil
	case cluster.PodTaken:
		return r.taken(ch)
	case cluster.PodFreed:
		r.e.release(ch.UID)
		return nil
	}
	return r.e.store.Apply(ch)
}

// taken follows a decision of the arbiter. What was assumed here for the pod was right, or was not.
func (r *plannerRole) taken(ch cluster.Change) error {
	e, uid := r.e, ch.Pod.UID
	if f := e.binds.of[uid]; f != nil && f.node == ch.Name {
		e.binds.cancel(f)
		e.store.Forget(uid)
	}
	r.forget(uid)
	if err := e.store.Apply(ch); err != nil {
		return err
	}
	if key, is := e.store.Snapshot().HeldGang(uid); is {
		e.gangChanged(key, memberPlaced)
	}
	return nil
}

// forget forgets a pod that is not lent any more, with what was assumed for it.
func (r *plannerRole) forget(uid cluster.UID) {
	if f := r.e.binds.of[uid]; f != nil {
		r.e.binds.endFlight(f)
	}
	if p := r.e.pending[uid]; p != nil {
		r.e.stopWaiting(p)
		if p.Gang != nil {
			r.e.forgetGang(p.Gang.Key)
		}
	}
}

// depart assumes a decided pod on its node until the arbiter answers.
func (r *plannerRole) depart(f *flight) {
	f.stage = proposed
	r.e.binds.add(f)
	r.leaving = append(r.leaving, f)
}

// departed proposes what was decided for a unit.
func (r *plannerRole) departed(u *queue.Unit) {
	on := make([]shard.Placement, len(r.leaving))
	for i, f := range r.leaving {
		on[i] = shard.Placement{Pod: f.pod.Ref(), Node: f.node}
	}
	r.leaving = nil
	r.p.Propose(arbiter.ID(u), u.Gang, u.Priority(), on)
}

// answered follows the answer to a proposal: the unit is decided anew, or is not lent any more.
func (r *plannerRole) answered(ans shard.Answer) {
	open, is := r.p.Answered(ans)
	for _, uid := range open.Pods {
		switch f := r.e.binds.of[uid]; {
		case !ans.Stays:
			r.forget(uid)
		case f != nil:
			f.recalled = planner.Refusal(ans)
			r.e.binds.endRecall(f)
		}
	}
	if u := r.e.queue.Gang(open.Gang); is && !ans.Stays && u != nil { // members that had no node
		for _, p := range slices.Clone(u.Members) {
			r.forget(p.UID)
		}
	}
	for _, on := range ans.Promised {
		if p := r.e.pending[cluster.UID(on.Pod.UID)]; p != nil {
			r.e.queue.Nominate(p, on.Node)
		}
	}
}

// refers reports whether only the arbiter can help a unit that fits nowhere, and gives the unit back then.
func (r *plannerRole) refers(u *queue.Unit, prof *profile, evicts bool) bool {
	if !evicts && len(prof.PostFilters) == 0 {
		return false
	}
	r.e.evictions.Abandon(evict.Unit{Gang: u.Gang})
	r.e.evictions.Abandon(evict.Unit{Pod: u.UID()})
	r.p.GiveBack(arbiter.ID(u))
	r.e.queue.Done(u.UID())
	for _, p := range u.Members {
		r.e.stopWaiting(p)
	}
	return true
}

// end leaves out what a planner does not do or say.
func (r *plannerRole) end() { r.e.out.effects = r.p.Says(r.e.out.effects, r.e.pending, r.e.queue) }

// promote makes a planner's engine the arbiter of an epoch. Its proposals are over, and the binds are sent again that
// its predecessor decided and of which the log has no outcome. Their capacity is in the store.
func (r *plannerRole) promote(epoch shard.Epoch) {
	e := r.e
	for _, f := range e.binds.all() {
		f.recalled = "this instance is the arbiter now"
		e.binds.endRecall(f)
	}
	log := r.p.Become(epoch)
	e.becomeArbiter(log)
	for _, in := range log.Inherited(e.store.Snapshot()) {
		e.count.decisions++
		f := &flight{unit: e.queue.Decided(in.Pod), pod: in.Pod, node: in.Node, decision: e.count.decisions}
		if in.Unit != "" && in.Pod.Gang != nil {
			st := e.stateOf(in.Pod.Gang.Key)
			st.quorum = max(st.quorum, e.quorumOf(in.Pod.Gang.Key, nil).pods)
			f.gang = &GangBind{Name: in.Pod.Gang.Key.Name, Quorum: st.quorum, Decision: f.decision}
		}
		e.pending[in.Pod.UID] = in.Pod
		e.binds.depart(f)
	}
}
