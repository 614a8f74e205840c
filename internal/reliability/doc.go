// SPDX-License-Identifier: Apache-2.0

// Package reliability owns the scored suite of bad inputs and faults, and the soak. It starts a real cluster, runs
// the same cases with the binaries of kumiki and of kube-scheduler, and judges both from outside: by the objects of
// the API server, by whether the process lives, and by whether pods that are not part of the case are still placed.
//
// A case has its own namespace and nodes and pins its pods to them, so that it affects other pods only through the
// scheduler. Cases run one after the other, so that their durations are meaningful.
//
// A case requires what a user may expect: a pod that the API server accepts is placed, or rejected with the true
// reason. The expectation does not follow the behaviour of either scheduler.
//
// Rejected: scenarios in the form of internal/e2e, which run a scheduler inside the process of the test. A case must
// be able to kill the scheduler, and must run one that is not ours.
package reliability
