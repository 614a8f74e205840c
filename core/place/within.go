// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// PlaceWithin is Place as if the cluster had the nodes of some rows alone: the others are neither evaluated nor
// count in normalised scores. rows are in index order, each with a node; nil means all, and no row at all means
// that nothing fits. A pod that is nominated to a node outside is placed as if it were not.
func (pl *Placer) PlaceWithin(s cluster.Snapshot, p *cluster.Pod, noms Nominations, draw func(n int) int,
	rows []cluster.NodeIdx) Outcome {
	if rows == nil {
		return pl.Place(s, p, noms, draw)
	}
	pl.within = rows
	defer func() { pl.within = nil }()
	return pl.Place(s, inside(s, p, rows), noms, draw)
}

// FitWithin lists the rows that p fits, of those given (see PlaceWithin), in index order. Foreign code is called
// too. An error of a plugin fails the attempt.
func (pl *Placer) FitWithin(s cluster.Snapshot, p *cluster.Pod, noms Nominations,
	rows, into []cluster.NodeIdx) (Outcome, []cluster.NodeIdx) {
	pl.within = rows
	defer func() { pl.within = nil }()
	sr := pl.localVerdicts(s, inside(s, p, rows), noms)
	if sr.err == nil && !sr.withoutNodes() {
		pl.lateFilters(s, sr)
	}
	if sr.err == nil && !sr.withoutNodes() {
		pl.askForeign(s, sr)
	}
	out := Outcome{Nodes: s.Nodes(), Node: cluster.NoNode, RunnerUp: cluster.NoNode, search: sr}
	if out.Err = sr.err; out.Err != nil || sr.withoutNodes() {
		return out, into
	}
	sr.readRows()
	for i := range sr.len() {
		if n := sr.at(i); sr.verdicts[n] == plugin.Fits {
			into = append(into, n)
			out.Feasible++
		}
	}
	return out, into
}

// inside is p without a nomination that lies outside of rows.
func inside(s cluster.Snapshot, p *cluster.Pod, rows []cluster.NodeIdx) *cluster.Pod {
	if p.Nominated == "" || rows == nil {
		return p
	}
	if n, ok := s.Find(p.Nominated); ok && contains(rows, n) {
		return p
	}
	q := *p
	q.Nominated = ""
	return &q
}

func contains(rows []cluster.NodeIdx, n cluster.NodeIdx) bool {
	_, ok := slices.BinarySearch(rows, n)
	return ok
}

// restrictTo leaves of the rows to look at those that the search is kept to.
func (sr *search) restrictTo(rows []cluster.NodeIdx) {
	switch {
	case sr.rows != nil:
		sr.rows = slices.DeleteFunc(sr.rows, func(n cluster.NodeIdx) bool { return !contains(rows, n) })
		sr.rowSpace = sr.rows
	case sr.only != nil:
		for _, n := range rows {
			if sr.verdicts[n] != plugin.Excluded {
				sr.rowSpace = append(sr.rowSpace, n)
			}
		}
		sr.rows = sr.rowSpace
		if sr.rows == nil {
			sr.rows = []cluster.NodeIdx{}
		}
	default:
		sr.rows = rows // nothing writes to them: what inserts rows finds the nominated one here
	}
}
