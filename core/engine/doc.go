// SPDX-License-Identifier: Apache-2.0

// Package engine owns the scheduling loop as a function: Step takes one event and returns the effects it asks for.
//
// A cycle is about one unit, which is a pod or a gang, and ends with placements for it, with evictions that free
// capacity for it, or with the reason why it waits. In sessions (Config.SessionPeriod) what comes in is kept until
// the session ends, so that all units of a session are decided on one cluster snapshot. Questions (core/question)
// read the engine through its View and change nothing.
//
// The caller's duties, in order:
//
//  1. Before the first Cycle, feed one ObjectSet per other object, one NodeSet per node and one PodSet per pod of the
//     initial lists, each list sorted by name, but pods that have no node last and by creation, then Synced.
//  2. Call Step from one goroutine only. Give time by Tick, never otherwise; it must not go back.
//  3. Alternate bounded batches of events with Cycle events, by count and never by clock.
//  4. Carry out every effect. Answer each Prepare with exactly one WritesDone, each Evict with exactly one EvictDone, and
//     each Bind with exactly one BindDone, after re-reading the pod when the answer of the API server was lost.
//  5. Keep no reference to slices in effects after the next Step.
//
// A Step is a transaction over the cluster.Store: a panic inside rolls back to its start, the pod or node in hand
// is set aside, and the loop goes on. The same events in the same order give the same effects, byte for byte.
package engine
