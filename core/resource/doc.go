// SPDX-License-Identifier: Apache-2.0

// Package resource owns quantities: resource names as dense columns, and amounts in saturating int64 that record an
// overflow.
//
// CPU is counted in thousandths of a core, memory and ephemeral storage in bytes, everything else in units. A
// quantity too large for int64 becomes Overflowed and remains recognisable: upstream reads `50E` of memory as 0
// (Quantity.Value of v0.36.3), so a pod that requests it is placed on any node; here it is never placed.
//
// Rejected: a map for each pod and node (the scan over nodes would follow pointers), and 128-bit columns (twice the
// memory traffic for a case that occurs only in attacks; cluster.Store keeps exact sums beside the columns for the
// few cells that need them).
package resource
