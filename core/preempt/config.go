// SPDX-License-Identifier: Apache-2.0

package preempt

import "github.com/kumiki-scheduler/kumiki/record"

// Config is how a profile preempts.
type Config struct {
	// Limit bounds how many candidates are found before the search for more ends; nil looks at every node. It is what
	// DefaultPreemptionArgs say where the configuration file has them written.
	Limit *Limit
	// Sync tells that a pod that evicts others may be tried again before the evictions are carried out (upstream without
	// SchedulerAsyncPreemption).
	Sync bool
	// Strict never has pods evicted against a disruption budget (answer A12); otherwise it is done where there is no other room
	// (upstream).
	Strict bool
	// VictimTimeout is for how long after the end of its grace period a pod that is being deleted is counted on as room to
	// come, where victims are sought in units; 0 for as long as it is there (upstream).
	VictimTimeout record.Time
	// Runs is about how many dry runs of one pod a search in units may take; 0 is for DefaultRuns.
	Runs int
}

// Limit is how many candidates are enough: the larger of the two, at most as many as there are nodes to look at (upstream:
// DefaultPreemptionArgs).
type Limit struct {
	// MinPercentage is of the nodes on which evictions might help, 0 to 100 (minCandidateNodesPercentage).
	MinPercentage int32
	// MinAbsolute is a number of nodes (minCandidateNodesAbsolute).
	MinAbsolute int32
}

// of is how many candidates are enough among n nodes.
func (l *Limit) of(n int) int {
	if l == nil {
		return n
	}
	return min(n, max(n*int(l.MinPercentage)/100, int(l.MinAbsolute)))
}
