// SPDX-License-Identifier: Apache-2.0

// Package oracle asks upstream kube-scheduler 1.37.1: it builds upstream's own
// cache, snapshot and framework from a scenario and runs the extension points in
// the order of upstream's scheduling cycle over every node, so that the answer
// holds each node's verdict and not only the winner.
//
// Objects are passed to upstream's informers directly, and their handlers run before the call
// returns: no goroutine runs between an object and what plugins see of it.
//
// OpportunisticBatching is off and every node is evaluated (percentageOfNodesToScore 100); these are documented
// differences of kumiki. Feature gates are otherwise upstream's defaults.
//
// Rejected: running upstream's whole Scheduler for each case. It shows only the chosen node and
// the text of the failure. A Sequence does run it, for what depends on the pods before: which
// share of the nodes is evaluated.
package oracle
