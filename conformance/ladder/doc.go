// SPDX-License-Identifier: Apache-2.0

// Package ladder owns the test that a cluster can be moved from kube-scheduler to kumiki and back, step by step and
// under load, as docs/migration.md describes: the real programs, a real API server, the manifests of deploy/, and a
// ledger that reads nothing but the API server.
package ladder
