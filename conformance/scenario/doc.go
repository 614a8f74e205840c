// SPDX-License-Identifier: Apache-2.0

// Package scenario owns the format of one conformance question: a cluster, the profile it is
// scheduled with, and the pods to schedule. Package gen generates a question, both schedulers
// answer it, and if the answers differ, it is written to testdata/regressions as text that can
// be read and edited.
//
// Rejected: recording seeds instead of objects. A seed answers nothing once the
// generator has changed, and a reader cannot see what is special about it.
package scenario
