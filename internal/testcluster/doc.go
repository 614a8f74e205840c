// SPDX-License-Identifier: Apache-2.0

// Package testcluster owns the start of a local cluster from this repository: it builds the
// binary of module localcluster, starts it, waits until it is ready, and ensures that it ends
// with its caller.
//
// Tests call Start: one cluster at a time across all packages and processes (a
// file lock), or as many as ClustersEnv says, never skipped, removed when the test
// ends. `kumiki up` calls
// Launch. The control plane is a separate program because the scheduler must
// not link it: module localcluster imports Kubernetes itself.
package testcluster
