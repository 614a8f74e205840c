// SPDX-License-Identifier: Apache-2.0

// Package noop owns the no-op binder, the upper bound of throughput on a machine: it makes the calls that every
// scheduler has to make, without decisions. The command line and reports call it "null".
//
// It binds pods to the nodes round robin, or replays a recording. A Recorder observes a correct run of a scheduler
// and the API server's audit log; for each pod, the recording has the writes that it caused and the conditions for
// its bind. Objects have the same names in every run, so the writes that were correct for a name are correct again.
package noop
