// SPDX-License-Identifier: Apache-2.0

// Package wire owns the benchmark of a scheduler's process against an API server that is not the limit: `kumiki bench
// wire`. The API server is played from memory (bench/standin) by a process that has one core, and the scheduler has
// another one. What it measures is a bound on the scheduler: pods per second of one core, with TLS, HTTP/2, protobuf,
// watches, binds and events.
//
// It does not measure a cluster: there is no etcd, no admission, no other client and no kubelet.
//
// Rejected: the stand-in inside the measuring process, since its collector and its timers would share the core;
// processes without cores of their own, since the figure then depends on which of the two the kernel favours.
package wire
