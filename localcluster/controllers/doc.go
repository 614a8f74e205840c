// SPDX-License-Identifier: Apache-2.0

// Package controllers owns the controller manager of a local cluster: which controllers run, with which settings and
// under whose identity. The controllers are those of k8s.io/kubernetes, but for the pod garbage collector (package
// podgc); what they are built with is what kube-controller-manager gives them. Each acts under the role that every
// cluster gives it.
//
// Rejected: kube-controller-manager's own command. It imports each of its controllers, and through one of them most of
// kube-scheduler: 238 packages that every user would compile and none would run. Left out with it: leader election (one
// process runs), the port (nothing asks it), and settings of controllers that are not in the table.
package controllers
