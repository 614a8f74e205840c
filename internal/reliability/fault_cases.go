// SPDX-License-Identifier: Apache-2.0

package reliability

import "slices"

// faults are the cases of processes and connections that fail.
func faults() []Case {
	return slices.Concat(faultyRequests(), faultyWatches(), faultyProcesses(), faultyChanges(), faultyExtenders(), faultsNotRun())
}

// faultsNotRun returns the faults of the list that are not injected here, with the reason.
func faultsNotRun() []Case {
	return []Case{
		{ID: "F17", What: "the clock jumps", NotRun: "one process's clock cannot be moved without root and a program of its own"},
		{ID: "F29b", What: "etcd's disk is full", NotRun: "needs a file system of its own, which needs root"},
		{ID: "F30", What: "certificates rotate or expire", NotRun: "the local cluster's certificates outlive it"},
	}
}
