// SPDX-License-Identifier: Apache-2.0

// Package core owns measurements of scheduling alone: families of pods go one by one from pending to seen bound, without an
// API server, a network or a second process.
//
// A Contender is a scheduler that can be driven in this way: kumiki's engine is here; upstream's own cycle is in
// conformance/corebench, which kumiki must not be linked with. Both meet the same nodes, the same pods that are bound
// already and the same pods to place, in the same process, and take turns run by run; so the ratio of the two holds
// on a busy machine, where the figures do not.
//
// What counts is what a scheduler does for each pod: it receives the pod, queues it, decides, assumes it on the node,
// receives the result of the bind and sees the pod bound; and for each new pod the oldest is deleted. What does not
// count happens once for an object, regardless of its source: decoding it, and converting it to the form that kumiki
// keeps.
//
// Rejected: Go benchmarks as the command, which pick the number of pods by themselves, so that two schedulers would be
// measured on different ones (BenchmarkFamily of core/engine remains, for profiles); bringing pods to the starting state by
// decisions, which takes upstream minutes at 100,000 nodes and leaves each scheduler with a cluster of its own making.
package core
