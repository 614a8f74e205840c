// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// NodeIdx is a node's row. Rows are given in event order and reused after their node and its pods are gone.
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
	// ConditionsHash and AnnotationsHash cover what only wakes pods: condition types with their status, annotations.
	ConditionsHash  uint64
	AnnotationsHash uint64
}

// Image is one image present on a node.
type Image struct {
	Names []string
	Size  int64 // bytes
}
