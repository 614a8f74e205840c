// SPDX-License-Identifier: Apache-2.0

// Package corebench drives upstream's own scheduler through what bench/core measures: its informer handlers, its
// queue and its scheduling cycle (snapshot, filter, score, assume, reserve, permit), as they are in 1.37.1, with
// its default profile, feature gates and parallelism.
//
// Left out is what has no place without an API server: its binding cycle, which runs in a goroutine of its own. The
// bind is taken as done, the queue is notified, and the pod is shown bound, as for kumiki. Upstream's events and API
// calls are left out with it, to its favour.
//
// Rejected: the clusters of package oracle, which take a snapshot from nothing in each cycle and look at nodes one
// at a time, because they are made to ask and not to measure; scheduler_perf, whose API server costs more than what
// is measured here.
package corebench
