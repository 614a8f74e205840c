// SPDX-License-Identifier: Apache-2.0

// Package units owns the choice of victims by preemption units (workload-aware preemption): a gang preempts, or is
// among the victims. A unit is a gang that is only evicted whole, or a pod. The search changes nothing: it works in
// a trial and rolls it back; the engine acts on the answer.
//
// The reference algorithm evicts all units of lower priority, asks for a placement of the whole preemptor, and
// spares units one by one if there is still a placement beside them: first those whose eviction would violate a
// disruption budget, then by priority, then the larger ones, then those that have run longest. Each remaining
// victim is needed (rule R7), and the highest priority is the lowest possible one among units that violate no
// budget. The loss is not always the smallest one (answer A11: budgets, highest priority, units, pods, the newest),
// because finding that is a set cover problem.
//
// Four things make the search faster than the reference algorithm:
//
//   - A bound on the capacity (capacity.go) says what a set of units frees for the members, node by node and domain by
//     domain. Sets that free too little are never tried. If members are alike and amounts alone reject them, the
//     capacity decides and one dry run confirms it.
//   - The smallest loss among few units is found and proved by branch and bound (subsets.go). Among more units the
//     answer is the better one of two: that of the reference algorithm, and one that spares those units first that
//     free least.
//   - If there are many units and the capacity is no guide, a placement comes first, and then the units in its way
//     (placement.go). That answer may cost more than that of the reference algorithm, which would take thousands of
//     dry runs.
//   - One pod for which amounts alone decide needs one node with enough capacity (single.go). Each node gets a lower
//     bound by what its units hold, which an index keeps between searches (index.go), and the cheapest set is found
//     and proved.
package units
