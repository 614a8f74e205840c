// SPDX-License-Identifier: Apache-2.0

// Package roles owns what one child process of a local cluster runs: the names
// of the roles, the flags each is started with, and the call of upstream's own
// entry point.
//
// Upstream's commands set up process-wide things (signal handler, feature
// gates, metrics, flags) and panic or clash when two of them share a process;
// so a role is one process, and a process one role. Rejected for that reason:
// all in one process. It would also charge the scheduler with the control
// plane's memory and garbage collection.
package roles
