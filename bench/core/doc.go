// SPDX-License-Identifier: Apache-2.0

// Package core owns measurements of scheduling alone, without an API server, a network or a second process: pods of
// several families go one by one from pending to confirmed.
//
// A Contender is a scheduler that can be driven in this way: kumiki's engine is here; upstream's own cycle is in
// conformance/corebench, which kumiki must not be linked with. Both get the same nodes, the same bound pods and the
// same pods to place, in the same process, and take turns run by run. So the ratio of the two is valid on a busy
// machine, where the absolute figures are not.
//
// What counts is what a scheduler does for each pod: it receives the pod, queues it, decides, assumes it on the node,
// receives the result of the bind and sees the pod bound; and for each new pod the oldest is deleted. What does not
// count happens once for an object, regardless of its source: decoding it, and converting it to the form that kumiki
// keeps.
//
// Rejected: Go benchmarks as the command, because they choose the number of pods themselves, so that two schedulers
// would be measured with different numbers (BenchmarkFamily of core/engine remains, for profiles); creating the
// initial state by decisions, which takes upstream minutes at 100,000 nodes and gives each scheduler a different
// cluster.
package core
