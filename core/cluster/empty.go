// SPDX-License-Identifier: Apache-2.0

package cluster

import "github.com/kumiki-scheduler/kumiki/core/resource"

// EmptyView is View as if no pod were on the node. It uses the memory of into, which may be nil.
func (v Snapshot) EmptyView(n NodeIdx, into *NodeView) *NodeView {
	if into == nil {
		into = &NodeView{}
	}
	into.Row, into.Node, into.NonZero, into.names = n, v.s.rows[n].node, [2]int64{}, v.s.names
	into.Pods, into.Ports = into.Pods[:0], into.Ports[:0]
	into.fixed, into.scalars = [resource.Fixed]int64{}, into.scalars[:0]
	return into
}
