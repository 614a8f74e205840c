// SPDX-License-Identifier: Apache-2.0

package resources

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// NodePodCount prefers nodes with few pods, whatever the pods request: 100 less the number of pods in percent of the
// largest number among the nodes that fit. It is in no default profile, and upstream has nothing like it.
type NodePodCount struct{}

// NodePodCountName is its name in configurations.
const NodePodCountName = "NodePodCount"

// Name returns NodePodCountName.
func (NodePodCount) Name() string { return NodePodCountName }

// Reads declares the number of pods of the node.
func (NodePodCount) Reads() plugin.Reads { return plugin.ReadsAmounts }

// PrepareScore applies to every pod.
func (NodePodCount) PrepareScore(cluster.Snapshot, *cluster.Pod) plugin.PodScore { return podCount{} }

// Normal gives the node with the most pods 0, and a node without pods MaxScore.
func (NodePodCount) Normal() plugin.Normal { return plugin.ReversedMax }

// podCount scores a node by the number of its pods, assumed ones included.
type podCount struct{}

// Plain returns the number of pods of one node.
func (podCount) Plain(_ cluster.Snapshot, v *cluster.NodeView) int64 {
	return v.Requested(v1.ResourcePods)
}

// Column writes the numbers of pods of rows lo to hi-1.
func (podCount) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, out []int64) {
	var space []int64
	copy(out[lo:hi], s.Requested(resource.Pods).Cut(lo, hi, &space))
}
