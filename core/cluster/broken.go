// SPDX-License-Identifier: Apache-2.0

package cluster

// Broken is what the package panics with when an invariant of the Store does not hold. Nobody may contain it: a ledger
// that is wrong oversells nodes, so the process stops with the values in the message.
type Broken string

func (b Broken) Error() string { return "cluster: broken invariant: " + string(b) }
