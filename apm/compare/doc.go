// SPDX-License-Identifier: Apache-2.0

// Package compare owns the comparison of profiles: of one or more recordings (rounds) on each of two sides it computes
// the differences B minus A of pods, phases, CPU time and allocations per pod, and cycles, with confidence intervals.
//
// Pods are aligned by namespace and name, so the difference is of the same pods. An interval is a bootstrap interval
// (percentiles; Efron 1979) with a fixed seed. It draws pods, and if each side has at least three rounds, rounds: with
// fewer, the interval covers the variation between pods alone, and a note says so. Two sides with equally many rounds
// are paired: the first of A was measured next to the first of B.
//
// CPU time of a lane or function comes from samples. With fewer than three rounds its interval is that of counting: n
// samples have the standard error √n. Other values of single rounds have no interval.
//
// Both sides are treated alike, in draws and in quantiles, so swapping the sides negates each difference and interval
// exactly. A value that one side does not have is nil on that side with a reason, and so is the difference; it is never
// 0.
//
// Rejected: ratios, which have no sign and no meaning for small denominators. Rejected: a test of significance. Readers
// need the size of a difference.
package compare
