// SPDX-License-Identifier: Apache-2.0

// Package shadow owns the comparison of another scheduler's choices with ours, while that scheduler runs the cluster.
//
// A Shadow takes the engine's place in the loop and passes on every event. It never lets the engine decide. When a bind
// of the other scheduler comes in, it asks question.Inspector.Judge before the engine learns of the bind, on the state
// of binds that were seen. What it says is a record.ShadowReport; what it keeps is bounded but for one small record per
// pending pod.
//
// The two schedulers never look at quite the same cluster: the other one knows what it has decided and not yet bound,
// and binds are not written in the order of the decisions. So a dispute about what fits is not believed at once. It
// is looked at again for some seconds; it counts when it stays, and not when it settles. Scores are compared on the
// state at the bind alone; the pods for which that was certainly the state of the decision too are counted apart as
// quiet.
//
// What the other scheduler writes before a bind is part of the state at the bind: a claim that it gave a volume or
// devices of one node leaves no other choice, so that pods which wait for volumes agree by construction.
//
// Rejected: judging when the pod is first seen, on a state that may be minutes older than the decision; assuming our
// own picks, after which the two clusters have nothing to do with each other any more.
package shadow
