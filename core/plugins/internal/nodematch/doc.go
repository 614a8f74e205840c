// SPDX-License-Identifier: Apache-2.0

// Package nodematch owns how pods match nodes: node selectors and affinity terms, compiled once for each pod and
// evaluated for one node or for a range of rows, and tolerations of taints. Plugins of several subjects use it.
package nodematch
