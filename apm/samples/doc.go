// SPDX-License-Identifier: Apache-2.0

// Package samples owns the part of a bundle that has the state of a scheduler at short intervals: gauges and counters
// of its /metrics, the pods without a node as a watch of the recorder shows them, the
// latency of an empty request to the
// API server, and what the API server counted meanwhile. The list of metrics is closed, so the part is bounded.
//
// A reader treats it as input from another machine: sizes are limited, times must increase, and values must be numbers.
package samples
