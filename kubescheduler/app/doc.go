// SPDX-License-Identifier: Apache-2.0

// Package app is k8s.io/kubernetes/cmd/kube-scheduler/app with kumiki as the scheduler: NewSchedulerCommand, WithPlugin
// and Option have upstream's types, so a program with plugins becomes kumiki when it imports this package instead.
//
// It is in a module of its own, because it links k8s.io/kubernetes, which the rest of kumiki does not. What it adds to
// package host/framework is what needs upstream's types: arguments are decoded by upstream's scheme, the CycleState has
// upstream's PodsToActivate, and the Handle of plugins is a framework.Framework. Upstream's metric variables exist, so
// that plugins count in them, and are not registered, because kumiki serves metrics of the same names.
//
// Rejected: types of our own with the same methods. A factory that takes a runtime.Registry, or a plugin that asserts
// framework.Framework, needs upstream's.
package app
