// SPDX-License-Identifier: Apache-2.0

// Package fit owns latency models: it reads from recordings how long decisions, calls, watches and evictions take.
//
// A recording has the time of each turn of the scheduling loop, and no other. What happened within a turn has the time
// of its beginning, so durations below that of a turn are uncertain by as much. The duration of a decision is taken
// from turns with many decisions, after which the loop does not rest.
//
// The delay of the watch is estimated by pods that this scheduler bound: from the answer of the bind to the version of
// the pod with its node. The API server publishes the version before it answers, so this is too short by the way of
// the answer, and is 0 where the version came first. A watch keeps its order, so in a burst a version waits for those
// before it, which makes the shortest delays longer.
package fit
