// SPDX-License-Identifier: Apache-2.0

// Package effects owns the way from engine effects to calls of the API server. It answers each Bind, Prepare and Evict
// exactly once with its outcome, unless it is stopped before.
//
//   - Executor joins the parts and is what the loop calls.
//   - Binder: the binds in flight. A bind that was not begun can be recalled.
//   - Writer: the writes before binds, and what undoes them, in order for each pod.
//   - Evictor: the evictions in flight. The last victim of an eviction is deleted after all others.
//   - GangWriter: the statuses of objects that declare gangs. The newest status of a gang wins.
//   - Patcher: the PodScheduled conditions. The newest condition of a pod wins.
//   - EventWriter: the events. The oldest are dropped if there are too many.
//
// Rejected: a bind with the pod's resourceVersion as precondition, because our own status patches would cause
// conflicts with our own binds (docs/design/0003-fencing.md). Rejected: a condition patch without that precondition,
// because a late patch of PodScheduled=False would overwrite the True that a bind sets.
package effects
