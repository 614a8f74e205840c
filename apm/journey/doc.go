// SPDX-License-Identifier: Apache-2.0

// Package journey owns the analysis of one pod's way through the scheduler: it reads and checks the timing part of a
// bundle or the scheduler's answer, selects what belongs to a pod, joins it with an audit log of the API server, and
// draws it as a sequence.
//
// A file is input from another machine. What contradicts itself is an error with the reason, and nothing is computed
// from it: phases with a gap, a negative duration, clocks for which no offset fits all requests.
//
// Two clocks: times of the scheduler are by its own clock, times of the audit log by that of the API server. The server
// receives a request after the scheduler released it and before the answer began, so each request that both know bounds
// the offset of the clocks; many bound it well. What is computed over both clocks is an interval, never one number.
package journey
