// SPDX-License-Identifier: Apache-2.0

// Package testcluster owns the way from this repository to a running local
// cluster: it builds the binary of module localcluster, starts it, waits until
// it is ready, and makes sure that it is gone when the caller is.
//
// Tests call Start: one cluster at a time across all packages and processes (a
// file lock), never skipped, removed when the test ends. `kumiki up` calls
// Launch. The control plane is a separate program because the scheduler must
// not link it: module localcluster imports Kubernetes itself.
package testcluster
