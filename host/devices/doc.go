// SPDX-License-Identifier: Apache-2.0

// Package devices owns the decision which devices a pod gets: it implements DynamicResources as a plugin of kumiki,
// with upstream's public allocator (k8s.io/dynamic-resource-allocation/structured). The allocator with its CEL
// expressions is the only part that is not our own; this package decides which claims a pod has, in which state they
// may be, what is reserved for which pod and what must be written, as kube-scheduler 1.37.1 does with its default
// feature gates (plugins/dynamicresources; the gates are listed at Gates).
//
// The store holds what is decided and not yet observed, as assumed versions of ResourceClaims; the claim that backs a
// pod's extended resources is assumed there before it is created, under its future name. So all profiles, and every
// decision of a burst, use the same state, and the store's journal undoes a decision.
//
// Inventory is the derived state: pools by node, with the taints of DeviceTaintRules (plugin.TaintedSlice), and which
// devices are allocated, updated from the store's journal.
// The plain form of the filter gives the allocator the whole cluster and caches nothing. The column form gives it the
// pools of one node, and caches results by shape (a list of claim specs): by row, until a slice or a device of the
// pools, a class or the node changes; and by kind of node (kinds.go), so that a cluster of equal nodes takes one
// query. A property test compares the two forms.
//
// The plugin belongs to the goroutine of the scheduling loop. Its only clock is the filter time-out, which bounds the
// work of the allocator on one node by a context: whether an attempt fails by it depends on the machine, as in
// upstream. Every other time is passed by the engine. Share IDs, which the allocator chooses at random, are replaced
// by ones derived from claim and device, so that a replay makes the same decisions.
//
// Rejected: one long-lived allocator (it keeps the counters of its first look at a pool); an allocator for each
// decision over all slices (sorting 5,000 slices into nodes costs more than the decision itself); a query for every
// node (200 µs for one with eight devices, most of it CEL, so a second for 5,000; upstream stops when it has found
// enough); in-flight claims kept beside the store (a rollback would have to be repeated by hand).
package devices
