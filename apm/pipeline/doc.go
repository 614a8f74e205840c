// SPDX-License-Identifier: Apache-2.0

// Package pipeline owns the way from a bundle to the input of the bottleneck finder: it divides the recorded time into
// buckets between samples, and computes the content and the load of each stage and the shares that causes have in them.
//
// Where pods are is known by gauges of the scheduler. What the recorder's own watch shows without a node, and no gauge
// of the scheduler contains, is on its way to the scheduler: the stage watch. What the scheduling loop does is known by
// kumiki_loop_seconds_total, of kube-scheduler by the durations of its extension points.
//
// The time of a bind has four parts: the rate limiter (the client's metrics), API Priority and Fairness (the API
// server's metrics), the handler (the same) and the rest. A handler without enough CPU is recognised by empty requests
// to the API server, which take longer by the same factor.
//
// What a source does not show is in Evidence.Unobserved with the reason, and no cause is named from it.
package pipeline
