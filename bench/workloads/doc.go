// SPDX-License-Identifier: Apache-2.0

// Package workloads owns our own workload files, embedded, so that a benchmark needs no file: one case for every
// family of upstream's scheduler_perf, marked by a label upstream=NAME, and cases that upstream lacks: gangs of 3 to
// 512, the burst of kubernetes#130692, 15,000 nodes, huge pages and other resources on different nodes, and a seeded
// mix of all families.
//
// Every case has a workload named small, labelled short, that checks in seconds that the case works; those labelled
// performance are for measurements. Names are short because users type them: case/workload.
//
// Rejected: upstream's files without changes (they distinguish gates that a later release drops, and refer to names
// of its test driver); conformance/perfconfig checks that those can be read, too.
package workloads
