// SPDX-License-Identifier: Apache-2.0

// Package preempt owns the comparison of the search for victims with upstream's DefaultPreemption: on generated
// clusters, which nodes are candidates and who would have to go from each, which node is taken, and what is told
// where nothing helps. Upstream's plugin runs in upstream's framework, with minCandidateNodesPercentage 100, and
// evicts no pod.
//
// Upstream takes any of several nodes of the same loss; ours must be one of them.
package preempt
