// SPDX-License-Identifier: Apache-2.0

// Package defrag owns plans that move running pods so that gangs of a given shape fit. A plan is a list of moves, in
// order, each with its target; nothing is executed.
//
// A pod may be moved if a controller creates it again, it does not belong to its node or to a gang, it does not
// terminate, and all its disruption budgets allow an eviction. One pod is moved at a time, and the target has capacity
// for it at that time. Whether a pod or the shape can run on a node by labels, taints and the like is answered by the
// scheduler itself on an empty cluster; what depends on other pods is seen when the plan is simulated, and a move that
// the scheduler refuses there is excluded from the next plan.
//
// The number of moves is compared with a bound that no plan can pass (bound.go). On small clusters, an exhaustive
// search looks for a plan with fewer moves (exact.go), and proves that there is none.
package defrag
