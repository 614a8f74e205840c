// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// NodeIdx is a node's row. Rows are assigned in the order of events and reused after their node and its pods are
// gone.
type NodeIdx int32

// NoNode is no row.
const NoNode NodeIdx = -1

// Node is a compact, immutable record of one version of a node object.
type Node struct {
	Name          string
	UID           string
	Labels        map[string]string // label key -> value
	Taints        []v1.Taint
	Unschedulable bool
	Allocatable   resource.Amounts
	Images        []Image
	// Features are the declared features, sorted.
	Features []string
	// ConditionsHash and AnnotationsHash cover fields that only wake pods: condition types with their status,
	// annotations.
	ConditionsHash  uint64
	AnnotationsHash uint64
	// Full is as in Pod. Equal ignores it.
	Full *v1.Node `json:"-"`
}

// Equal reports whether two records describe the same node state.
func (n *Node) Equal(o *Node) bool {
	return n.Name == o.Name && n.UID == o.UID && n.Unschedulable == o.Unschedulable &&
		n.ConditionsHash == o.ConditionsHash && n.AnnotationsHash == o.AnnotationsHash &&
		n.Allocatable.Equal(&o.Allocatable) && maps.Equal(n.Labels, o.Labels) && slices.Equal(n.Features, o.Features) &&
		slices.EqualFunc(n.Taints, o.Taints, func(a, b v1.Taint) bool {
			return a.Key == b.Key && a.Value == b.Value && a.Effect == b.Effect && a.TimeAdded.Equal(b.TimeAdded)
		}) &&
		slices.EqualFunc(n.Images, o.Images, func(a, b Image) bool {
			return a.Size == b.Size && slices.Equal(a.Names, b.Names)
		})
}

// Image is one image present on a node.
type Image struct {
	Names []string
	Size  int64 // bytes
}
