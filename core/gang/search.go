// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
)

// Place searches for a placement of a gang. What it finds is in the context's trial.
func Place(need Need, g *Ground) Answer {
	if need.Budget == 0 {
		need.Budget = max(DefaultBudget, SeveralPasses*len(need.Members))
	}
	sr := &search{need: need, g: g, slack: len(need.Members) - need.Quorum, limit: need.Budget,
		best: partial{count: -1, blocked: -1}}
	g.begin(need.Members)
	if sr.slack < 0 || len(need.Members) == 0 {
		sr.best.why.Message = fmt.Sprintf("%d members are there, %d are needed", len(need.Members), need.Quorum)
		return sr.answer(Unschedulable)
	}
	v := sr.run()
	cut := 0
	if v == Placed && need.Keep > 0 {
		cut = sr.cutTo(max(need.Keep, need.Quorum))
	}
	a := sr.answer(v)
	if a.Cut = cut; v == Placed && cut == 0 && a.Most < len(need.Members) {
		sr.sort() // what may help the unplaced members, whichever is the first of them
		a.Plugins = sr.against()
	}
	return a
}

// against returns the names of the plugins that may reject a member on some row, or that refused one during Reserve.
// The first unplaced member is not enough: another try may have rejected it on a row for another reason.
func (sr *search) against() []string {
	names := sr.kinds.against()
	names = append(names, sr.refusers...)
	slices.Sort(names)
	return slices.Compact(names)
}

// cutTo removes the members that were placed last from their rows until so many are left.
func (sr *search) cutTo(most int) (cut int) {
	for sr.best.count > most {
		i := sr.g.taken[len(sr.g.taken)-1].member
		sr.g.rollback(len(sr.g.taken) - 1)
		sr.best.nodes[i], sr.best.outs[i] = cluster.NoNode, place.Outcome{}
		sr.best.count--
		cut++
	}
	return cut
}

// search is the search for one gang.
type search struct {
	need  Need
	g     *Ground
	kinds *kinds // made after a first pass has failed, or if a topology requires it
	slack int    // how many members may stay unplaced
	tried int
	limit int     // of tried
	now   partial // the current try
	best  partial
	proof string
	err   error

	refusers []string // the plugins that refused a member during Reserve: what they read is not known

	// Of candidates of plugins: the name of the one that holds the gang, or why none does.
	domains     []string
	unavailable string

	fit []cluster.NodeIdx // scratch
}

// partial is a try: the placements of members.
type partial struct {
	count   int
	nodes   []cluster.NodeIdx // by member, NoNode for unplaced ones
	outs    []place.Outcome   // by member
	blocked int               // the first unplaced member, -1
	left    int               // how many members were not tried, if the try failed
	why     place.Rejection
}

// result is the result of a search among some rows.
type result uint8

const (
	found   result = iota
	none           // there is no placement
	unknown        // there may be one that was not found
	broken         // an error; see search.err
)

// rowChoice is how a row is chosen among those that fit a member.
type rowChoice uint8

const (
	byScore    rowChoice = iota // the row that the score plugins prefer
	byLeftover                  // the row with the least capacity left after the member
)

func (sr *search) run() Verdict {
	if v, ok := sr.inCandidates(); ok {
		return v
	}
	if len(sr.need.Topology) > 0 {
		return sr.verdict(sr.inDomains())
	}
	if sr.pass(nil, nil, byScore) {
		return Placed
	}
	if sr.err != nil {
		return Failed
	}
	sr.sort()
	return sr.verdict(sr.solve(nil))
}

// sort computes the kinds of members, once.
func (sr *search) sort() {
	if sr.kinds == nil {
		sr.kinds = sortOut(sr.g, sr.need.Members)
	}
}

// verdict converts the result of the whole search to a verdict.
func (sr *search) verdict(r result) Verdict {
	switch r {
	case found:
		return Placed
	case broken:
		return Failed
	}
	if sr.proof = sr.never(); sr.proof != "" {
		return NeverFits
	}
	if r == none {
		return Unschedulable
	}
	return GaveUp
}

// solve searches rows, nil for all, after the unit's order has been tried.
func (sr *search) solve(rows []cluster.NodeIdx) result {
	fitting := sr.kinds.fitting(rows)
	switch {
	case tooFew(sr.kinds, sr.kinds, fitting, sr.need.Quorum) != "":
		return none
	case sr.kinds.uniform() && sr.kinds.alone && len(sr.refusers) == 0:
		return none // a row that one member leaves free is as good for any other
	}
	ways := sr.kinds.ways(fitting, sr.slack)
	for i, way := range ways {
		for _, choice := range [...]rowChoice{byScore, byLeftover} {
			if i == 0 && choice == byScore {
				continue // that was the unit's order
			}
			if sr.spent() {
				return unknown
			}
			if sr.pass(way, rows, choice) {
				return found
			}
			if sr.err != nil {
				return broken
			}
		}
	}
	if sr.together(ways[min(1, len(ways)-1)], fitting) {
		return found
	}
	if sr.err != nil {
		return broken
	}
	return sr.backtrack(ways, rows, fitting)
}

// spent reports whether the budget is exhausted.
func (sr *search) spent() bool { return sr.tried >= sr.limit }

