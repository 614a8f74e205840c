// SPDX-License-Identifier: Apache-2.0

// Package supervise owns a running local cluster: its data directory, its
// child processes, and the control socket through which other invocations of
// the binary kill, stop and restart children by name.
//
// The supervisor is the only writer of the data directory's own files (cluster.json,
// control.sock, lock). The kernel kills the children when the supervisor ends, so a cluster
// never outlives it.
//
// Rejected: pid files without a supervisor (a pid may be reused, and no process would collect
// the child), and restarting a dead child on its own (a test that kills a server wants it to
// stay dead; --restart-children turns it on).
package supervise
