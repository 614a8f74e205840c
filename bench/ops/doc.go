// SPDX-License-Identifier: Apache-2.0

// Package ops owns how a workload is carried out: Run takes the operations of a plan one after the other and makes them
// happen on an API server. It knows no scheduler. What becomes of the pods a Watch sees, from outside; what was measured
// when is in the Outcome.
//
// Objects that a template leaves to generateName get names from here, the same in every run: schedulers that are compared
// meet the same objects. They are made in the order of their index, some of them at once, and the first that fails ends
// the run with its operation and name.
//
// The cluster is started with ClusterArgs. It needs no controllers, unless a workload does: claims from templates are made
// by one.
//
// It differs from scheduler_perf (kubernetes, test/integration/scheduler_perf) where that does not do what its fields say:
// the allocatable resources of nodeAllocatableStrategy reach the nodes (there a patch of the node leaves its status as it
// was), a wait is for the pods of the operation and not for as many as there are in the namespace, and in a steady state
// each pod is replaced when it is scheduled, not all of them when the last one is.
//
// Rejected: polling lists to find out whether pods are scheduled (the API server is what is measured, and an answer can be
// a second late); a goroutine for each pod.
package ops
