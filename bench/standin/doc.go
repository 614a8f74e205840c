// SPDX-License-Identifier: Apache-2.0

// Package standin owns a simulated API server of a full cluster: nodes, bound pods and waiting pods, stored as
// encoded bytes. It serves lists and watches in protobuf, as an API server does, and accepts binds, status patches
// and events. It needs no etcd, is filled in seconds, and uses little CPU beside the measured scheduler.
//
// It does not implement authentication, validation, preconditions on versions, JSON for pods and nodes, and other
// kinds of objects. Results with it show the cost of a scheduler, not the performance of a cluster.
//
// Rejected: client-go's fake clientset, because its objects do not pass through a connection, and decoding is most of
// a start.
package standin
