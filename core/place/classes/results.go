// SPDX-License-Identifier: Apache-2.0

package classes

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// results is what the node-local plugins say about the pods of a class, by row, while rows stay as they are.
type results struct {
	filters
	scorers  []scorer // in profile order, without uncached ones and those that skip the pod
	broken   error    // why the first scorer that cannot score the pod cannot
	brokenAt int      // and its index in the profile
	// scoreVersions are those of scores that depend on more than the row.
	scoreVersions []versioned

	verdicts []plugin.Verdict // row -> verdict of the filters before the first uncached one
	base     []int64          // row -> weighted sum of the scores that need no normalising
}

// filters are the node-local filters prepared for a class.
type filters struct {
	plans []plugin.FilterPlan // per filter of the profile; empty for uncached ones
	// covers is the number of filters, in profile order, that the verdicts come from: those before the first uncached
	// one.
	covers int
	// only are the nodes that the plans leave; nil means all. Rows outside are Excluded in verdicts.
	only map[string]struct{}
	// versions are those of filters that depend on more than the row.
	versions []versioned
}

// versioned is a prepared filter or score with its version at the time of the preparation.
type versioned struct {
	of  plugin.Versioned
	was uint64
}

// appendVersion adds a prepared filter or score to a list if it is Versioned.
func appendVersion(list []versioned, prepared any, s cluster.Snapshot) []versioned {
	if v, is := prepared.(plugin.Versioned); is {
		list = append(list, versioned{v, v.Version(s)})
	}
	return list
}

// outdated reports whether any version of a list has changed.
func outdated(list []versioned, s cluster.Snapshot) bool {
	for i := range list {
		if list[i].of.Version(s) != list[i].was {
			return true
		}
	}
	return false
}

// scorer is a plugin prepared for a class, with its column.
type scorer struct {
	Scorer
	at    int // index in the profile. Invariant: increasing over results.scorers
	score plugin.PodScore
	raw   []int64 // row -> raw score, for scores that are normalised
	// nonZero counts rows with a raw score other than 0, feasible or not, for scores that are normalised. Invariant: if
	// counted is set, it is the count of what the column holds.
	nonZero int
	counted bool
}

// prepareFilters runs PreFilter of the node-local filters.
func (r *results) prepareFilters(pr *profile, m Meter, s cluster.Snapshot, p *cluster.Pod) {
	r.plans, r.versions, r.only, r.covers = r.plans[:0], r.versions[:0], nil, pr.firstUncached
	q := Representative(p)
	for i, f := range pr.filters {
		var plan plugin.FilterPlan
		if !pr.uncached[i] {
			m.Plugin(plugin.AtPreFilter, f.Name())
			plan = f.PrepareFilter(s, q)
			if plan.Nodes != nil {
				r.only = plugin.IntersectNodes(r.only, plan.Nodes)
			}
			r.versions = appendVersion(r.versions, plan.Filter, s)
		}
		r.plans = append(r.plans, plan)
	}
}

// prepareScores runs PreScore of the node-local scorers.
func (r *results) prepareScores(pr *profile, m Meter, s cluster.Snapshot, p *cluster.Pod) {
	columns := r.scorers[:cap(r.scorers)] // of the class that was prepared here before
	r.scorers, r.scoreVersions, r.broken = r.scorers[:0], r.scoreVersions[:0], nil
	q := Representative(p)
	for at, sc := range pr.scorers {
		if _, uncached := sc.Scorer.(plugin.UncachedScorer); uncached {
			continue
		}
		m.Plugin(plugin.AtPreScore, sc.Name())
		if score := sc.PrepareScore(s, q); score != nil {
			next := scorer{Scorer: sc, at: at, score: score}
			r.scoreVersions = appendVersion(r.scoreVersions, score, s)
			if i := len(r.scorers); i < len(columns) {
				next.raw = columns[i].raw
			}
			r.scorers = append(r.scorers, next)
			if b, isBroken := score.(plugin.BrokenScore); isBroken && r.broken == nil {
				r.broken, r.brokenAt = sc.PreScoreError(b.Err), at
			}
		}
	}
}

// evaluate brings verdicts and scores of single rows up to date.
func (r *results) evaluate(w *workspace, s cluster.Snapshot, rows []cluster.NodeIdx) {
	r.grow(s.Rows())
	for _, n := range rows {
		r.filter(s, n, n+1)
		r.score(w, s, n, n+1)
	}
}

// release drops the columns.
func (r *results) release() {
	r.verdicts, r.base = nil, nil
	for i := range r.scorers {
		r.scorers[i].raw = nil
	}
}

func (r *results) grow(rows int) {
	for len(r.verdicts) < rows {
		r.verdicts = append(r.verdicts, plugin.NoNode)
	}
	if len(r.base) < rows {
		r.base = append(r.base, make([]int64, rows-len(r.base))...)
	}
	for i := range r.scorers {
		sc := &r.scorers[i]
		if sc.Normal() != plugin.AsIs && len(sc.raw) < rows {
			sc.raw = append(sc.raw, make([]int64, rows-len(sc.raw))...)
		}
	}
}

// filter brings the verdicts on rows lo to hi-1 up to date.
func (r *results) filter(s cluster.Snapshot, lo, hi cluster.NodeIdx) {
	for n := lo; n < hi; n++ {
		r.verdicts[n] = r.unfiltered(s, n)
	}
	for i := range r.covers {
		if f := r.plans[i].Filter; f != nil {
			f.Column(s, lo, hi, plugin.TagOf(i), r.verdicts)
		}
	}
}

// unfiltered is the verdict on a row before any filter.
func (r *results) unfiltered(s cluster.Snapshot, n cluster.NodeIdx) plugin.Verdict {
	node := s.Node(n)
	if node == nil {
		return plugin.NoNode
	}
	if r.only != nil {
		if _, ok := r.only[node.Name]; !ok {
			return plugin.Excluded
		}
	}
	return plugin.Fits
}

// score brings the scores of rows lo to hi-1 up to date.
func (r *results) score(w *workspace, s cluster.Snapshot, lo, hi cluster.NodeIdx) {
	base := r.base[lo:hi]
	clear(base)
	for i := range r.scorers {
		sc := &r.scorers[i]
		if sc.Normal() == plugin.AsIs {
			for n, v := range sc.asIs(w, s, lo, hi) {
				base[n] += sc.Weight * v
			}
			continue
		}
		raw := sc.raw[lo:hi]
		if sc.counted {
			sc.nonZero -= nonZero(raw)
		}
		sc.score.Column(s, lo, hi, sc.raw)
		sc.nonZero += nonZero(raw)
	}
}

// scoreAll scores every row after scorers were just prepared, when their columns do not hold raw scores yet.
func (r *results) scoreAll(w *workspace, s cluster.Snapshot) {
	r.score(w, s, 0, cluster.NodeIdx(len(r.base)))
	for i := range r.scorers {
		r.scorers[i].counted = true
	}
}

// asIs are the scores of rows lo to hi-1, valid until the workspace is used again.
func (sc *scorer) asIs(w *workspace, s cluster.Snapshot, lo, hi cluster.NodeIdx) []int64 {
	w.growScores(int(hi))
	sc.score.Column(s, lo, hi, w.scores)
	return w.scores[lo:hi]
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

// stale reports whether verdicts or scores of rows may have changed that the journal does not name.
func (r *results) stale(s cluster.Snapshot) bool {
	return outdated(r.versions, s) || outdated(r.scoreVersions, s)
}
