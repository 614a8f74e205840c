// SPDX-License-Identifier: Apache-2.0

package plugin

import "github.com/kumiki-scheduler/kumiki/core/cluster"

// Selective is a PodFilter that can list which pods of a node it reads.
type Selective interface {
	PodFilter
	// Matters reports whether it can make a difference to the verdict on a node that other, which is on it, is
	// there or not. It says the same of all pods that have spec and namespace in common and are all being deleted
	// or all not.
	Matters(other *cluster.Pod) bool
}
