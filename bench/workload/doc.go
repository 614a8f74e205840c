// SPDX-License-Identifier: Apache-2.0

// Package workload owns the file format of workloads, which is that of upstream's scheduler_perf (kubernetes,
// test/integration/scheduler_perf). A file contains cases. A case has a list of operations with parameters, and
// workloads with their values. A Plan is one workload of one case with all values filled in.
//
// It is strict: an unknown field, a missing or an unused parameter, and an operation that makes no sense are errors
// with their line. Nothing here talks to an API server.
//
// Files are bounded: 16 MiB for a file and 4 MiB for a rendered object, and no count above ten million.
//
// Rejected: reading the file into a tree of any and using the known fields, because a typing error would silently
// change the benchmark.
package workload
