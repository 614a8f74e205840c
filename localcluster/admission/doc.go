// SPDX-License-Identifier: Apache-2.0

// Package admission owns the admission of a kubelet: whether a newly bound pod fits the free
// capacity of the node. It uses plain API types and shares no code with upstream, so that
// conformance can compare the two; the rules are those of pkg/kubelet/lifecycle/predicate.go
// and of AdmissionCheck in pkg/scheduler/eventhandlers.go (1.37.1).
//
// A kubelet's other admission handlers (eviction, topology, devices, volumes
// limits, shutdown) have no counterpart on a node without a machine.
package admission
