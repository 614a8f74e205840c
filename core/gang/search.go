// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"fmt"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
)

// Place looks for places for a gang. What it finds is taken in the ground's trial.
func Place(need Need, g *Ground) Answer {
	if need.Budget == 0 {
		need.Budget = DefaultBudget
	}
	sr := &search{need: need, g: g, slack: len(need.Members) - need.Quorum, best: partial{count: -1, blocked: -1}}
	g.begin(need.Members)
	if sr.slack < 0 {
		sr.best.why.Message = fmt.Sprintf("%d members are there, %d are needed", len(need.Members), need.Quorum)
		return sr.answer(NoRoom)
	}
	return sr.run()
}

// search is one gang in hand.
type search struct {
	need  Need
	g     *Ground
	slack int // how many members may go without a place
	tried int
	best  partial
	err   error
	now   partial // the try in hand
}

// partial is a try: where members are.
type partial struct {
	count   int
	nodes   []cluster.NodeIdx // by member, NoNode for those without a place
	outs    []place.Outcome   // by member
	blocked int               // the first member without a place, -1
	why     place.Rejection
}

func (sr *search) run() Answer {
	order := make([]int, len(sr.need.Members))
	for i := range order {
		order[i] = i
	}
	switch placed := sr.pass(order, nil); {
	case placed:
		return sr.answer(Placed)
	case sr.err != nil:
		return sr.answer(Failed)
	case sr.uniform():
		return sr.answer(NoRoom)
	}
	return sr.answer(GaveUp)
}

// pass places members one after the other on their best rows of those given; nil means all. It tells whether enough found
// a place; if not, none has one.
func (sr *search) pass(order []int, rows []cluster.NodeIdx) bool {
	sr.start()
	missing, twin := 0, -1
	for _, i := range order {
		p := sr.need.Members[i]
		if twin >= 0 && same(sr.need.Members[twin], p) { // the state is as it was when its twin found nothing
			missing++
		} else if sr.put(i, rows) {
			twin = -1
			continue
		} else {
			twin = i
			missing++
		}
		if sr.err != nil || missing > sr.slack {
			sr.keepBest()
			sr.g.rollback(0)
			return false
		}
	}
	sr.keepBest()
	return true
}

// start begins a try.
func (sr *search) start() {
	sr.g.rollback(0)
	now := &sr.now
	now.count, now.blocked, now.why = 0, -1, place.Rejection{}
	if now.nodes == nil {
		now.nodes, now.outs = make([]cluster.NodeIdx, len(sr.need.Members)), make([]place.Outcome, len(sr.need.Members))
	}
	for i := range now.nodes {
		now.nodes[i], now.outs[i] = cluster.NoNode, place.Outcome{}
	}
}

// put gives one member its best row.
func (sr *search) put(i int, rows []cluster.NodeIdx) bool {
	p := sr.need.Members[i]
	sr.tried++
	out := sr.g.place(p, rows)
	if out.Err != nil {
		sr.err = fmt.Errorf("member %s: %w", p.Key(), out.Err)
		sr.block(i, place.Rejection{Message: out.Err.Error()})
		return false
	}
	if out.Node == cluster.NoNode {
		if sr.now.blocked < 0 && sr.now.count > sr.best.count {
			sr.block(i, sr.g.Placer.Why(sr.g.state(), out))
		}
		return false
	}
	if no := sr.g.take(i, p, out.Node); no != nil {
		sr.refused(i, no)
		return false
	}
	sr.now.nodes[i], sr.now.outs[i] = out.Node, out
	sr.now.count++
	return true
}

// refused notes that a plugin kept a member off the row that was chosen for it (upstream words it as if the cluster had
// this one node).
func (sr *search) refused(i int, no *refusal) {
	if no.err != nil {
		sr.err = fmt.Errorf("member %s: running Reserve plugin %q: %w", sr.need.Members[i].Key(), no.by, no.err)
		sr.block(i, place.Rejection{Message: sr.err.Error()})
		return
	}
	sr.block(i, place.Rejection{Plugins: []string{no.by}, Message: fmt.Sprintf("0/1 nodes are available: 1 %s.", no.reject)})
}

func (sr *search) block(i int, why place.Rejection) {
	if sr.now.blocked < 0 {
		sr.now.blocked, sr.now.why = i, why
	}
}

// keepBest remembers the try in hand if none before came further.
func (sr *search) keepBest() {
	if sr.now.count <= sr.best.count {
		return
	}
	sr.best, sr.now = sr.now, partial{}
}

// uniform tells whether no member differs from another.
func (sr *search) uniform() bool {
	for _, p := range sr.need.Members[1:] {
		if !same(sr.need.Members[0], p) {
			return false
		}
	}
	return true
}

// same tells whether no plugin can tell two members apart.
func same(p, q *cluster.Pod) bool {
	return p.Spec == q.Spec && p.Namespace == q.Namespace && p.Nominated == q.Nominated && len(p.Spec.Volumes) == 0 && p.Spec.Devices == nil
}

func (sr *search) answer(v Verdict) Answer {
	a := Answer{Verdict: v, Most: max(sr.best.count, 0), Partial: sr.best.nodes, Blocked: sr.best.blocked, Why: sr.best.why, Err: sr.err, Tried: sr.tried}
	if v != Placed {
		return a
	}
	a.Nodes, a.Outcomes = sr.best.nodes, sr.best.outs
	a.Holds = make([][]Hold, len(sr.need.Members))
	for i := range sr.g.taken {
		a.Holds[sr.g.taken[i].member] = sr.g.taken[i].holds
	}
	return a
}
