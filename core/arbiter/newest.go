// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/shard"
)

// Newest is the newest entry about each node that can have made a placement there impossible: capacity that was taken,
// or another version of the node. The zero value knows none.
type Newest struct {
	of map[string]shard.Position // node -> position; nodes that are gone are not in it
}

// Note follows an entry.
func (n *Newest) Note(at shard.Position, ch cluster.Change) {
	if n.of == nil {
		n.of = map[string]shard.Position{}
	}
	switch ch.Kind {
	case cluster.NodeChanged:
		n.of[ch.Node.Name] = at
	case cluster.NodeRemoved:
		delete(n.of, ch.Name)
	case cluster.PodTaken:
		n.of[ch.Name] = at
	case cluster.PodBound:
		n.of[ch.Pod.NodeName] = at
	}
}

// Since returns the newest entry about a node that is behind a position; 0 for none.
func (n *Newest) Since(node string, at shard.Position) shard.Position {
	if newest := n.of[node]; newest > at {
		return newest
	}
	return 0
}
