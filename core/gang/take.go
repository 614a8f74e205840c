// SPDX-License-Identifier: Apache-2.0

package gang

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
)

// Placement is a row for a member, by its index in Need.Members.
type Placement struct {
	Member int
	Row    cluster.NodeIdx
}

// PlacementRejection is the first placement that cannot be taken, and why. Plugin is empty if no plugin refuses it.
type PlacementRejection struct {
	Placement
	Plugin, Reason string
	Err            error // of the plugin
}

// Text returns why the placement is rejected.
func (r *PlacementRejection) Text() string { return textOf(r.Reason, r.Err) }

func textOf(reason string, err error) string {
	if err != nil {
		return err.Error()
	}
	return reason
}

// Take places a gang where another search, on an older state, has placed it. Each member, in the order given, must pass
// all native filters with the members before it in place, and plugins reserve what else it needs. The answer is that of
// Place. If one placement is rejected, nothing is placed: a gang is placed whole or not at all.
//
// Only the rows given are considered. A rejection does not mean that the gang has no other placement.
func Take(need Need, placements []Placement, g *Ground) (Answer, *PlacementRejection) {
	g.begin(need.Members)
	sr := &search{need: need, g: g, best: partial{blocked: -1, count: len(placements),
		nodes: make([]cluster.NodeIdx, len(need.Members)), outs: make([]place.Outcome, len(need.Members))}}
	for i := range sr.best.nodes {
		sr.best.nodes[i] = cluster.NoNode
	}
	no := sr.valid(placements)
	for i := 0; i < len(placements) && no == nil; i++ {
		no = sr.takeOne(placements[i])
	}
	if no != nil {
		g.rollback(0)
		return Answer{}, no
	}
	return sr.answer(Placed), nil
}

// valid returns the first placement that breaks the quorum or a required topology; nil for none.
func (sr *search) valid(placements []Placement) *PlacementRejection {
	if len(placements) < sr.need.Quorum || len(placements) == 0 {
		return &PlacementRejection{Placement: Placement{Member: -1},
			Reason: "fewer pods have a node than the gang needs"}
	}
	required, _ := sr.levels()
	if len(required) == 0 {
		return nil
	}
	domains := map[string]bool{} // of the members that have a node already; without one, of the first placement
	for _, n := range sr.need.Bound {
		if name, ok := sr.nameOf(n, required); ok {
			domains[name] = true
		}
	}
	for i, placement := range placements {
		name, ok := sr.nameOf(placement.Row, required)
		if ok && i == 0 && len(sr.need.Bound) == 0 {
			domains[name] = true
		}
		if first, _ := sr.nameOf(placements[0].Row, required); !ok || !domains[name] || name != first {
			return &PlacementRejection{Placement: placement,
				Reason: "the pods of the gang are not in one domain of its topology"}
		}
	}
	return nil
}

func (sr *search) takeOne(placement Placement) *PlacementRejection {
	p := sr.need.Members[placement.Member]
	if sr.best.nodes[placement.Member] != cluster.NoNode {
		return &PlacementRejection{Placement: placement, Reason: "the pod has two nodes"}
	}
	sr.tried++
	out, rejected := sr.g.Placer.Admit(sr.g.state(), p, placement.Row, sr.g.noms)
	if rejected != nil {
		return &PlacementRejection{placement, rejected.Plugin, rejected.Reason, out.Err}
	}
	if no := sr.g.take(placement.Member, p, placement.Row); no != nil {
		return &PlacementRejection{placement, no.by, no.reject, no.err}
	}
	sr.best.nodes[placement.Member], sr.best.outs[placement.Member] = placement.Row, out
	return nil
}
