// SPDX-License-Identifier: Apache-2.0

// Package pipeline owns the way from a bundle to the input of the bottleneck finder: it divides the recorded time into
// buckets between samples, and computes the content and the load of each stage and the shares that causes have in them.
//
// Where pods are is known by kumiki's own record of their phases (record.Timing), to the nanosecond, if all of it is
// there: no phase was overwritten, and the clocks of recorder and scheduler can be joined. Otherwise, and of
// kube-scheduler, it is known by gauges of the scheduler at intervals. Verdict.Source says which. Phases also show what
// gauges do not: a pod that was active while the loop was idle was overlooked, or waits for the next session; an
// attempt after a backoff found a node or not; a pod was gated while its victims were not gone. The phases answered and
// confirming do not count, because the pod has its node then.
//
// What the recorder's own watch shows without a node, and neither phases nor gauges contain, is on its way to the
// scheduler: the stage watch. If there is none, the watch of the recorder is the second measurement for Little's law;
// else it is that of the gauges. What the scheduling loop does is known by
// kumiki_loop_seconds_total, of kube-scheduler by the durations of its extension points.
//
// The time of a bind has four parts: the rate limiter (the client's metrics), API Priority and Fairness (the API
// server's metrics), the handler (the same) and the rest. A handler without enough CPU is recognised by empty requests
// to the API server, which take longer by the same factor.
//
// What a source does not show is in Evidence.Unobserved with the reason, and no cause is named from it.
package pipeline
