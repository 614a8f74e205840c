// SPDX-License-Identifier: Apache-2.0

// Package bench owns measurements of schedulers from outside: a fresh local cluster for each run, the scheduler as a
// process of its own, pods created at full speed, and the time at which a watch shows each of them bound.
//
// A workload is carried out by bench/ops and measured here: a gauge reads clocks, metrics and events from where the workload
// begins to collect metrics to where it ends. The null binder plays a recording of a correct run, as names are the same in
// every run. Ratios are of rounds that were measured next to each other, with bootstrap intervals.
//
// Every scheduler is told the same things in the same file and meets the same cluster. The null binder is the floor: it
// makes the calls that every scheduler has to make and decides nothing. What this machine can do in a second changes by
// the hour, so the ratios to the null binder of the same hour are what a report may claim.
//
// Rejected: measuring inside the scheduler's process, as scheduler_perf does (the API server's garbage would count as
// the scheduler's, and CPU and memory could not be told apart); reading the time of a bind from the pod's condition
// (whole seconds, and the API server's clock).
package bench
