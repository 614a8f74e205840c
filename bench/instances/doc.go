// SPDX-License-Identifier: Apache-2.0

// Package instances owns a simplified model of several schedulers on one cluster, in virtual time: pods of one size,
// nodes with slots, decisions of a constant length, and a log that arrives late. It shows how throughput, refused
// proposals, overcommit and packing depend on the number of instances.
//
// In mode Shared planners propose placements to an arbiter, which checks each of them on its ledger
// (docs/design/0015-instances.md). In mode Hash each planner uses its own nodes only. In mode Uncoordinated there is no
// arbiter: each scheduler binds what it has decided, and hears of the others by a watch, as several kube-schedulers do.
//
// The model leaves out everything but capacity: no filters, gangs, evictions, ends of pods or failures, and a planner
// takes the next unit when it is free. It is a bound for what the mechanism can give, not a measurement of kumiki.
package instances
