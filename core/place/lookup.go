// SPDX-License-Identifier: Apache-2.0

package place

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// lookup holds the verdicts and raw scores of rows for one pod or one class of pods.
type lookup struct {
	plans    []plugin.FilterPlan // per filter of the profile
	narrowed []string            // filters that left nodes out before looking at them
	only     map[string]struct{} // names of the nodes to look at; nil means all
	reject   int                 // index of the filter that rejects the pod as a whole, -1
	scorers  []prepared          // in profile order, without those that skip the pod
	broken   error               // why the first scorer that cannot score the pod cannot

	verdicts []plugin.Verdict  // row -> verdict
	base     []int64           // row -> weighted sum of the scores that need no normalising
	patches  []patch           // verdicts that hold for the present decision only
	rows     []cluster.NodeIdx // the rows to look at; nil means all
}

// patch remembers the verdict that nominations have overruled.
type patch struct {
	row cluster.NodeIdx
	was plugin.Verdict
}

// prepared is a scorer prepared for a class, with its column.
type prepared struct {
	Scorer
	score plugin.PodScore
	raw   []int64 // row -> raw score
	// nonZero counts rows with a raw score other than 0, feasible or not, for scores that are normalised; counted tells
	// that it covers what the column holds.
	nonZero int
	counted bool
	epoch   uint64
}

// few judges the named nodes alone.
func (l *lookup) few(s cluster.Snapshot) {
	if l.rows = l.rows[:0]; l.rows == nil {
		l.rows = []cluster.NodeIdx{} // nil would mean all rows, and perhaps none of the names exists
	}
	for name := range l.only { // order: the rows are sorted below
		if n, ok := s.Find(name); ok {
			l.rows = append(l.rows, n)
		}
	}
	slices.Sort(l.rows)
	l.grow(s.Rows())
	for _, n := range l.rows {
		l.judge(s, n, n+1)
		l.score(s, n, n+1)
	}
}

func (l *lookup) grow(rows int) {
	for len(l.verdicts) < rows {
		l.verdicts = append(l.verdicts, plugin.NoNode)
	}
	if len(l.base) < rows {
		l.base = append(l.base, make([]int64, rows-len(l.base))...)
	}
	for i := range l.scorers {
		sc := &l.scorers[i]
		if len(sc.raw) < rows {
			sc.raw = append(sc.raw, make([]int64, rows-len(sc.raw))...)
		}
	}
}

// judge brings the verdicts on rows lo to hi-1 up to date.
func (l *lookup) judge(s cluster.Snapshot, lo, hi cluster.NodeIdx) {
	for n := lo; n < hi; n++ {
		l.verdicts[n] = l.before(s, n)
	}
	for i := range l.plans {
		if f := l.plans[i].Filter; f != nil {
			f.Column(s, lo, hi, plugin.TagOf(i), l.verdicts)
		}
	}
}

// score brings the scores of rows lo to hi-1 up to date.
func (l *lookup) score(s cluster.Snapshot, lo, hi cluster.NodeIdx) {
	base := l.base[lo:hi]
	clear(base)
	for i := range l.scorers {
		sc := &l.scorers[i]
		raw := sc.raw[lo:hi]
		if sc.Normal() == plugin.AsIs {
			sc.score.Column(s, lo, hi, sc.raw)
			for n, v := range raw {
				base[n] += sc.Weight * v
			}
			continue
		}
		if sc.counted || mutant == leftoversRead {
			sc.nonZero -= nonZero(raw)
		}
		sc.score.Column(s, lo, hi, sc.raw)
		sc.nonZero += nonZero(raw)
	}
}

// scoreAll scores every row of a lookup that was just prepared, whose columns hold anything.
func (l *lookup) scoreAll(s cluster.Snapshot) {
	l.score(s, 0, cluster.NodeIdx(len(l.base)))
	for i := range l.scorers {
		l.scorers[i].counted = true
	}
}

func nonZero(raw []int64) int {
	n := 0
	for _, v := range raw {
		if v != 0 {
			n++
		}
	}
	return n
}

// before is the verdict on a row ahead of any filter.
func (l *lookup) before(s cluster.Snapshot, n cluster.NodeIdx) plugin.Verdict {
	node := s.Node(n)
	if node == nil {
		return plugin.NoNode
	}
	if l.only != nil {
		if _, ok := l.only[node.Name]; !ok {
			return plugin.Excluded
		}
	}
	return plugin.Fits
}

// nominated judges the rows anew that have nominated pods of p's priority or more: with them, and, where p still fits,
// without (upstream: RunFilterPluginsWithNominatedPods).
func (l *lookup) nominated(s cluster.Snapshot, p *cluster.Pod, noms Nominations) {
	for _, name := range noms.NominatedNodes() {
		n, ok := s.Find(name)
		if !ok || l.rows != nil && !slices.Contains(l.rows, n) || l.verdicts[n] == plugin.Excluded {
			continue
		}
		view, added := s.View(n), false
		for _, other := range noms.NominatedOn(name) {
			if other.UID != p.UID && other.Spec.Priority >= p.Spec.Priority {
				view.AddPod(other)
				added = true
			}
		}
		if !added {
			continue
		}
		// The first pass has the first word: when it rejects, its reasons are the ones that are told.
		if v := l.plain(s, view); v != plugin.Fits {
			l.patches = append(l.patches, patch{n, l.verdicts[n]})
			l.verdicts[n] = v
		}
	}
}

// unpatch restores the verdicts that held without nominations.
func (l *lookup) unpatch() {
	if mutant == nominationStays {
		l.patches = nil
	}
	for i := len(l.patches) - 1; i >= 0; i-- {
		l.verdicts[l.patches[i].row] = l.patches[i].was
	}
	l.patches = l.patches[:0]
}

// plain is the verdict on a supposed node.
func (l *lookup) plain(s cluster.Snapshot, v *cluster.NodeView) plugin.Verdict {
	for i := range l.plans {
		if f := l.plans[i].Filter; f != nil {
			if code := f.Plain(s, v); code != plugin.Fit {
				return plugin.TagOf(i).With(code)
			}
		}
	}
	return plugin.Fits
}

// own tries the node that p is itself nominated to, ahead of all others (upstream: evaluateNominatedNode).
func (l *lookup) own(s cluster.Snapshot, p *cluster.Pod) (cluster.NodeIdx, bool) {
	if p.Nominated == "" {
		return cluster.NoNode, false
	}
	n, ok := s.Find(p.Nominated)
	if !ok || l.rows != nil && !slices.Contains(l.rows, n) {
		return cluster.NoNode, false
	}
	return n, l.verdicts[n] == plugin.Fits
}
