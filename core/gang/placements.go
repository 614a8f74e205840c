// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"fmt"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// candidates is the search among the sets of nodes that plugins propose.
type candidates struct {
	sr      *search
	list    []plugin.Candidate
	follows plugin.CandidateSearch
	first   string // the status of the first candidate that holds too few members
	tries   []plugin.CandidatePlacement
	found   []held // by try
}

// held is a try that placed enough members.
type held struct {
	partial
	order []int // of the placements
}

// inCandidates searches the sets of nodes that plugins propose, and places the gang in the one that they score best, as
// upstream does (pkg/scheduler/schedule_one_podgroup.go, podGroupSchedulingPlacementAlgorithm). If one pass places
// enough members in no candidate, each is searched with all methods. ok is false if no plugin proposes candidates.
//
// The candidates take the place of the topology: a plugin that respects it proposes its domains.
func (sr *search) inCandidates() (v Verdict, ok bool) {
	if sr.g.Placements == nil {
		return 0, false
	}
	got := sr.g.Placements.Generate(sr.g.state(), sr.need.Members)
	switch {
	case got.Err != nil:
		sr.err = got.Err
		return Failed, true
	case got.Rejected != "":
		sr.best.why = place.Rejection{Plugins: []string{got.By}, Message: got.Rejected}
		sr.unavailable = got.Rejected
		return Unschedulable, true
	case len(got.List) == 0:
		return 0, false
	}
	sr.need.Topology = nil
	c := candidates{sr: sr, list: got.List, follows: got.Search}
	kept, r := c.search()
	if r == found {
		sr.domains = []string{c.list[kept].Name}
		return Placed, true
	}
	v = sr.verdict(r)
	if v != Failed {
		sr.unavailable = fmt.Sprintf("0/%d placements are available, first placement status: %s", len(c.list), c.first)
	}
	return v, true
}

// search places the gang. kept is the candidate that contains it.
func (c *candidates) search() (kept int, r result) {
	r = c.try()
	best, err := 0, error(nil)
	if r == found {
		best, err = c.best()
	}
	if r != found || err != nil {
		c.follows.Leave(-1)
	} else {
		kept = c.tries[best].Candidate
		c.follows.Leave(kept) // plugins reserve for what is kept
		err = c.placeAgain(best)
	}
	if err != nil {
		c.sr.err, r = err, broken
	}
	return kept, r
}

// try searches the candidates. What it finds is in tries, and not in place.
func (c *candidates) try() result {
	sr := c.sr
	for i := range c.list {
		if sr.err = c.list[i].Err; sr.err == nil {
			c.onePass(i)
		}
		if sr.err != nil {
			return broken
		}
	}
	if len(c.tries) > 0 {
		return found
	}
	sr.sort()
	return c.thoroughly()
}

// onePass makes one pass in a candidate, in the unit's order.
func (c *candidates) onePass(i int) {
	c.follows.Enter(i)
	switch {
	case c.sr.pass(nil, c.list[i].Rows, byScore):
		c.keep(i)
	case i == 0:
		c.first = c.sr.progress()
	}
}

// thoroughly searches each candidate with all methods and its share of the remaining budget.
func (c *candidates) thoroughly() result {
	sr, r, budget := c.sr, none, c.sr.limit
	for i := range c.list {
		sr.limit = sr.tried + (budget-sr.tried)/(len(c.list)-i)
		c.follows.Enter(i)
		got := sr.solve(c.list[i].Rows)
		sr.limit = budget
		switch {
		case got == broken:
			return broken
		case got == found:
			c.keep(i)
			r = found
		case got == unknown && r == none:
			r = unknown
		}
	}
	return r
}

// keep notes what a search has placed in a candidate, and takes it off its rows.
func (c *candidates) keep(i int) {
	sr := c.sr
	h := held{partial: sr.best}
	h.nodes, h.outs = slices.Clone(h.nodes), slices.Clone(h.outs)
	for _, t := range sr.g.taken {
		h.order = append(h.order, t.member)
	}
	c.found = append(c.found, h)
	c.tries = append(c.tries, plugin.CandidatePlacement{Candidate: i, Nodes: h.nodes})
	sr.g.rollback(0)
}

// best returns the try with the highest total; of several it draws one. A single try is not scored.
func (c *candidates) best() (int, error) {
	if len(c.tries) == 1 {
		return 0, nil
	}
	totals, err := c.follows.Totals(c.sr.g.state(), c.tries)
	if err != nil {
		return 0, err
	}
	highest := slices.Max(totals)
	var ties []int
	for i, total := range totals {
		if total == highest {
			ties = append(ties, i)
		}
	}
	if len(ties) == 1 {
		return ties[0], nil
	}
	return ties[c.sr.g.Draw(len(ties))], nil
}

// placeAgain places the members as a try had them. Nothing is evaluated again.
func (c *candidates) placeAgain(try int) error {
	sr, h := c.sr, c.found[try]
	for _, i := range h.order {
		if no := sr.g.take(i, sr.need.Members[i], h.nodes[i]); no != nil {
			sr.g.rollback(0)
			return fmt.Errorf("placing member %s again: plugin %q: %s", sr.need.Members[i].Key(), no.by,
				textOf(no.reject, no.err))
		}
	}
	sr.best = h.partial
	return nil
}

// progress returns the status of the try that has just failed, in the words of upstream's GangScheduling
// (PlacementFeasible).
func (sr *search) progress() string {
	least, placed := 1, len(sr.need.Bound)+sr.now.count
	if of := sr.need.Members[0].Gang; of != nil {
		if obj := sr.g.state().GangObject(of.Key); obj != nil && !obj.Basic {
			least = obj.MinCount
		}
	}
	if placed >= least {
		return "pod group is unschedulable"
	}
	return fmt.Sprintf("minCount (%d) cannot be satisfied: %d scheduled, %d remaining", least, placed, sr.now.left)
}
