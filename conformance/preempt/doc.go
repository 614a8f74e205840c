// SPDX-License-Identifier: Apache-2.0

// Package preempt owns the comparison of the search for victims with upstream's DefaultPreemption: on generated
// clusters, which nodes are candidates, which victims each node has, which node is selected, and the message if
// preemption does not help. Upstream's plugin runs in upstream's framework, with minCandidateNodesPercentage 100, and
// evicts no pod.
//
// Upstream chooses any of several nodes with the same loss; ours must be one of them.
package preempt
