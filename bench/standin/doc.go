// SPDX-License-Identifier: Apache-2.0

// Package standin owns a stand-in for the API server of a full cluster: nodes, bound pods and pods that wait, kept as the
// bytes that are sent of them. It gives lists and watches in protobuf, as an API server does, and takes binds, status
// patches and events. It needs no etcd, is filled in seconds, and costs little beside the scheduler that is measured.
//
// What it leaves out: authentication, validation, versions as preconditions, JSON for pods and nodes, and objects of the
// other kinds, of which it has none. Results against it say what a scheduler needs, not what a cluster gives.
//
// Rejected: client-go's fake clientset, because what a scheduler reads would not go through a connection, and decoding is
// most of a start.
package standin
