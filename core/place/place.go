// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// fewNodes is up to how many named nodes a pod is judged on singly.
const fewNodes = 64

// Place looks for the best node for p. draw(n) chooses among n: nodes to sample first, if the strategy samples, tied
// nodes last. Nothing of the Placer's Window moves; see Outcome.Advance.
func (pl *Placer) Place(s cluster.Snapshot, p *cluster.Pod, noms Nominations, draw func(n int) int) Outcome {
	out := pl.place(s, p, noms, draw)
	if out.Node == cluster.NoNode {
		out.search.readRows() // readers of the outcome read every row
	}
	return out
}

func (pl *Placer) place(s cluster.Snapshot, p *cluster.Pod, noms Nominations, draw func(n int) int) Outcome {
	if pl.profile.Search.Strategy == FixedWindow {
		pl.profile.Window.refresh(s) // also for a pod that is rejected at once: upstream takes a snapshot for it
	}
	sr := pl.begin(s, p)
	if n, ok := pl.tryNominatedFirst(s, sr, noms); ok {
		return Outcome{Nodes: s.Nodes(), Node: n, RunnerUp: cluster.NoNode, Feasible: 1, Tied: 1, search: sr}
	}
	pl.evaluateNominated(s, sr, noms)
	if sr.err == nil && !sr.withoutNodes() && !pl.group(s, sr) {
		pl.lateFilters(s, sr)
	}
	out := Outcome{Nodes: s.Nodes(), Node: cluster.NoNode, RunnerUp: cluster.NoNode, search: sr}
	if sr.err != nil {
		pl.clearErrorIfNominatedFits(s, sr)
	}
	windowed := pl.profile.Search.Strategy == FixedWindow && sr.judged()
	if out.Err = sr.err; out.Err != nil && !windowed || sr.withoutNodes() {
		return out
	}
	if sr.err == nil {
		if n, ok := pl.tryNominated(s, sr); ok {
			out.Node, out.Feasible, out.Tied = n, 1, 1
			return out
		}
	}
	if windowed {
		out.Advance = pl.applyWindow(s, sr)
	}
	if out.Err = sr.err; out.Err != nil {
		return out
	}
	if sr.stage == ofGroups {
		out.Path = Grouped
		pl.chooseGrouped(s, sr, &out, draw)
		return out
	}
	pl.askForeign(s, sr)
	if out.Err = sr.err; out.Err != nil {
		return out
	}
	found := sr.sample(pl.profile.Search, draw)
	pl.choose(s, sr, &out, draw)
	out.Feasible = max(out.Feasible, found)
	return out
}

// Explain is Place without effects: foreign code is not called, nothing is sampled, every node is considered, and
// nothing is chosen by a draw.
func (pl *Placer) Explain(s cluster.Snapshot, p *cluster.Pod, noms Nominations) Outcome {
	sr := pl.localVerdicts(s, p, noms)
	if sr.err == nil && !sr.withoutNodes() {
		pl.lateFilters(s, sr)
	}
	out := Outcome{Nodes: s.Nodes(), Node: cluster.NoNode, RunnerUp: cluster.NoNode, search: sr}
	if out.Err = sr.err; out.Err != nil || sr.withoutNodes() {
		return out
	}
	for i := range sr.len() {
		if sr.verdicts[sr.at(i)] == plugin.Fits {
			out.Feasible++
		}
	}
	return out
}

// localVerdicts begins a search for p, with the verdicts of the native filters before the first uncached one, row by
// row.
func (pl *Placer) localVerdicts(s cluster.Snapshot, p *cluster.Pod, noms Nominations) *search {
	sr := pl.begin(s, p)
	pl.evaluateNominated(s, sr, noms)
	sr.readRows()
	return sr
}

// begin begins a search for p, without nominations.
func (pl *Placer) begin(s cluster.Snapshot, p *cluster.Pod) *search {
	sr := &pl.search
	sr.begin(pl, s, p)
	pl.decide(s, p)
	var kept bool
	sr.class, kept = pl.cache.Find(s, p)
	pl.preFilter(s, sr)
	if sr.err != nil || sr.withoutNodes() {
		return sr
	}
	few := sr.only != nil && len(sr.only) <= fewNodes
	switch {
	case few:
		sr.rows = rowsOf(s, sr.only, sr.rowSpace)
		sr.rowSpace = sr.rows
		if !kept {
			pl.cache.EvaluateSingle(s, p, sr.rows)
		}
	case !kept:
		sr.class = pl.cache.Keep(s, p)
	}
	sr.stage = ofClass
	if sr.only != nil && !few {
		sr.exclude(s)
	}
	if pl.within != nil {
		sr.restrictTo(pl.within)
	}
	return sr
}

func rowsOf(s cluster.Snapshot, names map[string]struct{}, into []cluster.NodeIdx) []cluster.NodeIdx {
	if into = into[:0]; into == nil {
		into = []cluster.NodeIdx{} // nil would mean all rows, and perhaps none of the names exists
	}
	for name := range names { // order: the rows are sorted below
		if n, ok := s.Find(name); ok {
			into = append(into, n)
		}
	}
	slices.Sort(into)
	return into
}
