// SPDX-License-Identifier: Apache-2.0

// Package instances owns the local planners: engines that decide units which the engine of the scheduling loop, the
// arbiter, lends to them (docs/design/0015-instances.md). Each has a goroutine of its own, so that a slow extender
// holds up the units of one planner and not the loop.
//
//   - Runner is what the loop calls. It carries messages of the arbiter to the planners, and theirs to the loop.
//   - planner: one engine, which follows the arbiter's log. It is only touched by its goroutine.
//   - mailbox: messages to one planner. It never blocks the loop.
//
// Rejected: bounded mailboxes. The loop would wait for the slowest planner, or planners would be expelled and load a
// snapshot again; an entry of the log takes less than 100 bytes, and all planners share its frame.
package instances
