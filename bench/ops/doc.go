// SPDX-License-Identifier: Apache-2.0

// Package ops owns the execution of a workload: Run executes the operations of a plan one after the other on an API
// server. It knows no scheduler. A Watch observes the pods from outside; the Outcome has the times of the operations.
//
// Objects whose template uses generateName get their names here, the same in every run, so that all compared
// schedulers get the same objects. They are created in the order of their index, some of them concurrently, and the
// first failure ends the run with its operation and name.
//
// The cluster is started with ClusterArgs. It has no controllers unless a workload needs them: a controller creates
// claims from templates.
//
// It differs from scheduler_perf (kubernetes, test/integration/scheduler_perf) where that does not do what its fields
// say: the allocatable resources of nodeAllocatableStrategy reach the nodes (there a patch of the node does not
// change its status), an operation waits for its own pods and not for the number of pods in the namespace, and in a
// steady state each pod is replaced when it is scheduled, not all of them when the last one is.
//
// Rejected: polling lists to find out whether pods are scheduled (it would load the measured API server, and an
// answer can be a second late); a goroutine for each pod.
package ops
