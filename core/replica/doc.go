// SPDX-License-Identifier: Apache-2.0

// Package replica owns the entries of the arbiter's log: what they are, their binary form, and how the store of a
// follower is brought from one position to the next. Package shard decides which of them may be relied on, and which
// members follow.
//
// An entry is a change of the arbiter's store, as the store itself reports it (cluster.Store.TakeChanges), so a
// follower's store at a position is the arbiter's at that position. Besides there are promises, which are no part of
// a store, and the promotion of an arbiter, which begins an epoch.
//
// Writer encodes entries once for all followers, in frames. Window keeps the newest frames for followers that are a
// little behind. Snapshot is the state at a position, for those that join or are further behind. Follower applies
// frames and snapshots. Texts and specs that occur again are sent once: both sides number them alike, and a snapshot
// contains the numbers, so a frame means the same to every follower.
//
// What a reader gets is not trusted: sizes are bounded, a frame has a checksum, and an entry that does not follow from
// the state before it is an error, after which the follower must load a snapshot.
//
// Not in the log: pods that wait, which a planner gets with a unit that is lent to it, and full API objects, so a
// planner that runs hosted plugins needs another source of these (docs/design/0015-instances.md).
package replica
