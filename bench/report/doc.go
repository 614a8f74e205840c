// SPDX-License-Identifier: Apache-2.0

// Package report owns the results of benchmarks: trials, the rows that compare schedulers, ratios with their
// intervals, changes from one report to the next, and the output formats. It starts nothing and measures nothing.
package report
