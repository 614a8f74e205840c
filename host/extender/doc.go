// SPDX-License-Identifier: Apache-2.0

// Package extender owns the calls to HTTP extenders: programs outside the scheduler that filter and rank nodes, choose
// victims and bind pods (KubeSchedulerConfiguration, extenders; upstream: pkg/scheduler/extender.go, and
// findNodesThatPassExtenders and prioritizeNodes in pkg/scheduler/schedule_one.go).
//
// Extenders are called one after the other, in the order of the configuration, ignorable ones last. The nodes that
// one of them keeps are the request to the next. It implements place.Foreign; binding is a separate method, for the
// package that executes binds.
//
// An extender can return anything, or nothing. A response that cannot be parsed, that is too long or too late, or
// that names a node outside the request, is an error, which fails the attempt unless the extender is ignorable. It
// never leads to a placement. Two differences from upstream are deliberate: upstream accepts a node outside the
// request from an extender that returns whole nodes, and fails later; and it lets scores of an extender overflow.
// Reasons for nodes outside the request are dropped, where upstream would count them in its message.
//
// Rejected: parallel calls to several extenders to rank nodes, as in upstream. Nearly all configurations have one;
// each call ends with its time-out; and the package starts no goroutines.
package extender
