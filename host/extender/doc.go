// SPDX-License-Identifier: Apache-2.0

// Package extender owns the calls to HTTP extenders: programs outside the scheduler that filter and rank nodes, choose
// victims and bind pods (KubeSchedulerConfiguration, extenders; upstream: pkg/scheduler/extender.go, and
// findNodesThatPassExtenders and prioritizeNodes in pkg/scheduler/schedule_one.go).
//
// Extenders are asked one after the other, in the order of the configuration, those that may be ignored last. What one
// of them leaves is what the next is asked about. It implements place.Foreign; binding is a method of its own,
// for whoever carries it out.
//
// An extender can answer anything, or nothing. An answer that cannot be read, that is too long or too late, or that
// names a node that was not asked about, is an error, which fails the attempt unless the extender may be ignored. It
// never leads to a placement. Two things differ from upstream on purpose: upstream takes a node that was not asked
// about from an extender that answers with whole nodes, and fails later; and it lets scores of an extender overflow.
// Reasons for nodes that were not asked about are dropped, where upstream would count them in its message.
//
// Rejected: asking several extenders at once to rank nodes, as upstream does. Nearly all configurations have one; each
// call ends with its time-out; and the package starts no goroutines.
package extender
