// SPDX-License-Identifier: Apache-2.0

// Package queue owns the units that wait for a place: in which sub-queue each one is, what would wake it, when its
// backoff ends, which nodes are nominated for it.
//
// It is a plain data structure, driven by calls and ticks. A unit is in exactly one place: active, backoff (after a
// rejection or after an error, ordered apart, or resting: back from a try before its time), waiting (shown as
// unschedulable or gated), set aside, or in flight between Pop and Requeue or Done. The semantics are those of
// upstream's pkg/scheduler/backend/queue at 1.36.3 with queueing hints on.
//
// Waiting units stand in groups: same profile, same rejecting plugins, same gate. What an event means is worked out
// once per group; a group none of whose plugins registered for the event is skipped whole, which is what asking each
// unit would have come to.
//
// Where several units move at once they do so in the order of their last arrival. Gates run before a unit leaves the
// place it is in, so a gate that panics leaves the queue whole. A hint that panics counts as QueueHint: a needless
// attempt costs less than a unit that nothing wakes.
//
// The caller gives the time by Tick before anything else, and deletes a pod before it adds another of the same name:
// units are known by UID.
//
// Rejected: one map of unschedulable pods that each event walks (upstream); a map from plugin to units, in which a
// unit with two rejectors stands twice; timers of our own; keys by name, under which a new pod inherits the history
// of its predecessor; a flush of unschedulable units every 30 s since start, where a replay that starts later would
// differ (ours is at multiples of 30 s).
package queue
