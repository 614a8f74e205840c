// SPDX-License-Identifier: Apache-2.0

// Package standalone owns how upstream's whole scheduler, of 1.37.1, runs without an API server: its informer
// handlers, queue, cycles for pods and pod groups, and binding cycles, with its default profile and feature gates.
// Binds succeed at once. It looks at nodes in one goroutine, and draws from a seed, so that placements are the same
// in each run. Pods have no backoff, and the queue is flushed by events only, so the clock does not matter.
//
// A program must have the line "//go:debug randseednop=0", or it ignores the seed. Serve makes it a child process for
// the tables of docs/quality.md, which do not link upstream.
//
// Rejected: package corebench's harness, which has no binding cycle and so no gangs.
package standalone
