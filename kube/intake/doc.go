// SPDX-License-Identifier: Apache-2.0

// Package intake owns the way from API objects to engine events.
//
//   - Informers list and watch. Each list is consistent with the moment of its request.
//   - Inbox holds the newest compact record of every pod and node and of the other objects that the plugins in use
//     read, and what the engine knows of each. It is level-triggered: a key waits at most once, and the event is the
//     difference between the newest version and the one that the engine knows. So the backlog is bounded by the number
//     of objects, whatever the API server sends.
//   - Auditor finds changes that a watch lost although it stayed connected.
//
// Rejected: shared informers, because they keep the API objects, about 4 KiB for each bound pod where a compact record
// costs a tenth, and because their handlers would need a second queue to coalesce in.
package intake
