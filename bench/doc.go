// SPDX-License-Identifier: Apache-2.0

// Package bench owns measurements of schedulers from outside: a fresh local cluster for each run, the scheduler as a
// process of its own, pods created at full speed, and the time at which a watch shows each of them bound. It has the
// commands of `kumiki bench` and runs workloads. Below it, testbed starts clusters and schedulers, ops executes a
// workload, noop is the no-op binder, report compares the results, and restart, core and gangs are separate
// benchmarks.
//
// A gauge reads clocks, metrics and events while the workload collects metrics. Ratios are computed within a round of
// consecutive runs, with bootstrap intervals.
//
// Every scheduler gets the same settings and the same cluster. The no-op binder is the upper bound: it makes the
// calls that every scheduler has to make, without decisions. The speed of a machine changes over time, so a report
// compares each scheduler with the no-op binder of the same round.
//
// Rejected: measuring inside the scheduler's process, as scheduler_perf does, because its CPU, memory and garbage
// collection could not be separated from the API server's; reading the time of a bind from the pod's condition, which
// has whole seconds of the API server's clock.
package bench
