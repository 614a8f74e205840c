// SPDX-License-Identifier: Apache-2.0

// Package metrics owns the comparison of what kumiki registers with the registry of upstream's scheduler: every
// metric of upstream is here under the same name, with the same type, labels, buckets, help and stability level,
// and nothing is here under the prefix scheduler_ that upstream does not have. What is counted in another way
// stands in Differences.
package metrics
