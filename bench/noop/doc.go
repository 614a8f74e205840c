// SPDX-License-Identifier: Apache-2.0

// Package noop owns the no-op binder, the upper bound of throughput on a machine: it makes the calls that every
// scheduler has to make and decides nothing. The command line and reports call it "null".
//
// It binds pods to the nodes in turn, or plays a recording. A Recorder observes a correct run of a scheduler and the
// API server's audit log; the recording has, for each pod, what was written because of it and what had to happen
// before its bind. Objects have the same names in every run, so the writes that were correct for a name are correct
// again.
package noop
