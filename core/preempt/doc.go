// SPDX-License-Identifier: Apache-2.0

// Package preempt owns the question whom to evict so that a pod fits: which nodes evictions can help on, which pods would
// have to go there, and on which node the loss is smallest.
//
// It gives the answer of upstream's DefaultPreemption for one pod (pkg/scheduler/framework/preemption,
// plugins/defaultpreemption): per node, all pods of lower priority are supposed gone, and as many of them as possible are
// spared again, those first that a disruption budget protects, then the most important first; of the nodes, the one with
// the smallest Loss. It changes nothing: the engine acts on the answer.
//
// Most nodes are never tried. The pods of each node are kept in the order of their importance with what they hold
// (shelves). Where amounts alone reject the pod, who must go is a matter of sums. Elsewhere a bound from below comes
// first: whoever goes must hold what is missing, so the most important of them cannot be less important than that. Nodes
// are tried in the order of their bounds until no bound is below the best loss found. Everything is the same as trying
// all nodes one by one; Question.All does that.
//
// Upstream takes any of several nodes of the same loss, in the order of a map. Here it is the first row.
//
// Where gangs take part, as preemptor or among those that may go, the question is which units must go (units.go). A unit
// is a gang that only goes whole, or a pod. The plain form supposes all units of lower priority gone, asks for places for the
// whole preemptor, and spares units one by one, each if there are still places beside it: those first whose eviction would
// break a disruption budget, then those of higher priority, then the larger, then those that have run longest. What is left
// to go is needed unit by unit (rule R7), and its highest priority is as low as can be among units that break no budget. It
// is not the smallest loss (answer A11: budgets, highest priority, units, pods, the newest): to find that is to solve set
// cover.
//
// A bound on the room (units_room.go) says what a set of units frees for members, row by row and domain by domain. Sets that
// free too little are never tried; where members are alike and amounts alone reject, the room decides and one dry run
// confirms. The least loss among few units is found and proved by going through their sets (units_sets.go). Among more, the
// answer is the better one of two sparings, the plain form's and one that spares those first that free least, so never a
// larger loss than the plain form's. Among many of which the room is no guide, places come first and then who is in their way
// (units_places.go); that one may cost more than the plain form's, which would take thousands of dry runs.
//
// One pod for which amounts alone decide needs one row with room (units_one.go): rows are bounded from below by what their
// units hold, which is kept between searches (units_rows.go), and the cheapest set of all is found and proved.
//
// Rejected: trying a sample of the nodes as upstream's default does, where a smaller loss may stand on a node that was not
// looked at; sets of victims smaller than sparing one by one finds, where upstream's answer is expected; and sums per
// priority level, which would have to be searched for the pods themselves in the end.
package preempt
