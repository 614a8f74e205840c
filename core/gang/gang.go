// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
)

// Need is the request of a search: placements for the pending members of one gang.
type Need struct {
	// Members are all of one profile, in the order of their unit: priority descending, oldest first, name.
	Members []*cluster.Pod
	// Quorum is how many of Members must be placed, whichever those are. The others are placed as capacity allows.
	Quorum int
	// Keep is how many of Members keep their placement at most if all are placed; 0 means all. The others are
	// searched too, so that those that stay are where all could have been, and are then rolled back.
	Keep int
	// Topology lists the domains in which the members must, or should, be together, the widest first.
	Topology []cluster.GangTopology
	// Bound are the rows of members that have a node already: a required topology is confined to their domain.
	Bound []cluster.NodeIdx
	// Budget is the maximum number of searches for a node of one member; 0 means DefaultBudget. One pass over all
	// members is always made.
	Budget int
}

// DefaultBudget is the minimum budget of a gang; large gangs have as much as SeveralPasses take
// (docs/bench/gangs.md).
const (
	DefaultBudget = 1024
	SeveralPasses = 8
)

// Verdict is the result of a search.
type Verdict uint8

// The verdicts.
const (
	// Placed: enough members are placed, and their placements are in the trial.
	Placed Verdict = iota
	// Unschedulable: the cluster as it is has no such placement; nothing was left untried that could have found one.
	Unschedulable
	// NeverFits: there would be none if every pod of the cluster were gone, with the nodes as they are. It is proved.
	NeverFits
	// GaveUp: the budget or the search methods were exhausted, and there may be placements that were not found.
	GaveUp
	// Failed: a plugin or an extender returned an error.
	Failed
)

// String returns the verdict for display.
func (v Verdict) String() string {
	switch v {
	case Placed:
		return "placed"
	case Unschedulable:
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

// Answer is the result of a search with its reasons.
type Answer struct {
	Verdict Verdict
	// Nodes are the rows by member if the gang is placed: cluster.NoNode for a member beyond the quorum that was not
	// placed. Otherwise nil.
	Nodes []cluster.NodeIdx
	// Order lists the placed members in the order of their placement. Each fits with those before it in place.
	Order []int
	// Outcomes are, by placed member, the search that found its row. There is no total and no runner-up if the row
	// was chosen by its remaining capacity.
	Outcomes []place.Outcome
	// Holds is what plugins reserved, by member, if the gang is placed.
	Holds [][]Hold
	// Cut is how many members were placed and rolled back because of Keep.
	Cut int
	// Most is how many members the best try placed, and Partial their rows, by member. If the gang is placed, the
	// best try is the last one.
	Most    int
	Partial []cluster.NodeIdx
	// Blocked is the index of the first member that the best try did not place, -1 if it placed all, and Why the
	// reasons for which each node was rejected, with the members before it in place.
	Blocked int
	Why     place.Rejection
	// Plugins are the names of all plugins that reject some member on some node, or that members themselves may set
	// against each other, sorted: an event for which one of them registered may help the gang. For a placed gang they
	// are known only if members were left unplaced and none was rolled back.
	Plugins []string
	// Proof is the reason in words why the gang never fits.
	Proof string
	// Err is the error that ended the search.
	Err error
	// Tried is how many searches for a node of one member were made.
	Tried int
	// Domains are the values of the topology's narrowest key that contain the members, by name; without a placement,
	// those that were tried. If plugins propose candidates, it is the name of the one that contains the members.
	Domains []string
	// Unavailable is why the gang is in none of the candidates of plugins, if they proposed any.
	Unavailable string
}
