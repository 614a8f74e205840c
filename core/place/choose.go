// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// totals computes a row's total: base plus the normalised scores.
type totals struct {
	base  []int64
	flat  int64 // what every row gets from scorers whose raw score is 0 everywhere
	extra []normalised
}

type normalised struct {
	at      int // index in the class's scorers
	raw     []int64
	normal  plugin.Normal
	weight  int64
	largest int64 // among the rows that fit
}

func (t *totals) of(n cluster.NodeIdx) int64 {
	total := t.base[n] + t.flat
	for i := range t.extra {
		e := &t.extra[i]
		total += e.weight * e.normal.Apply(e.raw[n], e.largest)
	}
	return total
}

// keptTotals are the totals by what the class keeps alone.
func (sr *search) keptTotals() totals {
	t := totals{base: sr.base}
	for i := range sr.kept.scorers {
		sc := &sr.kept.scorers[i]
		switch {
		case sc.Normal() == plugin.AsIs:
		case sr.raws(i) == nil:
			t.flat += sc.Weight * sc.Normal().Apply(0, 0)
		default:
			raw := sr.raws(i)
			t.extra = append(t.extra, normalised{i, raw, sc.Normal(), sc.Weight, sr.largest(raw)})
		}
	}
	return t
}

func (sr *search) largest(raw []int64) int64 {
	var top int64
	for i := range sr.len() {
		if n := sr.at(i); sr.verdicts[n] == plugin.Fits && raw[n] > top {
			top = raw[n]
		}
	}
	return top
}

// choose picks the best of the rows that fit.
func (pl *Placer) choose(s cluster.Snapshot, sr *search, out *Outcome, draw func(n int) int) {
	top := topTwo{first: cluster.NoNode, second: cluster.NoNode, next: math.MinInt64}
	pl.meter.Plugin(plugin.AtScore, "")
	wide := pl.wideScores(s, sr)
	if !wide && sr.ranked() {
		sr.class.chooseRanked(sr, out, draw)
		return
	}
	sr.unfold()
	t := sr.keptTotals()
	sr.by = t
	sum := t.of
	if wide {
		pl.scoreParts(s, sr)
		if sr.err != nil && len(sr.fit) > 1 {
			out.Err, out.Feasible = sr.err, len(sr.fit)
			return
		}
		sum = func(n cluster.NodeIdx) int64 { return t.of(n) + sr.added(n) }
		for i, n := range sr.fit {
			out.Feasible++
			top.see(n, t.of(n)+sr.addedAt(i))
		}
	} else if sr.rows == nil && len(t.extra) == 0 {
		out.Feasible = top.scanFlat(sr.verdicts, &t)
	} else {
		for i := range sr.len() {
			if n := sr.at(i); sr.verdicts[n] == plugin.Fits {
				out.Feasible++
				top.see(n, t.of(n))
			}
		}
	}
	switch {
	case top.first < 0:
		return
	case out.Feasible > 1 && sr.kept.broken != nil:
		out.Err = sr.kept.broken
		return
	}
	out.Node, out.Total, out.Tied = top.first, top.best, top.tied
	if out.RunnerUp = top.second; out.RunnerUp != cluster.NoNode {
		out.RunnerUpTotal = top.next
	}
	if out.Tied > 1 {
		sr.breakTie(out, sum, checkedDraw(draw, out.Tied))
	}
}

// wideScores reports whether something adds to the totals that the class does not keep.
func (pl *Placer) wideScores(s cluster.Snapshot, sr *search) bool {
	if f := pl.profile.Foreign; f != nil && f.Takes(sr.pod) {
		return true
	}
	for _, sc := range pl.profile.Scorers {
		if _, wide := sc.Scorer.(plugin.WideScorer); wide {
			if skips, can := sc.Scorer.(plugin.Skipper); !can || !skips.Skips(s, sr.pod) {
				return true
			}
		}
	}
	return false
}

