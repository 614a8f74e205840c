// SPDX-License-Identifier: Apache-2.0

// Package testbed owns the environment of a measurement: the process and configuration of the scheduler, the local
// cluster without other load, and the clocks and counters of the kernel and the API server for both.
//
// Every scheduler gets the same settings in the same file and the same cluster.
package testbed
