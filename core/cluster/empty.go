// SPDX-License-Identifier: Apache-2.0

package cluster

import "github.com/kumiki-scheduler/kumiki/core/resource"

// EmptyView returns the view of a node as if it had no pods. It reuses the memory of into, which may be nil.
func (v Snapshot) EmptyView(n NodeIdx, into *NodeView) *NodeView {
	if into == nil {
		into = &NodeView{}
	}
	into.Row, into.Node, into.NonZero, into.names = n, v.s.rows[n].node, [2]int64{}, v.s.names
	into.Pods, into.Ports = into.Pods[:0], into.Ports[:0]
	into.fixed, into.scalars = [resource.Fixed]int64{}, into.scalars[:0]
	return into
}
