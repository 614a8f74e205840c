// SPDX-License-Identifier: Apache-2.0

// Package workloads owns our own workload files, embedded, so that a benchmark needs no file: one case for every family
// of upstream's scheduler_perf, told by a label upstream=NAME, and what upstream lacks: gangs of 3 to 512, the burst of
// kubernetes#130692, 15,000 nodes, huge pages and other resources on unlike nodes, and a seeded mix of all families.
//
// Every case has a workload named small, labelled short, that shows in seconds that the case works; those labelled
// performance are for measuring. Names are short because people type them: case/workload.
//
// Rejected: upstream's files as they are (they tell apart gates that a later release drops, and a few names in them are
// those of its test driver); conformance/perfconfig shows that those can be run too.
package workloads
