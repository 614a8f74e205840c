// SPDX-License-Identifier: Apache-2.0

// Package shadow owns the comparison of another scheduler's choices with kumiki's, while that scheduler runs the
// cluster.
//
// A Shadow replaces the engine in the loop and passes on every event. It never lets the engine decide: it calls
// question.Inspector.CompareBind when a bind of the other scheduler arrives, before the engine receives it, on the
// state of the binds observed so far. Its result is a record.ShadowReport; its memory is bounded except for one small
// record for each pending pod.
//
// The two schedulers never see exactly the same cluster: the other one knows its decisions that are not bound yet,
// and binds are not written in the order of the decisions. So a dispute about what fits is not final at once. It is
// checked again for some seconds; it counts if it persists, and not if it settles. Scores are compared on the state
// at the bind only; pods for which that was certainly the state of the decision too are counted separately as quiet.
//
// What the other scheduler writes before a bind is part of the state at the bind: a claim to which it gave a volume
// or devices of one node leaves no other choice, so pods that wait for volumes agree by construction.
//
// Rejected: judging when the pod is first observed, on a state that may be minutes older than the decision; assuming
// kumiki's own choices, after which the two clusters have nothing in common any more.
package shadow
