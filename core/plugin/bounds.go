// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// Demander is a filter that keeps sums: what the pods on a node hold and what one more asks for is never more than what
// the node offers.
type Demander interface {
	Filter
	// Demands are amounts of which p takes at least as much on any node, none of them 0. Other things may be asked for
	// besides.
	Demands(s cluster.Snapshot, p *cluster.Pod) []Demand
}

// Demand is an amount of one resource.
type Demand struct {
	Resource resource.ID
	Amount   int64
	// Offered is what every node counts as offering; 0 for what it says that it offers.
	Offered int64
}

// Repeller is a filter that may keep alike pods apart.
type Repeller interface {
	Filter
	// Apart are label keys of nodes: no two pods like p are ever on nodes with one value of such a key.
	Apart(s cluster.Snapshot, p *cluster.Pod) []string
}
