// SPDX-License-Identifier: Apache-2.0

package cluster

// Broken is the value with which the package panics when an invariant of the Store does not hold. It must not be
// recovered unless the Store is given up, as that of a planner: a wrong ledger overcommits nodes, so the process stops
// with the values in the message.
type Broken string

func (b Broken) Error() string { return "cluster: broken invariant: " + string(b) }
