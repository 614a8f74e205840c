// SPDX-License-Identifier: Apache-2.0

// Package devices owns the decision which devices a pod gets: it implements DynamicResources as a plugin of kumiki,
// with upstream's public allocator (k8s.io/dynamic-resource-allocation/structured) behind it. The allocator with its
// CEL expressions is the one part that is not our own; which claims a pod has, in which state they may be, what is
// held for whom and what must be written is decided here, as kube-scheduler 1.36.3 does with its default feature
// gates (plugins/dynamicresources; the gates are listed at Gates).
//
// What is decided and not yet seen is held in the store, as assumed versions of ResourceClaims; the claim that backs a
// pod's extended resources is assumed there before it is made, under the name it will get. So all profiles, and every
// decision of a burst, see one truth, and undoing a decision is undoing the store's journal.
//
// Inventory is the derived picture: pools by node, and which devices are allocated, brought up to date from the store's
// journal. The plain form of the filter gives the allocator the whole cluster and remembers nothing. The column form
// gives it the pools of one node, and remembers answers per shape (a list of claim specs): by row, until a slice or a
// device of the pools, a class or the node changes; and by kind of node (kinds.go), so that a cluster of equal nodes is
// asked about once. A property test holds the two together.
//
// The plugin belongs to the goroutine of the scheduling loop. The only clock in it is the filter time-out, which
// bounds the work of the allocator on one node by a context: whether an attempt fails by it depends on the machine,
// as it does upstream. Every other time is told by the engine. Share IDs, which the allocator draws at random, are
// replaced by ones derived from claim and device, so that a replay decides the same.
//
// Rejected: one long-lived allocator (it remembers counters of the first time it looked at a pool); an allocator per
// decision over all slices (5,000 slices cost more to sort into nodes than the decision itself); asking about every
// node (200 µs for one with eight devices, most of it CEL, so a second for 5,000; upstream stops when it has found
// enough); in-flight claims kept beside the store (a rollback would have to be repeated by hand).
package devices
