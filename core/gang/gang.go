// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
)

// Need is what is asked: places for the pending members of one gang.
type Need struct {
	// Members are all of one profile, in the order of their unit: priority descending, oldest first, name.
	Members []*cluster.Pod
	// Quorum is how many of Members must get a place, whichever those are. The others get one where there is one left.
	Quorum int
	// Keep is how many of Members keep a place at most when all are placed; 0 means all. The others are looked for,
	// so that those who stay are where all could have been, and give their places back.
	Keep int
	// Topology are the domains in which the members must, or should, be together, the widest first.
	Topology []cluster.GangTopology
	// Bound are the rows of members that have a node already: where a topology is required, its domain is theirs.
	Bound []cluster.NodeIdx
	// Budget is how many searches for a node of one member the whole may take; 0 means DefaultBudget. One pass over all
	// members is always made.
	Budget int
}

// DefaultBudget is what a gang has at least; large ones have more, as much as SeveralPasses take (docs/bench/gangs.md).
const (
	DefaultBudget = 1024
	SeveralPasses = 8
)

// Verdict is what came of a search.
type Verdict uint8

// The verdicts.
const (
	// Placed: enough members have a place, and hold it in the trial.
	Placed Verdict = iota
	// NoRoom: there are no such places as the cluster is now; nothing was left untried that could have found them.
	NoRoom
	// NeverFits: there would be none if every pod of the cluster were gone, and the nodes as they are. It is proved.
	NeverFits
	// GaveUp: the budget was spent, or the ways to search were, and there may be places that were not found.
	GaveUp
	// Failed: a plugin or foreign code met an error.
	Failed
)

// String is the verdict for people.
func (v Verdict) String() string {
	switch v {
	case Placed:
		return "placed"
	case NoRoom:
		return "does not fit now"
	case NeverFits:
		return "cannot fit even on an empty cluster"
	case GaveUp:
		return "gave up"
	case Failed:
		return "failed"
	}
	return ""
}

// Answer is what came of a search and what is known of why.
type Answer struct {
	Verdict Verdict
	// Nodes are the rows by member when the gang is placed: cluster.NoNode for one beyond the quorum that found no
	// place. Otherwise nil.
	Nodes []cluster.NodeIdx
	// Order lists the members that have a place in the order in which they were placed. Each fits with those before
	// it in their places.
	Order []int
	// Outcomes are, by member that has a place, the search that found it. Where a row was taken for what it has left,
	// there is no total and no runner-up.
	Outcomes []place.Outcome
	// Holds is what plugins hold, by member, when the gang is placed.
	Holds [][]Hold
	// Cut is how many members found a place and gave it back.
	Cut int
	// Most is how many members the best try placed, and Partial where, by member. When the gang is placed, the best
	// try is the last one.
	Most    int
	Partial []cluster.NodeIdx
	// Blocked is the index of the first member that found no place in the best try, -1 when all did, and Why what
	// kept it from every node, with the members placed before it in their places.
	Blocked int
	Why     place.Rejection
	// Plugins are the names of all plugins that keep some member from some node, or that members themselves may bring
	// up against each other, sorted: an event that one of them waits for may help the gang. Of a gang that is placed
	// they are known only when members were left without a place, none of which gave one back.
	Plugins []string
	// Proof says in words why the gang never fits.
	Proof string
	// Err is what failed the search.
	Err error
	// Tried is how many searches for a node of one member were made.
	Tried int
	// Domains are the values of the topology's narrowest key in which the members are, by name; where there is no
	// place, those that were tried.
	Domains []string
}