// pass places members one after the other, each on the row that choice takes of those given. A nil order is the unit's,
// nil rows are all. It reports whether enough were placed; if not, none is.
func (sr *search) pass(order []int, rows []cluster.NodeIdx, choice rowChoice) bool {
	sr.start()
	missing, twin := 0, -1
	for at := range sr.need.Members {
		i := at
		if order != nil {
			i = order[at]
		}
		switch {
		// the state is as it was when no row was found for an equivalent member
		case twin >= 0 && same(sr.need.Members[twin], sr.need.Members[i]):
			missing++
		case sr.put(i, rows, choice):
			twin = -1
		default:
			twin = i
			missing++
		}
		if sr.err != nil || missing > sr.slack {
			sr.now.left = len(sr.need.Members) - at - 1
			sr.keepBest()
			sr.g.rollback(0)
			return false
		}
	}
	sr.best = sr.now
	return true
}

// start starts a try.
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

// refusals is the number of rows on which a member is tried if plugins refuse them during Reserve.
const refusals = 4

// put places one member, and reports whether it found a row.
func (sr *search) put(i int, rows []cluster.NodeIdx, choice rowChoice) bool {
	var first *refusal
	for try := 0; ; try++ {
		out := sr.look(i, rows, choice)
		if out.Node == cluster.NoNode {
			if first != nil && sr.now.blocked == i && sr.err == nil { // the remaining rows are not the reason
				sr.now.blocked = -1
				sr.refused(i, first)
			}
			return false
		}
		no := sr.take(i, out)
		if no == nil {
			return true
		}
		if first == nil {
			first = no
		}
		if no.err != nil || try == refusals || sr.spent() {
			sr.refused(i, no)
			return false
		}
		rows = sr.without(rows, out.Node)
	}
}

// look searches a row for one member.
func (sr *search) look(i int, rows []cluster.NodeIdx, choice rowChoice) place.Outcome {
	var out place.Outcome
	sr.tried++
	p := sr.need.Members[i]
	if choice == byLeftover {
		out, sr.fit = sr.g.Placer.FitWithin(sr.g.state(), p, sr.g.noms, rows, sr.fit[:0])
		out.Node = sr.kinds.tightest(&sr.kinds.all[sr.kinds.of[i]], sr.fit)
	} else {
		out = sr.g.place(p, rows)
	}
	switch {
	case out.Err != nil:
		sr.fail(i, out.Err)
		out.Node = cluster.NoNode
	case out.Node == cluster.NoNode && sr.now.blocked < 0:
		sr.block(i, sr.g.Placer.Why(sr.g.state(), out))
	}
	return out
}

// fail ends the search with an error about a member.
func (sr *search) fail(i int, err error) {
	sr.err = fmt.Errorf("member %s: %w", sr.need.Members[i].Key(), err)
	sr.block(i, place.Rejection{Message: err.Error()})
}

// take places a member on the row of its search.
func (sr *search) take(i int, out place.Outcome) *refusal {
	if no := sr.g.take(i, sr.need.Members[i], out.Node); no != nil {
		if !slices.Contains(sr.refusers, no.by) {
			sr.refusers = append(sr.refusers, no.by)
		}
		return no
	}
	sr.now.nodes[i], sr.now.outs[i] = out.Node, out
	sr.now.count++
	return nil
}

// untake removes the newest member, i, from its row.
func (sr *search) untake(i int) {
	sr.g.rollback(len(sr.g.taken) - 1)
	sr.now.nodes[i], sr.now.outs[i] = cluster.NoNode, place.Outcome{}
	sr.now.count--
}

// without returns rows except one; nil rows are all.
func (sr *search) without(rows []cluster.NodeIdx, n cluster.NodeIdx) []cluster.NodeIdx {
	if rows == nil {
		rows = everyRow(sr.g.state())
	}
	return slices.DeleteFunc(slices.Clone(rows), func(row cluster.NodeIdx) bool { return row == n })
}

// everyRow returns the rows that have a node.
func everyRow(s cluster.Snapshot) []cluster.NodeIdx {
	rows := make([]cluster.NodeIdx, 0, s.Rows())
	for n := range s.Rows() {
		if s.Node(cluster.NodeIdx(n)) != nil {
			rows = append(rows, cluster.NodeIdx(n))
		}
	}
	return rows
}

// refused records that a plugin refused the row that was chosen for a member (upstream words it as if the cluster had
// this one node).
func (sr *search) refused(i int, no *refusal) {
	if no.err != nil {
		sr.fail(i, fmt.Errorf("running Reserve plugin %q: %w", no.by, no.err))
		return
	}
	sr.block(i, place.Rejection{Plugins: []string{no.by}, Message: fmt.Sprintf("0/1 nodes are available: 1 %s.",
		no.reject)})
}

func (sr *search) block(i int, why place.Rejection) {
	if sr.now.blocked < 0 {
		sr.now.blocked, sr.now.why = i, why
	}
}

// keepBest remembers the current try if none before placed more.
func (sr *search) keepBest() {
	if sr.now.count <= sr.best.count {
		return
	}
	sr.best = sr.now
	sr.best.nodes, sr.best.outs = slices.Clone(sr.now.nodes), nil
}

func (sr *search) answer(v Verdict) Answer {
	a := Answer{Verdict: v, Most: max(sr.best.count, 0), Partial: sr.best.nodes, Blocked: sr.best.blocked,
		Why: sr.best.why, Proof: sr.proof, Err: sr.err, Tried: sr.tried}
	a.Unavailable, a.Domains = sr.unavailable, sr.domains
	if a.Domains == nil {
		a.Domains = sr.where(sr.best.nodes)
	}
	if v != Placed {
		if sr.kinds != nil {
			a.Plugins = sr.against()
		}
		return a
	}
	a.Nodes, a.Outcomes = sr.best.nodes, sr.best.outs
	a.Holds = make([][]Hold, len(sr.need.Members))
	for _, t := range sr.g.taken {
		a.Holds[t.member] = t.holds
		a.Order = append(a.Order, t.member)
	}
	return a
}
