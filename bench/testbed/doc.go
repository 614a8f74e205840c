// SPDX-License-Identifier: Apache-2.0

// Package testbed owns what a scheduler is measured in: its process and configuration, the local cluster with nothing
// else at work, and the clocks and counters of both that the kernel and the API server have.
//
// Every scheduler gets the same settings in the same file and the same cluster.
package testbed
