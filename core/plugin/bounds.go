// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	v1 "k8s.io/api/core/v1"

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

// Demands are those that are looked up in what nodes offer: not what is ignored, nor what a device class may back.
func (pl *NodeResourcesFit) Demands(s cluster.Snapshot, p *cluster.Pod) []Demand {
	needs := pl.needsOf(&p.Spec.Request)
	markBacked(s, needs)
	var demands []Demand
	for i := range needs {
		nd := &needs[i]
		id, known := s.Names().Lookup(nd.name)
		if !known || nd.backed || nd.overflowed() {
			continue
		}
		held := int64(1)
		if nd.name != v1.ResourcePods {
			held = p.Spec.Held.Get(nd.name)
		}
		if amount := min(nd.amount, held); amount > 0 {
			demands = append(demands, Demand{Resource: id, Amount: amount})
		}
	}
	return demands
}

// Repeller is a filter that may keep alike pods apart.
type Repeller interface {
	Filter
	// Apart are label keys of nodes: no two pods like p are ever on nodes with one value of such a key.
	Apart(s cluster.Snapshot, p *cluster.Pod) []string
}

// Apart are the keys of the required anti-affinity terms that are about p itself.
func (pl *InterPodAffinity) Apart(_ cluster.Snapshot, p *cluster.Pod) []string {
	own := pl.own(p)
	if own.err != nil {
		return nil
	}
	var keys []string
	for i := range own.repel {
		if own.repel[i].Matches(p.Namespace, nil, p.Spec.Labels) {
			keys = append(keys, own.repel[i].TopologyKey)
		}
	}
	return keys
}
