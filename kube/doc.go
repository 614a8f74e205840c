// SPDX-License-Identifier: Apache-2.0

// Package kube owns the edge between the engine and the API server: objects become compact events, effects become
// API calls, and each outcome comes back as an event. It holds all of client-go and nearly all goroutines.
//
// Who owns what:
//
//   - Inbox: the newest compact record of every pod and node and of the other objects that the plugins in use read, and
//     what the engine was told of each. Level-triggered: a key waits at most once, and what is told is the difference
//     between newest and told. So the backlog is bounded by the number of objects, whatever the API server sends.
//   - Loop: the engine. One goroutine; batches of events alternate with cycles, by count.
//   - Binder: the binds under way, and the duty to answer each exactly once. One that was not begun can be recalled.
//   - Writer: the writes before binds, and what takes them back, one pod after another for itself; the duty to answer each
//     Prepare exactly once.
//   - Evictor: the evictions under way, one victim of an eviction after all others; the duty to answer each Evict exactly
//     once.
//   - GangWriter: the statuses of objects that declare gangs under way; the newest of a gang wins.
//   - Patcher: the PodScheduled conditions under way; the newest of a pod wins.
//   - Election: the lease: whether nobody else can lead at this moment, and the pause that people keep on it.
//   - EventWriter: the events under way; the oldest go when there are too many.
//
// Rejected: shared informers, because they keep the API objects, about 4 KiB for each bound pod where a compact record
// costs a tenth, and because their handlers would need a second queue to coalesce in. Rejected: a bind with the pod's
// resourceVersion as precondition, because our own status patches would refuse our own binds
// (docs/design/0003-fencing.md). Rejected: patching the condition without that precondition, because a late patch of
// PodScheduled=False would overwrite the True that a bind sets.
package kube
