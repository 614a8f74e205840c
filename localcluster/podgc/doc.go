// SPDX-License-Identifier: Apache-2.0

// Package podgc owns the pod garbage collector of a local cluster: it deletes pods whose node is gone, pods that were
// deleted before they were scheduled, terminating pods of nodes that are out of service, and the oldest terminated
// pods if there are too many. Its rules, periods, conditions and messages are those of pod-garbage-collector-controller
// of kube-controller-manager 1.36 and 1.37.
//
// Rejected: upstream's package. It imports the kubelet's eviction manager for one comparison, and with it the kubelet's
// container manager and most of kube-scheduler: about 170 packages, a ninth of all that a local cluster compiles.
package podgc
