// SPDX-License-Identifier: Apache-2.0

// Package cluster owns the scheduler's cluster state: which nodes exist, what they offer, which pods are on them, and
// which pods are assumed there (decided, but not yet observed).
//
// Store has one writer, the engine. All other packages read a Snapshot, a type without mutating methods, or speculate
// in a Trial, whose undo uses the Store's own journal. Package convert makes the compact immutable records (Pod, Node)
// of API objects outside the scheduling loop.
//
// Accounting has three visible parts for each node and resource: allocatable, confirmed (observed as bound) and
// assumed (decided, not yet observed). requested = confirmed + assumed. The ledger keeps, for each pod, the record
// whose amounts it added, and subtracts exactly those, whatever the object says later.
//
// Rejected: a copied snapshot for each cycle (the copy costs the changes and a tree walk, and only the loop reads
// it); a column as long as the rows for every resource (if each of 3,000 nodes offers one of its own, that is 0.7 GB
// of zeros, and each change of a row scans all of them); timeouts on assumed pods (an outcome or a watch event
// removes a pod, never the passing of time).
package cluster
