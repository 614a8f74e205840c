// SPDX-License-Identifier: Apache-2.0

package plugin

import "github.com/kumiki-scheduler/kumiki/core/cluster"

// Placements proposes sets of nodes for a gang and chooses among them (upstream: PlacementGenerate and PlacementScore).
type Placements interface {
	// Generate returns the candidates for the members of a gang, which are at least one. It is called once in a search.
	Generate(s cluster.Snapshot, members []*cluster.Pod) Candidates
}

// Candidates is the answer of Placements. If Rejected and Err are empty and there are no candidates, the plugins leave
// the gang to the search.
type Candidates struct {
	List []Candidate
	// Search follows the search among the candidates. It is nil if there are none.
	Search CandidateSearch
	// By is the plugin that rejects the gang, Rejected its reason.
	By, Rejected string
	Err          error
}

// Candidate is a set of nodes for a gang.
type Candidate struct {
	Name string
	// Rows are in index order, each with a node; nil stands for all nodes.
	Rows []cluster.NodeIdx
	// Err is what is wrong with the candidate. It fails the search, once the candidates before have been tried.
	Err error
}

// CandidateSearch follows the search among candidates. Indexes are those of Candidates.List.
type CandidateSearch interface {
	// Enter is called before members are placed in a candidate, also if it has been tried before.
	Enter(candidate int)
	// Totals returns a total for each of the tries, at least two, of which none is in place.
	Totals(s cluster.Snapshot, tries []CandidatePlacement) ([]int64, error)
	// Leave ends the search. kept is the candidate in which the members are placed again, as they were, -1 for none.
	Leave(kept int)
}

// CandidatePlacement is a candidate that holds enough members.
type CandidatePlacement struct {
	Candidate int
	// Nodes are the rows by member; cluster.NoNode for a member that has none.
	Nodes []cluster.NodeIdx
}
