// SPDX-License-Identifier: Apache-2.0

package basic

import "github.com/kumiki-scheduler/kumiki/core/cluster"

// PrioritySort puts pods of higher priority first (upstream: plugins/queuesort).
type PrioritySort struct{}

// PrioritySortName is its name in configurations.
const PrioritySortName = "PrioritySort"

// Name is PrioritySortName.
func (PrioritySort) Name() string { return PrioritySortName }

// Before compares priorities.
func (PrioritySort) Before(a, b *cluster.Pod) bool {
	return a.Spec.Priority > b.Spec.Priority
}
