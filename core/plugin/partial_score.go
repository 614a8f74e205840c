// SPDX-License-Identifier: Apache-2.0

package plugin

import "github.com/kumiki-scheduler/kumiki/core/cluster"

// PartialScorer is a PodScore of amounts of which a part is the same for all pods: it is computed once for each row that
// changed, and not once for each class (cluster.Recent.Aside).
type PartialScorer interface {
	PodScore
	// Part names the part, so that scores of the same name share it; nil for none. It is comparable.
	Part() any
	// PartColumn computes the part.
	PartColumn(s cluster.Snapshot, lo, hi cluster.NodeIdx, out []int64)
	// ColumnWithPart is Column, given the part.
	ColumnWithPart(s cluster.Snapshot, lo, hi cluster.NodeIdx, part, out []int64)
}
