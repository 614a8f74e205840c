// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"errors"
	"fmt"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// standInPlacements answers in place of what proposes placements for plugins.
type standInPlacements struct {
	r  *Recorded
	id int
}

var _ plugin.Placements = standInPlacements{}

// Generate returns the noted placements.
func (p standInPlacements) Generate(snap cluster.Snapshot, _ []*cluster.Pod) (got plugin.Candidates) {
	s, err := p.r.at(p.id, atPlacements)
	if err != nil {
		return plugin.Candidates{Err: err}
	}
	switch s.byte() {
	case placementsNone:
	case placementsErr:
		got.Err = errors.New(s.text())
	case placementsReject:
		got.By, got.Rejected = s.text(), s.text()
	case placementsList:
		n := s.number()
		if n > uint64(len(s.rest)) {
			s.broken(errShort.Error())
		}
		for i := uint64(0); i < n && s.err == nil; i++ {
			got.List = append(got.List, s.placement(snap))
		}
		got.Search = candidatesStandIn{p}
	default:
		s.broken("an unknown outcome")
	}
	if s.err != nil {
		return plugin.Candidates{Err: s.err}
	}
	return got
}

// placement reads a placement of the nodes of a state.
func (s *reader) placement(snap cluster.Snapshot) (c plugin.Candidate) {
	c.Name = s.text()
	switch s.byte() {
	case placementOfAll:
	case placementErr:
		c.Err = errors.New(s.text())
	case placementOfRows:
		n, row := s.number(), uint64(0)
		if n > uint64(len(s.rest)) {
			s.broken(errShort.Error())
			return c
		}
		c.Rows = []cluster.NodeIdx{}
		for i := range n {
			distance := s.number()
			row += distance
			if known := uint64(snap.Rows()); distance > known || row >= known || i > 0 && distance == 0 ||
				snap.Node(cluster.NodeIdx(row)) == nil {
				s.broken(fmt.Sprintf("there is no node in row %d, or it is there twice", row))
				return c
			}
			c.Rows = append(c.Rows, cluster.NodeIdx(row))
		}
	default:
		s.broken("an unknown placement")
	}
	return c
}

// candidatesStandIn answers in place of a search among placements.
type candidatesStandIn struct{ p standInPlacements }

var _ plugin.CandidateSearch = candidatesStandIn{}

// Enter does nothing: answers have what it leads to.
func (candidatesStandIn) Enter(int) {}

// Totals returns the noted totals.
func (c candidatesStandIn) Totals(_ cluster.Snapshot, tries []plugin.CandidatePlacement) ([]int64, error) {
	s, err := c.p.r.at(c.p.id, atPlacementScore)
	if err != nil {
		return nil, err
	}
	if err := s.error(); err != nil {
		return nil, err
	}
	totals := make([]int64, len(tries))
	for i := range totals {
		totals[i] = s.signed()
	}
	return totals, s.err
}

// Leave does nothing.
func (candidatesStandIn) Leave(int) {}
