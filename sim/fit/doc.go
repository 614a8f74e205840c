// SPDX-License-Identifier: Apache-2.0

// Package fit owns latency models: it reads from recordings how long decisions, calls, watches and evictions take.
//
// A recording has the time of each turn of the scheduling loop, and no other. What happened within a turn has the time
// of its beginning. The duration of a decision is taken from turns with many decisions, after which the loop does not
// rest; of a recording without such turns, from its fastest ones. The duration of a bind is without the decisions that
// were made between the beginning of its turn and the bind, and without the wait of its answer for the end of a turn.
// Binds beyond the limit of binds in flight wait until others are answered, as in kube/effects and in package sim.
//
// The API server states the second in which a pod was created. The first pod of each second of a dense stream shows how
// long after its creation a pod is seen. Rejected: counting from the first sight, which leaves out the request that
// creates the pod and the watch, about half of a wait on an idle cluster.
//
// The delay of the watch is estimated by pods that this scheduler bound: from the answer of the bind to the version of
// the pod with its node. The API server publishes the version before it answers, so this is too short by the way of
// the answer, and is 0 where the version came first. A watch keeps its order, so in a burst a version waits for those
// before it, which makes the shortest delays longer.
//
// Distributions are those of the samples, by their quantiles. Rejected: a uniform distribution between the 10th and the
// 90th percentile, under which the 99th percentile of waits cannot be right.
package fit
