// SPDX-License-Identifier: Apache-2.0

// Package report owns what a benchmark has measured: trials, the rows that compare schedulers, ratios with their
// intervals, changes from one report to the next, and the formats in which all of it is written. It starts nothing
// and measures nothing.
package report
