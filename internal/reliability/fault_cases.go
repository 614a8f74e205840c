// SPDX-License-Identifier: Apache-2.0

package reliability

import "slices"

// faults are the cases of processes and connections that fail.
func faults() []Case {
	return slices.Concat(faultyRequests(), faultyWatches(), faultyProcesses(), faultyChanges(), faultsNotRun())
}

// faultsNotRun are the faults of the list that nobody injects here, and why.
func faultsNotRun() []Case {
	return []Case{
		{ID: "F17", What: "the clock jumps", NotRun: "one process's clock cannot be moved without root and a program of its own"},
		{ID: "F25", What: "a victim refuses to die", NotRun: "kumiki does not preempt yet"},
		{ID: "F27", What: "an extender hangs or answers nonsense", NotRun: "a story of internal/e2e (bad-extenders, bad-binder), for kumiki alone"},
		{ID: "F29", What: "etcd's disk is full or slow", NotRun: "needs a file system of its own, which needs root"},
		{ID: "F30", What: "certificates rotate or expire", NotRun: "the local cluster's certificates outlive it"},
		{ID: "F32", What: "a tenth of a CPU and a memory limit", NotRun: "needs control groups, which need root"},
	}
}
