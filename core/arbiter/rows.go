// SPDX-License-Identifier: Apache-2.0

package arbiter

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/shard"
)

// Rows returns the rows that a proposal gives members of a unit, as the proposal orders them. What it says of other
// pods, twice of one, or of nodes that are gone, is refused, and so is a proposal without a placement.
func Rows(s cluster.Snapshot, members []*cluster.Pod, on []shard.Placement) ([]gang.Placement, *Rejection) {
	if len(on) == 0 {
		return nil, &Rejection{Reason: "no pod has a node"}
	}
	left := make(map[string]int, len(members)) // UID -> index of the member, of those without a row
	for i, p := range members {
		left[string(p.UID)] = i
	}
	rows := make([]gang.Placement, 0, len(on))
	for _, placement := range on {
		i, of := left[placement.Pod.UID]
		n, there := s.Find(placement.Node)
		switch {
		case !of:
			return nil, &Rejection{Node: placement.Node,
				Reason: "pod " + placement.Pod.Key() + " does not wait in the unit, or has a node already"}
		case !there:
			return nil, &Rejection{Node: placement.Node, Reason: "the node is gone"}
		}
		delete(left, placement.Pod.UID)
		rows = append(rows, gang.Placement{Member: i, Row: n})
	}
	return rows, nil
}
