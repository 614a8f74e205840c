// SPDX-License-Identifier: Apache-2.0

package plugin

import "github.com/kumiki-scheduler/kumiki/core/cluster"

// OfNode marks a PodFilter or PodScore whose Column reads nothing of a row but its node object, and nothing of the
// pod that PodSpec.`Kin` leaves out: its result is shared by all pods of one `Kin`, and stays while the node object
// does. A PodScore may have an Epoch besides.
type OfNode interface{ OfNode() }

// OfAmounts marks a PodFilter or PodScore whose Column reads nothing of a row but amounts (Snapshot.Allocatable,
// Requested, NonZero), if OfAmounts is true: it can be given those of cluster.Recent.
type OfAmounts interface{ OfAmounts() bool }

// Halved is a PodScore of amounts of which a part is the same for all pods: it can be made once for each row that
// changed, and not once for each class that follows it (cluster.Recent.Aside).
type Halved interface {
	PodScore
	// Half names the part, so that scores of the same name share it; nil for none. It is comparable.
	Half() any
	// HalfColumn makes the part.
	HalfColumn(s cluster.Snapshot, lo, hi cluster.NodeIdx, out []int64)
	// ColumnWith is Column, given the part.
	ColumnWith(s cluster.Snapshot, lo, hi cluster.NodeIdx, half, out []int64)
}

// OfNode says that it reads nothing.
func (BrokenScore) OfNode() {}
