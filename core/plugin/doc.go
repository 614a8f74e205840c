// SPDX-License-Identifier: Apache-2.0

// Package plugin owns the contract of native plugins and the default plugins themselves, one file each: what it
// filters, what it scores, what wakes a pod it rejected.
//
// Every filter and every score has two forms. The plain form looks at one cluster.NodeView: it is the meaning, the
// general path when pods are only supposed to be on a node, and the slow twin. The column form writes a range of rows
// at once and is the fast path. A property test and a fuzz test hold them together.
//
// A plugin prepares itself once per class of pods and returns its own typed state; there is no shared bag of values.
// A prepared form must stay true while rows change: it reads columns and bitmaps when called, never copies of them.
//
// Rejected: upstream's CycleState (a map from string to any, read and asserted per node) and its Handle (a service
// locator).
package plugin
