// SPDX-License-Identifier: Apache-2.0

// Package arbiter owns what an arbiter does besides deciding units itself: it lends units to planners, checks what they
// propose, answers, and writes the log. The check itself is place.Placer.Admit and gang.Take on the arbiter's ledger,
// behind Host; package shard has the rules of sessions, dispatch, loans, and what follows a refusal.
//
// A lent unit stays in the queue, behind a gate, so that it is seen in all reports and follows its pods. The loan ends
// when a proposal is taken or refused for good, when the planner gives the unit back or leaves, or when the unit's
// pods are gone; then the gate opens.
//
// Each planner's proposals are checked in the order of their numbers, as it made them. Among planners the unit of the
// higher priority goes first, then the one that came first. A proposal that came too early waits for those before it,
// and a repeated one gets its verdict again, so that loss, repetition and reordering of messages change no verdict.
//
// A proposal is refused because it does not fit, never because it is old. What was refused is decided at once by the
// arbiter if the unit is small and native, so that a conflict costs one decision and no round trip. Other units go back
// to their planner; after shard.MaxRefusals the arbiter decides native ones, and keeps the nodes that are still free
// for those with foreign code.
//
// The package does not import the engine. Every effect goes through Host.Emit; the entries of the log come before the
// answers that follow from them.
package arbiter
