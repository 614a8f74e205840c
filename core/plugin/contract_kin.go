// SPDX-License-Identifier: Apache-2.0

package plugin

import "github.com/kumiki-scheduler/kumiki/core/cluster"

// OfNode marks a PodFilter or PodScore whose Column reads nothing of a row but its node object, and nothing of the pod
// that PodSpec.Kin leaves out: what it says is shared by all kin, and stays while the node object does. A PodScore may
// have an Epoch besides.
type OfNode interface{ OfNode() }

// OfAmounts marks a PodFilter or PodScore whose Column reads nothing of a row but amounts (Snapshot.Allocatable,
// Requested, NonZero), if OfAmounts is true: it can be given those of cluster.Recent.
type OfAmounts interface{ OfAmounts() bool }

// Halved is a PodScore of amounts of which a part is the same for all pods: it can be made once for each row that changed, and
// not once for each class that hears of it (cluster.Recent.Aside).
type Halved interface {
	PodScore
	// Half names the part, so that scores of the same name share it; nil for none. It is comparable.
	Half() any
	// HalfColumn makes the part.
	HalfColumn(s cluster.Snapshot, lo, hi cluster.NodeIdx, out []int64)
	// ColumnWith is Column, given the part.
	ColumnWith(s cluster.Snapshot, lo, hi cluster.NodeIdx, half, out []int64)
}

// OfNode says that the name of the node is all it reads.
func (nameFilter) OfNode() {}

// OfNode says that spec.unschedulable is all it reads.
func (cordonFilter) OfNode() {}

// OfNode says that taints are all it reads.
func (*taintFilter) OfNode() {}

// OfNode says that taints are all it reads.
func (*taintScore) OfNode() {}

// OfNode says that name and labels are all it reads.
func (*affinityFilter) OfNode() {}

// OfNode says that name and labels are all it reads.
func (*affinityScore) OfNode() {}

// OfNode says that declared features are all it reads.
func (featureFilter) OfNode() {}

// OfNode says that images are all it reads, apart from what Epoch tells.
func (*imageScore) OfNode() {}

// OfNode says that it reads nothing.
func (BrokenScore) OfNode() {}

// OfAmounts is true but for a codebook, which has more codes than a class could number.
func (f *fitFilter) OfAmounts() bool { return f.book == nil }

// OfAmounts is true unless devices are counted.
func (f *fitScore) OfAmounts() bool { return countsDevices(f.list) == nil }

// OfAmounts is true unless devices are counted.
func (f *balancedScore) OfAmounts() bool { return countsDevices(f.list) == nil }
