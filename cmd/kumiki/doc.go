// SPDX-License-Identifier: Apache-2.0

// Command kumiki owns flags and wiring: the scheduler itself, the local cluster with a demo workload, and the queries
// to a running scheduler. Started under the name kube-scheduler it is the scheduler with kube-scheduler's flags; as
// kubectl-kumiki it is a plugin of kubectl.
package main
