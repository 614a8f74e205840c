// SPDX-License-Identifier: Apache-2.0

// Package roles owns what one child process of a local cluster runs: the names of the roles, the flags each is started
// with, and the call of the entry point, which is upstream's own for etcd and the API server.
//
// Upstream's commands set up process-wide state (signal handler, feature gates, metrics, flags)
// and panic or conflict if two of them share a process. So each role is one process. Rejected
// for that reason: all roles in one process, which would also add the control plane's memory
// and garbage collection to the scheduler's.
package roles
