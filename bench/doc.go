// SPDX-License-Identifier: Apache-2.0

// Package bench owns measurements of schedulers from outside: a fresh local cluster for each run, the scheduler as a
// process of its own, pods created at full speed, and the time at which a watch shows each of them bound. It has the commands
// of `kumiki bench` and the runs of workloads. Below it, testbed starts clusters and schedulers, ops carries out a workload, noop
// is the no-op binder, report compares what was measured, and restart, core and gangs are benchmarks of their own.
//
// A gauge reads clocks, metrics and events from the moment at which the workload begins to collect metrics to the moment at which
// it ends. Ratios are of rounds that were measured next to each other, with bootstrap intervals.
//
// Every scheduler gets the same settings and the same cluster. The no-op binder is the upper bound: it makes the calls that every
// scheduler has to make and decides nothing. The speed of a machine changes by the hour, so a report compares each scheduler with
// the no-op binder of the same hour.
//
// Rejected: measuring inside the scheduler's process, as scheduler_perf does, since the garbage of the API server would count as
// the scheduler's, and their CPU and memory would be inseparable; reading the time of a bind from the pod's condition, which has
// whole seconds by the clock of the API server.
package bench