// scoreParts lists the rows that fit and lets wide and foreign scorers score them, if there are two or more. The first
// scorer in the order of the profile that cannot score fails the attempt, be it wide or not.
func (pl *Placer) scoreParts(s cluster.Snapshot, sr *search) {
	for i := range sr.len() {
		if n := sr.at(i); sr.verdicts[n] == plugin.Fits {
			sr.fit = append(sr.fit, n)
		}
	}
	if len(sr.fit) < 2 {
		return
	}
	for at, sc := range pl.profile.Scorers {
		w, wide := sc.Scorer.(plugin.WideScorer)
		if !wide {
			if sr.kept.broken != nil && sr.kept.brokeAt == at {
				sr.err = sr.kept.broken
				return
			}
			continue
		}
		pl.meter.Plugin(plugin.AtPreScore, sc.Name())
		score, err := w.PrepareWide(s, sr.pod, sr.fit)
		if err != nil {
			sr.err = preScoreError(sc, err)
			return
		}
		if score != nil {
			pl.meter.Plugin(plugin.AtScore, sc.Name())
			sr.scoreWide(s, sc, at, score, sr.fit)
		}
	}
	if f := pl.profile.Foreign; f != nil && f.Takes(sr.pod) {
		sr.names = sr.names[:0]
		for _, n := range sr.fit {
			sr.names = append(sr.names, s.NodeName(n))
		}
		for _, fs := range f.Score(sr.pod, sr.names) {
			sr.parts = append(sr.parts, part{name: fs.By, at: len(pl.profile.Scorers), raw: fs.Added, normalised: fs.Added, weight: 1})
		}
	}
}

// scoreWide lets a scorer score rows: those that fit, or the first ones of groups.
func (sr *search) scoreWide(s cluster.Snapshot, sc Scorer, at int, score plugin.WideScore, fit []cluster.NodeIdx) {
	raw := make([]int64, 2*len(fit))
	raw, normalised := raw[:len(fit):len(fit)], raw[len(fit):]
	score.Rows(s, fit, raw)
	copy(normalised, raw)
	score.Normalize(s, fit, normalised)
	for i, v := range normalised {
		if v < 0 || v > plugin.MaxScore {
			panic(fmt.Sprintf("place: %s scores node %q with %d, which is not in 0..%d", sc.Name(), s.NodeName(fit[i]), v, plugin.MaxScore))
		}
	}
	sr.parts = append(sr.parts, part{sc.Name(), at, raw, normalised, sc.Weight})
}

// addedAt is what the parts add to the total of row fit[i].
func (sr *search) addedAt(i int) int64 {
	var sum int64
	for k := range sr.parts {
		sum += sr.parts[k].weight * sr.parts[k].normalised[i]
	}
	return sum
}

func (sr *search) added(n cluster.NodeIdx) int64 {
	i, _ := slices.BinarySearch(sr.fit, n)
	return sr.addedAt(i)
}

// topTwo is the best total and the next best one, each with the lowest row that has it.
type topTwo struct {
	first, second cluster.NodeIdx
	best, next    int64
	tied          int // rows with the best total
}

func (top *topTwo) see(n cluster.NodeIdx, total int64) {
	switch {
	case top.first < 0 || total > top.best:
		if top.first >= 0 {
			top.second, top.next = top.first, top.best
		}
		top.first, top.best, top.tied = n, total, 1
	case total == top.best:
		top.tied++
	case total > top.next:
		top.second, top.next = n, total
	}
}

// scanFlat sees every row that fits when no score needs normalising, which is the common case, and returns their
// number. Rows that cannot be among the two best cost one comparison.
func (top *topTwo) scanFlat(verdicts []plugin.Verdict, t *totals) (feasible int) {
	base := t.base[:len(verdicts)]
	for n, v := range verdicts {
		if v != plugin.Fits {
			continue
		}
		feasible++
		if total := base[n] + t.flat; total > top.next {
			top.see(cluster.NodeIdx(n), total)
		}
	}
	return feasible
}

func checkedDraw(draw func(n int) int, tied int) int {
	k := draw(tied)
	if k < 0 || k >= tied {
		panic(fmt.Sprintf("place: draw gave %d of %d tied nodes", k, tied))
	}
	return k
}

// breakTie makes the k-th of the tied rows the winner, and the first of the others the runner-up.
func (sr *search) breakTie(out *Outcome, total func(cluster.NodeIdx) int64, k int) {
	out.RunnerUp, out.RunnerUpTotal = out.Node, out.Total
	want := k
	if k == 0 {
		want = 1 // the first row wins, the second is the runner-up
	}
	seen := 0
	for i := range sr.len() {
		n := sr.at(i)
		if sr.verdicts[n] != plugin.Fits || total(n) != out.Total {
			continue
		}
		if seen == want {
			if k == 0 {
				out.RunnerUp = n
			} else {
				out.Node = n
			}
			return
		}
		seen++
	}
}

// Draw gives the draws of one decision: the same for the same seed and decision number, whatever was drawn before. The
// generator is splitmix64 (Steele, Lea, Flood 2014).
func Draw(seed, decision uint64) func(n int) int {
	const step = 0x9e3779b97f4a7c15
	state := mix(seed + (decision+1)*step)
	return func(n int) int {
		hi, _ := bits.Mul64(state, uint64(n))
		state = mix(state + step)
		return int(hi)
	}
}

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}
