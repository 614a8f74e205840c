// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Adviser is a filter that can say what would make a node it rejects acceptable.
type Adviser interface {
	Filter
	// Advise fills in the remedy for p on the node of v, which the filter rejects. Plugin and Node are set already.
	Advise(v *cluster.NodeView, p *cluster.Pod, r *record.Remedy)
}

// ResourceScorer is a scorer that ranks nodes by what is requested of them.
type ResourceScorer interface {
	Scorer
	// Resources lists the resources it weighs, and reports whether it counts requests with defaults for silent containers
	// rather than real ones.
	Resources() (names []v1.ResourceName, withDefaults bool)
}

// Explainer is a PodScore that can show what it computed the score of a node from.
type Explainer interface {
	PodScore
	Explain(s cluster.Snapshot, v *cluster.NodeView) []Input
}

// Input is one resource as a score saw it on a node, next to the real numbers.
type Input struct {
	Resource    v1.ResourceName
	Weight      int64
	Allocatable int64
	// NodeCounted and PodCounted are what the score used: with defaults for silent containers if Defaults is set.
	NodeCounted, PodCounted int64
	// NodeReal and PodReal are the real requests.
	NodeReal, PodReal int64
	Defaults          bool
}
