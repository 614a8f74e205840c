// SPDX-License-Identifier: Apache-2.0

// Package fakenodes owns the role nodes: it creates the nodes of a spec, keeps them ready, and
// simulates the kubelets for their pods.
//
// KWOK's controllers send node heartbeats and renew leases. This package serves the pods: a
// single watch feeds a ledger in the order of the store, which decides the admission of a bound
// pod before anything is written about it, and workers write the pods' status.
//
// Rejected: KWOK's pod stages. They know no admission, so oversell stays hidden; an annotation that a stage waits for
// costs a second write per pod; they write without a precondition on the UID, so a pod that is created again under
// its old name can be started or deleted instead of the old one; and a write that failed with a server error is not
// tried again. Rejected: an informer for the ledger. It may merge the events of one pod, and then a bind can be seen
// before the deletion that freed its capacity.
package fakenodes
