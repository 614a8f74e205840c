// SPDX-License-Identifier: Apache-2.0

// Package spread owns the comparison of PodTopologySpread with upstream's, each alone: statuses on each node, errors,
// pods that are added or removed tentatively, raw and normalised scores, and hints. In a whole scheduling cycle an
// earlier plugin often rejects the node first, and ties hide scores.
package spread
