// SPDX-License-Identifier: Apache-2.0

// Package oracle asks upstream kube-scheduler 1.36.3: it builds upstream's own
// cache, snapshot and framework from a scenario and runs the extension points in
// the order of upstream's scheduling cycle over every node, so that the answer
// holds each node's verdict and not only the winner.
//
// OpportunisticBatching is off and every node is looked at
// (percentageOfNodesToScore 100); both are documented differences of kumiki.
// Feature gates are otherwise upstream's defaults.
//
// Rejected: running upstream's whole Scheduler against a fake client. It shows
// only the chosen node and the text of the failure, and costs goroutines and
// informers for each case.
package oracle
