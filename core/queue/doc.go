// SPDX-License-Identifier: Apache-2.0

// Package queue owns the units that wait for a node: the sub-queue of each one, which events wake it, when its
// backoff ends, and which nodes are nominated for it.
//
// It is a plain data structure, driven by calls and ticks. A unit is in exactly one of these states: active, backoff
// (after a rejection, after an error, which is ordered separately, or resting: returned from an attempt before its
// backoff was over), waiting (shown as unschedulable or gated), set aside, or in flight between Pop and Requeue or
// Done. The semantics are those of upstream's pkg/scheduler/backend/queue at 1.37.1 with queueing hints on.
//
// Waiting units form groups: same profile, same rejecting plugins, same gate. The meaning of an event is computed
// once for each group; a group without a plugin that registered for the event is skipped as a whole, with the same
// result as asking each unit.
//
// Units that move at once do so in the order of their last arrival. Gates run before a unit leaves its state, so a
// gate that panics leaves the queue consistent. A hint that panics counts as QueueHint: a needless attempt costs less
// than a unit that nothing wakes.
//
// The caller sets the time by Tick before anything else, and deletes a pod before it adds another of the same name:
// units are identified by UID.
//
// Rejected: one map of unschedulable pods that each event scans (upstream); a map from plugin to units, in which a
// unit with two rejecting plugins occurs twice; timers of our own; keys by name, under which a new pod inherits the
// history of its predecessor; a flush of unschedulable units every 30 s since start, where a replay that starts later
// would differ (ours is at multiples of 30 s).
package queue
