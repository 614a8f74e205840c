// SPDX-License-Identifier: Apache-2.0

// Package groups owns the comparison of preemption by pod groups with upstream's, with the feature gates
// GenericWorkload and TopologyAwareWorkloadScheduling on: on generated clusters a pod group finds no place, and both
// schedulers choose victims. Compared are whether the group is placed, evicts or waits, for how many of its pods it
// evicts, the victims, the messages, and what happens in the rounds after: while the victims terminate, when they are
// gone, and when another pod has taken the capacity.
//
// Upstream evicts all units of lower priority in a trial and spares them one by one, the most important first, with the
// first placement that was found. kumiki takes the smallest loss. So the victims may differ, and the comparison demands
// that kumiki's loss is never the larger one. What else may differ, and why, is in exceptions.go.
package groups
