// SPDX-License-Identifier: Apache-2.0

// Package volumes owns the comparison, plugin by plugin, of the filters that read volumes and declared features with
// upstream's: statuses on each node, errors, pods that are added or removed tentatively, and hints. In a whole
// scheduling cycle an earlier plugin often rejects the node first; here each plugin runs alone.
package volumes
