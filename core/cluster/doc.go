// SPDX-License-Identifier: Apache-2.0

// Package cluster owns the scheduler's picture of the cluster: which nodes there are, what they offer, which pods
// sit on them and which are decided but not yet seen there.
//
// Store has one writer, the engine. Everyone else reads a Snapshot, a type without mutating methods, or speculates in
// a Trial, whose undo comes from the Store's own journal. Pods and nodes enter as compact immutable records (Pod,
// Node) made by Intake outside the scheduling loop.
//
// Accounting has three visible parts per node and resource: allocatable, confirmed (seen bound) and assumed (decided,
// not yet seen). requested = confirmed + assumed. The ledger keeps, for each pod, the record whose amounts it added,
// and removes exactly those, whatever the object says later.
//
// Rejected: a copied snapshot per cycle (the copy costs what changed plus a tree walk, and nobody but the loop reads
// it); a column as long as the rows for every resource (where each of 3,000 nodes offers one of its own, 0.7 GB of
// zeros, and each change of a row looks at all of them); timeouts on assumed pods (a pod leaves by an outcome or a
// watch event, never because time passed).
package cluster
