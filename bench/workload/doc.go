// SPDX-License-Identifier: Apache-2.0

// Package workload owns the file format in which workloads for schedulers are written: that of upstream's scheduler_perf
// (kubernetes, test/integration/scheduler_perf), read as it is. A file holds cases, a case holds a list of operations with
// parameters and the workloads that give these values; a Plan is one workload of one case with everything put in.
//
// It is strict: an unknown field, a missing or an unused parameter, and an operation that makes no sense are errors
// with their line. Nothing here talks to an API server.
//
// Rejected: reading the file into a tree of any and picking what is known, which is how a typing error becomes a
// benchmark of something else.
package workload
