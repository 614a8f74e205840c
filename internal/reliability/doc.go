// SPDX-License-Identifier: Apache-2.0

// Package reliability owns the scored suite of bad inputs and faults, and the soak. It starts a real cluster, puts
// the same cases to the binaries of kumiki and of kube-scheduler, and judges both from outside: by what the API
// server holds, by whether the process lives, and by whether pods that have nothing to do with the case are still
// placed.
//
// A case has a namespace and nodes of its own and pins its pods to them, so that what it does to the cluster is not
// seen by others except through the scheduler. Cases run one after the other: how long one takes then says
// something.
//
// What a case demands is what a person may expect: what the API server accepts is placed, or refused with a true
// reason. It is not taken from what either scheduler does.
//
// Rejected: stories in the form of internal/e2e, which are put to a scheduler inside the test's process. A case must be
// able to kill the scheduler, and must run one that is not ours.
package reliability
