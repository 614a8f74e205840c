// SPDX-License-Identifier: Apache-2.0

// Package metrics owns the comparison of kumiki's metrics with those of upstream's scheduler: kumiki registers every
// metric of upstream under the same name, with the same type, labels, buckets, help and stability level, and no other
// metric with the prefix scheduler_. Differences lists metrics that are counted in another way.
package metrics
