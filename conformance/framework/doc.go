// SPDX-License-Identifier: Apache-2.0

// Package framework owns the comparison of plugins of kube-scheduler's framework in upstream's scheduler and in
// kumiki: the same source (type Random) runs in both. Its answers are a function of a seed, the extension point, the
// pod, the node, and of what it reads of the NodeInfo and the CycleState, so a difference in what a plugin sees is a
// difference in the outcome.
package framework
