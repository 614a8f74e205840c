// SPDX-License-Identifier: Apache-2.0

// Package victim owns what both searches for victims share: the order of importance of pods, the disruption budgets
// with what was spent of them, and the sums that say what a pod lacks on a node and what other pods would free
// there. The searches are that for one pod on one node (package preempt) and that by preemption units (package
// units).
package victim
