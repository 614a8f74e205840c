// SPDX-License-Identifier: Apache-2.0

// Package bottleneck owns the search for the bottleneck of a scheduler: from a series of buckets with the flow, the
// content and the load of each stage, and from evidence about resources, it computes which cause pods wait for, and for
// how many pod-seconds each.
//
// The bottleneck is the last stage at capacity before which pods wait while the stages behind it have capacity left. A
// stage that is blocked by a full stage behind it is not the bottleneck: its pod-seconds count for the stage that is at
// capacity. If there is none, they count for the limit that blocks it. Pods that wait before a stage which is idle wait
// for a lost wake-up. Stages without a queue (the API server, the watch) take time from each pod: what is known to come
// from outside of normal work counts for its cause, the rest is service time. If service is most of the time that pods
// take, the bottleneck is arrivals: the scheduler waits for pods.
//
// The finder says "not known" rather than to guess: if the input contradicts itself, if Little's law (L = λW) does not
// hold between two independent measurements within LittleTolerance, or if causes explain less than MinExplained of the
// pod-seconds.
//
// The package is pure: it has no clock and reads no file. Package apm/pipeline computes its input from bundles.
//
// Rejected: thresholds on single metrics, such as "the queue is longer than 100": they do not tell a cause from its
// consequences. Rejected: ranking by the utilisation of resources alone, since a busy resource that no pod waits for is
// no bottleneck.
package bottleneck
