// SPDX-License-Identifier: Apache-2.0

// Package metrics owns the metrics of a scheduler: their names, help and labels, and how the steps of the engine
// change them. The parts of kube that call the API server set the exported fields of Metrics; a Meter measures cycles
// from within, and a Tally counts each step with its effects.
//
// It imports no other package of kube, so that all of them can use it.
package metrics
