// SPDX-License-Identifier: Apache-2.0

// Package timing owns the record of where the time of pods, gangs, evictions and requests goes. Recorder takes what the
// scheduling loop learns in each step and the requests that kube sends, and keeps the newest in ring buffers of fixed
// size. Read returns them as record.Timing.
//
// The package does not read the time: all moments are given to it, by one clock that never goes back. The methods from
// BeginStep to EndStep belong to the goroutine of the loop, Request to those that send; readers copy in small parts, so
// that the loop never waits for a whole copy.
//
// Spans of a bind are written when the pod is seen bound and the outcome of the bind is known, whichever comes last:
// the watch is often faster than the answer, and what follows the end of a journey is not part of it.
//
// Rejected: OpenTelemetry spans. A span with its attributes costs more than a scheduling decision; it is an export.
// Rejected: a slice of spans per pod. It costs an allocation per pod, and its memory has no bound.
package timing
