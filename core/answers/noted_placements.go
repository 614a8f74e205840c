// SPDX-License-Identifier: Apache-2.0

package answers

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// notedPlacements is what proposes placements for plugins, with answers that are noted.
type notedPlacements struct {
	plugin.Placements
	log *Log
	id  int
}

// What GeneratePlacements leads to, as a byte says.
const (
	placementsNone byte = iota
	placementsErr
	placementsReject
	placementsList
)

// What a placement is, as a byte says.
const (
	placementOfAll byte = iota
	placementOfRows
	placementErr
)

// Generate notes the placements.
func (n notedPlacements) Generate(s cluster.Snapshot, members []*cluster.Pod) plugin.Candidates {
	got := n.Placements.Generate(s, members)
	if sec := n.log.at(n.id, atPlacements); sec != nil {
		sec.placements(n.log, &got)
	}
	if got.Search != nil {
		got.Search = notedCandidates{got.Search, n}
	}
	return got
}

func (s *section) placements(l *Log, got *plugin.Candidates) {
	switch {
	case got.Err != nil:
		s.byte(placementsErr)
		s.number(l.text(got.Err.Error()))
		return
	case got.Rejected != "":
		s.byte(placementsReject)
		s.number(l.text(got.By))
		s.number(l.text(got.Rejected))
		return
	case len(got.List) == 0:
		s.byte(placementsNone)
		return
	}
	s.byte(placementsList)
	s.number(uint64(len(got.List)))
	for i := range got.List {
		s.placement(l, &got.List[i])
	}
}

// placement notes a name, and rows as the distance to the one before.
func (s *section) placement(l *Log, c *plugin.Candidate) {
	s.number(l.text(c.Name))
	switch {
	case c.Err != nil:
		s.byte(placementErr)
		s.number(l.text(c.Err.Error()))
	case c.Rows == nil:
		s.byte(placementOfAll)
	default:
		s.byte(placementOfRows)
		s.number(uint64(len(c.Rows)))
		last := cluster.NodeIdx(0)
		for _, row := range c.Rows {
			s.number(uint64(row - last))
			last = row
		}
	}
}

// notedCandidates is a search among placements with scores that are noted.
type notedCandidates struct {
	plugin.CandidateSearch
	n notedPlacements
}

// Totals notes the totals.
func (c notedCandidates) Totals(s cluster.Snapshot, tries []plugin.CandidatePlacement) ([]int64, error) {
	totals, err := c.CandidateSearch.Totals(s, tries)
	if sec := c.n.log.at(c.n.id, atPlacementScore); sec != nil {
		sec.failure(c.n.log, err)
		if err == nil {
			for _, total := range totals {
				sec.signed(total)
			}
		}
	}
	return totals, err
}
