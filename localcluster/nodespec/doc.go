// SPDX-License-Identifier: Apache-2.0

// Package nodespec owns the YAML description of the nodes of a local cluster, and its expansion
// to Node objects. It is pure: the same spec gives the same nodes.
package nodespec
