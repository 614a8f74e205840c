// SPDX-License-Identifier: Apache-2.0

// Package outside owns the recording of a profile from outside of a scheduler: it reads the endpoints that kumiki and
// an unmodified kube-scheduler serve, /debug/pprof and /metrics, and writes a bundle. Parts that the scheduler denies
// are missing in the bundle, with the reason.
//
// The execution trace and the CPU profile are recorded at the same time, since Go then writes the CPU samples into the
// trace. The CPU profile begins first and ends last, so that no part of the trace is without samples.
package outside
