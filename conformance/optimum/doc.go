// SPDX-License-Identifier: Apache-2.0

// Package optimum owns the comparison with optima: it compares kumiki and upstream's scheduler with the optimum on
// small clusters: up to 25 pods with priorities, taints, topology constraints and gangs, which all wait at the
// beginning. The optimum is that of sim/bound: the most pods of the highest priority, among these placements the most
// of the next one, and so on.
//
// No pod preempts another one, so that what counts is where pods go.
package optimum
