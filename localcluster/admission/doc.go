// SPDX-License-Identifier: Apache-2.0

// Package admission owns the answer a kubelet gives when a bound pod arrives:
// does it fit what the node has left? It is written on plain API types, apart
// from upstream's code, so that conformance can hold the two against each
// other; the rules are those of pkg/kubelet/lifecycle/predicate.go and of
// AdmissionCheck in pkg/scheduler/eventhandlers.go (1.36.3).
//
// A kubelet's other admission handlers (eviction, topology, devices, volumes
// limits, shutdown) have no counterpart on a node without a machine.
package admission
