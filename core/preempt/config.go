// SPDX-License-Identifier: Apache-2.0

package preempt

import "github.com/kumiki-scheduler/kumiki/record"

// Config is how a profile preempts.
type Config struct {
	// Limit bounds how many candidates a search finds before it ends; nil means all nodes are searched. It is set if
	// the configuration file states DefaultPreemptionArgs.
	Limit *Limit
	// PodsOnly forbids evictions for gangs (upstream: DefaultPreemption is off at PodGroupPostFilter).
	PodsOnly bool
	// Sync allows a pod to be tried again before its evictions are carried out (upstream without
	// SchedulerAsyncPreemption).
	Sync bool
	// Strict forbids evictions against a disruption budget (answer A12). Without it they happen if there is no other
	// way (upstream).
	Strict bool
	// VictimTimeout is how long after the end of its grace period a terminating pod still counts as capacity to come,
	// in a search by preemption units; 0 counts it for as long as it exists (upstream).
	VictimTimeout record.Time
	// After is how long a unit must have been unschedulable before pods are evicted for it, so that an autoscaler can
	// create nodes first; 0 for no time (upstream).
	After record.Time
	// Runs bounds the dry runs of one pod in a search by preemption units, approximately; 0 stands for
	// units.DefaultDryRuns.
	Runs int
}

// Limit is how many candidates are enough: the larger of both fields, at most the number of nodes to search
// (upstream: DefaultPreemptionArgs).
type Limit struct {
	// MinPercentage is a share of the nodes on which evictions may help, 0 to 100 (minCandidateNodesPercentage).
	MinPercentage int32
	// MinAbsolute is a number of nodes (minCandidateNodesAbsolute).
	MinAbsolute int32
}

// of returns how many candidates are enough among n nodes.
func (l *Limit) of(n int) int {
	if l == nil {
		return n
	}
	return min(n, max(n*int(l.MinPercentage)/100, int(l.MinAbsolute)))
}
