// SPDX-License-Identifier: Apache-2.0

// Package profilecheck owns the check of the bottleneck finder on a real local cluster: it injects causes, each with a
// strength drawn from a seed, records a profile while the cause acts, and compares the cause that is named with the one
// that was injected. The result is a confusion matrix.
//
// A cause that cannot be injected here is in NotInjected with the reason, so that the matrix does not suggest more than
// was checked.
package profilecheck
