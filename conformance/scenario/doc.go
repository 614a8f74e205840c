// SPDX-License-Identifier: Apache-2.0

// Package scenario owns the form of one conformance question: a cluster, the
// profile it is scheduled with, and the pods that are asked about. A question
// is made by gen, answered by both schedulers, and, when the answers differ,
// written to testdata/regressions as text that a person can read and edit.
//
// Rejected: recording seeds instead of objects. A seed answers nothing once the
// generator has changed, and a reader cannot see what is special about it.
package scenario
