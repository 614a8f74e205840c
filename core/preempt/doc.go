// SPDX-License-Identifier: Apache-2.0

// Package preempt owns the choice of victims for one pod: the nodes on which evictions can help, the pods to evict
// on each, and the node with the smallest loss.
//
// The answer is that of upstream's DefaultPreemption (pkg/scheduler/framework/preemption, plugins/defaultpreemption).
// On each node, all pods of lower priority are removed; then as many as possible are spared again: first those that a
// disruption budget protects, then by importance. Of the nodes, the one with the smallest Loss is chosen. The search
// changes nothing: the engine acts on the answer.
//
// Most nodes are never tried. An index holds the pods of each node by importance, with the amounts that they hold. If
// amounts alone reject the pod, sums decide who is evicted. Otherwise a lower bound comes first: the victims must
// hold what is missing, so the most important of them cannot be less important than that. Nodes are tried in the
// order of their bounds until no bound is below the smallest loss found. The answer equals that of a trial of all
// nodes, which Question.All makes.
//
// If several nodes have the same loss, upstream takes any of them, in map order. This package takes the first row.
//
// Package victim has what this search and the search by preemption units (package units) share: the order of
// importance, the disruption budgets, and the sums.
//
// Rejected: a sample of the nodes, as upstream's default has it, because a node outside of the sample may have a
// smaller loss; sets of victims smaller than sparing one by one finds, because upstream's answer is expected; sums
// per priority level, because the pods themselves are needed in the end.
package preempt
