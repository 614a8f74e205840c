// SPDX-License-Identifier: Apache-2.0

// Package queue owns the comparison of scheduling queues: a random history of
// API events, pops, failures, binds and ticks is played on upstream's
// PriorityQueue with a fake clock and on another queue side by side, and after
// every step each pod must be in the same sub-queue of both, and the metrics
// that count waiting pods must be equal. A pod that is popped must have the same
// size in both.
//
// Upstream's queue gets its events through upstream's own informer handlers, so
// that which events an update turns into is compared too. The handlers and the
// two flushes are not exported; they are reached by linkname, which upstream's
// version pin keeps honest: a changed signature shows as a difference or a crash
// in the first test.
//
// Rejected: upstream's Run, which starts tickers. One of them reads the real
// clock, and histories would not repeat.
package queue
