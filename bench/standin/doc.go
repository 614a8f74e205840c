// SPDX-License-Identifier: Apache-2.0

// Package standin owns a simulated API server of a full cluster: nodes, bound pods and waiting pods, stored as
// encoded bytes. It serves lists and watches in protobuf or JSON, as an API server does, and accepts binds, status
// patches and events. It needs no etcd, is filled in seconds, and uses less CPU than the measured scheduler.
//
// It keeps a log of the binds and finds what no scheduler may leave behind: pods without a node, refused binds, nodes
// with more pods than fit.
//
// It does not implement authentication, validation, preconditions on versions, and other kinds of objects. Results
// with it show the cost of a scheduler, not the performance of a cluster.
//
// Rejected: client-go's fake clientset, because its objects do not pass through a connection, and decoding is most of
// a start.
package standin
