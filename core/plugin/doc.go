// SPDX-License-Identifier: Apache-2.0

// Package plugin owns the contract of native plugins: the interfaces of filters, scores, gates and reservations, the
// verdicts they return, and the events that wake pods. The default plugins are in core/plugins.
//
// Every filter and every score has two forms. The plain form judges one cluster.NodeView. It defines the semantics, is
// the general path if pods are only assumed to be on a node, and is the reference implementation in tests. The column
// form writes a range of rows at once and is the fast path. A property test and a fuzz test check that both agree.
//
// A plugin prepares itself once per class of pods and returns its own typed state; there is no shared bag of values.
// A prepared form must stay true while rows change: it reads columns and bitmaps when called, never copies of them.
//
// Rejected: upstream's CycleState (a map from string to any, read and asserted per node) and its Handle (a service
// locator).
package plugin
