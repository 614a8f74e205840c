// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// kept is what holds for all pods of a class while rows stay as they are: what node-local plugins say.
type kept struct {
	filters
	scorers []prepared // in profile order, without wide ones and those that skip the pod
	broken  error      // why the first scorer that cannot score the pod cannot
	brokeAt int        // and its index in the profile

	column   *[]int64         // the Placer's, for scores that are added up at once
	verdicts []plugin.Verdict // row -> verdict of the filters before the first wide one
	base     []int64          // row -> weighted sum of the scores that need no normalising
}

// filters are the local filters prepared for a class.
type filters struct {
	plans  []plugin.FilterPlan // per filter of the profile; empty for wide ones
	covers int                 // the verdicts are those of the filters before this one: the first wide one
	// only are the nodes that local plans leave; nil means all. Rows outside are Excluded in verdicts.
	only map[string]struct{}
}

// prepared is a scorer prepared for a class, with its column.
type prepared struct {
	Scorer
	at    int // index in the profile
	score plugin.PodScore
	raw   []int64 // row -> raw score, for scores that are normalised
	// nonZero counts rows with a raw score other than 0, feasible or not, for scores that are normalised; counted is
	// set if it covers what the column holds.
	nonZero int
	counted bool
	epoch   uint64
}

// prepareFilters runs PreFilter of the local filters.
func (pl *Placer) prepareFilters(s cluster.Snapshot, p *cluster.Pod, k *kept) {
	k.plans, k.only, k.covers = k.plans[:0], nil, pl.firstLate
	q := reduced(p)
	for i, f := range pl.profile.Filters {
		var plan plugin.FilterPlan
		if !pl.wide[i] {
			pl.meter.Plugin(plugin.AtPreFilter, f.Name())
			plan = f.PrepareFilter(s, q)
			if plan.Nodes != nil {
				k.only = intersect(k.only, plan.Nodes)
			}
		}
		k.plans = append(k.plans, plan)
	}
}

// prepareScores runs PreScore of the local scorers.
func (pl *Placer) prepareScores(s cluster.Snapshot, p *cluster.Pod, k *kept) {
	columns := k.scorers[:cap(k.scorers)] // of whatever was prepared here before
	k.scorers, k.broken, k.column = k.scorers[:0], nil, &pl.column
	q := reduced(p)
	for at, sc := range pl.profile.Scorers {
		if _, wide := sc.Scorer.(plugin.WideScorer); wide {
			continue
		}
		pl.meter.Plugin(plugin.AtPreScore, sc.Name())
		if score := sc.PrepareScore(s, q); score != nil {
			next := prepared{Scorer: sc, at: at, score: score, epoch: score.Epoch(s)}
			if i := len(k.scorers); i < len(columns) {
				next.raw = columns[i].raw
			}
			k.scorers = append(k.scorers, next)
			if b, isBroken := score.(plugin.BrokenScore); isBroken && k.broken == nil {
				k.broken, k.brokeAt = preScoreError(sc, b.Err), at
			}
		}
	}
}

func preScoreError(sc Scorer, err error) error {
	return fmt.Errorf("running PreScore plugin %q: %w", sc.Name(), err)
}

// few judges and scores rows alone.
func (k *kept) few(s cluster.Snapshot, rows []cluster.NodeIdx) {
	k.grow(s.Rows())
	for _, n := range rows {
		k.judge(s, n, n+1)
		k.score(s, n, n+1)
	}
}

// release gives up what is kept by row.
func (k *kept) release() {
	k.verdicts, k.base = nil, nil
	for i := range k.scorers {
		k.scorers[i].raw = nil
	}
}

func (k *kept) grow(rows int) {
	for len(k.verdicts) < rows {
		k.verdicts = append(k.verdicts, plugin.NoNode)
	}
	if len(k.base) < rows {
		k.base = append(k.base, make([]int64, rows-len(k.base))...)
	}
	for i := range k.scorers {
		sc := &k.scorers[i]
		if sc.Normal() != plugin.AsIs && len(sc.raw) < rows {
			sc.raw = append(sc.raw, make([]int64, rows-len(sc.raw))...)
		}
	}
}

// judge brings the verdicts on rows lo to hi-1 up to date.
func (k *kept) judge(s cluster.Snapshot, lo, hi cluster.NodeIdx) {
	for n := lo; n < hi; n++ {
		k.verdicts[n] = k.before(s, n)
	}
	for i := range k.covers {
		if f := k.plans[i].Filter; f != nil {
			f.Column(s, lo, hi, plugin.TagOf(i), k.verdicts)
		}
	}
}

// score brings the scores of rows lo to hi-1 up to date.
func (k *kept) score(s cluster.Snapshot, lo, hi cluster.NodeIdx) {
	base := k.base[lo:hi]
	clear(base)
	for i := range k.scorers {
		sc := &k.scorers[i]
		if sc.Normal() == plugin.AsIs {
			for n, v := range k.asIs(s, sc, lo, hi) {
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

// asIs are the scores of rows lo to hi-1, good until the next call.
func (k *kept) asIs(s cluster.Snapshot, sc *prepared, lo, hi cluster.NodeIdx) []int64 {
	if more := int(hi) - len(*k.column); more > 0 {
		*k.column = append(*k.column, make([]int64, more)...)
	}
	sc.score.Column(s, lo, hi, *k.column)
	return (*k.column)[lo:hi]
}

// rawOf is the raw score of a row.
func (k *kept) rawOf(s cluster.Snapshot, sc *prepared, n cluster.NodeIdx) int64 {
	if sc.Normal() == plugin.AsIs {
		return k.asIs(s, sc, n, n+1)[0]
	}
	return sc.raw[n]
}

// scoreAll scores every row after scorers were just prepared, while their columns hold anything.
func (k *kept) scoreAll(s cluster.Snapshot) {
	k.score(s, 0, cluster.NodeIdx(len(k.base)))
	for i := range k.scorers {
		k.scorers[i].counted = true
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
func (k *kept) before(s cluster.Snapshot, n cluster.NodeIdx) plugin.Verdict {
	node := s.Node(n)
	if node == nil {
		return plugin.NoNode
	}
	if k.only != nil {
		if _, ok := k.only[node.Name]; !ok {
			return plugin.Excluded
		}
	}
	return plugin.Fits
}

func intersect(a, b map[string]struct{}) map[string]struct{} {
	if a == nil {
		return b
	}
	both := map[string]struct{}{}
	for name := range a { // order: builds a set
		if _, ok := b[name]; ok {
			both[name] = struct{}{}
		}
	}
	return both
}
