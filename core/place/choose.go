// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place/classes"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/record"
)

// choose picks the best of the rows that fit.
func (pl *Placer) choose(s cluster.Snapshot, sr *search, out *Outcome, draw func(n int) int) {
	top := topTwo{first: cluster.NoNode, second: cluster.NoNode, next: math.MinInt64}
	pl.meter.Plugin(plugin.AtScore, "")
	uncached := pl.uncachedScores(s, sr)
	if !uncached && sr.ranked() {
		sr.chooseRanked(out, draw)
		return
	}
	sr.readRows()
	t := sr.class.TotalsAmong(sr.verdicts, sr.rows)
	sr.by = t
	sum := t.Of
	base, constant, flat := t.Flat()
	if uncached {
		pl.scoreParts(s, sr)
		if sr.err != nil && len(sr.fit) > 1 {
			out.Err, out.Feasible = sr.err, len(sr.fit)
			return
		}
		sum = func(n cluster.NodeIdx) int64 { return t.Of(n) + sr.added(n) }
		for i, n := range sr.fit {
			out.Feasible++
			top.see(n, t.Of(n)+sr.addedAt(i))
		}
	} else if sr.rows == nil && flat {
		out.Feasible = top.scanFlat(sr.verdicts, base, constant)
	} else {
		for i := range sr.len() {
			if n := sr.at(i); sr.verdicts[n] == plugin.Fits {
				out.Feasible++
				top.see(n, t.Of(n))
			}
		}
	}
	if top.first < 0 {
		return
	}
	if _, err := sr.class.Broken(); out.Feasible > 1 && err != nil {
		out.Err = err
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

// chooseRanked is choose for a decision that depends on the class alone: it reads no row.
func (sr *search) chooseRanked(out *Outcome, draw func(n int) int) {
	sr.by, out.Path = sr.class.Totals(), Ranked
	if out.Feasible = sr.class.Feasible(); out.Feasible == 0 {
		return
	}
	if _, err := sr.class.Broken(); out.Feasible > 1 && err != nil {
		out.Err = err
		return
	}
	out.take(sr.class, draw)
}

// ranking is rows in the order of their totals, at least one.
type ranking interface {
	// Top returns the best total and the number of rows that have it.
	Top() (best int64, rows int)
	// Kth returns the k-th row, from 0, in index order of those that have the best total.
	Kth(best int64, k int) cluster.NodeIdx
	// Next returns the first of the rows with the highest total besides the only row that has the best.
	Next(winner cluster.NodeIdx) (cluster.NodeIdx, int64)
}

// take chooses the best row of a ranking.
func (out *Outcome) take(r ranking, draw func(n int) int) {
	out.Total, out.Tied = r.Top()
	if out.Tied == 1 {
		out.Node = r.Kth(out.Total, 0)
		out.RunnerUp, out.RunnerUpTotal = r.Next(out.Node)
		return
	}
	k, other := checkedDraw(draw, out.Tied), 0
	if k == 0 {
		other = 1
	}
	out.Node, out.RunnerUp, out.RunnerUpTotal = r.Kth(out.Total, k), r.Kth(out.Total, other), out.Total
}

// uncachedScores reports whether something adds to the totals that the class does not keep.
func (pl *Placer) uncachedScores(s cluster.Snapshot, sr *search) bool {
	if f := pl.profile.Foreign; f != nil && f.Takes(sr.pod) {
		return true
	}
	for _, sc := range pl.profile.Scorers {
		w, uncached := sc.Scorer.(plugin.UncachedScorer)
		if !uncached || w.Skips(s, sr.pod) {
			continue
		}
		if late, is := w.(plugin.Skipper); !is || !pl.skipsLate(s, sr, late) {
			return true
		}
	}
	return false
}

// skipsLate reports whether a plugin that has to see the rows that fit adds nothing to the totals: it skips the pod, or
// there is at most one row to score.
func (pl *Placer) skipsLate(s cluster.Snapshot, sr *search, late plugin.Skipper) bool {
	var fit *plugin.FitRows
	switch ranked := sr.ranked(); {
	case ranked && sr.class.Feasible() == s.Nodes() && s.Nodes() > 1: // all nodes
	case ranked && sr.class.Feasible() < 2:
		return true
	case ranked:
		fit = pl.fitOf.list(sr.class)
	default:
		if pl.listFit(sr); len(sr.fit) < 2 {
			return true
		}
		fit = &plugin.FitRows{Rows: sr.fit}
	}
	pl.meter.Plugin(plugin.AtPreScore, late.Name())
	return late.SkipsAmong(s, sr.pod, fit)
}

// classFit is the rows that fit a class. It is kept from one decision to the next, since most decisions change the
// amounts of a row and not whether it fits.
type classFit struct {
	class *classes.Class
	epoch uint64 // of the class
	rows  *plugin.FitRows
}

// list returns the rows that fit a class.
func (f *classFit) list(c *classes.Class) *plugin.FitRows {
	if f.class != c || f.epoch != c.FitEpoch() {
		*f = classFit{c, c.FitEpoch(), &plugin.FitRows{Rows: c.ListFit()}}
	}
	return f.rows
}

// listFit lists the rows that fit.
func (pl *Placer) listFit(sr *search) {
	sr.readRows()
	sr.fit = sr.fit[:0]
	for i := range sr.len() {
		if n := sr.at(i); sr.verdicts[n] == plugin.Fits {
			sr.fit = append(sr.fit, n)
		}
	}
}

// scoreParts lists the rows that fit and lets uncached and foreign scorers score them, if there are two or more. The
// first scorer in the order of the profile that cannot score fails the attempt, be it uncached or not.
func (pl *Placer) scoreParts(s cluster.Snapshot, sr *search) {
	pl.listFit(sr)
	if len(sr.fit) < 2 {
		return
	}
	pl.meter.Did(record.RowsEvaluated, len(sr.fit))
	for at, sc := range pl.profile.Scorers {
		w, uncached := sc.Scorer.(plugin.UncachedScorer)
		if !uncached {
			if scorer, err := sr.class.Broken(); err != nil && scorer == at {
				sr.err = err
				return
			}
			continue
		}
		pl.meter.Plugin(plugin.AtPreScore, sc.Name())
		score, err := w.PrepareUncached(s, sr.pod, sr.fit)
		if err != nil {
			sr.err = sc.PreScoreError(err)
			return
		}
		if score != nil {
			sr.prepared = append(sr.prepared, preparedScore{sc, at, score})
		}
	}
	for _, p := range sr.prepared { // all scorers are prepared before the first one scores, as upstream does
		pl.meter.Plugin(plugin.AtScore, p.Name())
		if sr.scoreUncached(s, p.Scorer, p.at, p.score, sr.fit); sr.err != nil {
			return
		}
	}
	if f := pl.profile.Foreign; f != nil && f.Takes(sr.pod) {
		sr.names = sr.names[:0]
		for _, n := range sr.fit {
			sr.names = append(sr.names, s.NodeName(n))
		}
		for _, fs := range f.Score(sr.pod, sr.names) {
			sr.parts = append(sr.parts, part{
				name: fs.By, at: len(pl.profile.Scorers), raw: fs.Added, normalised: fs.Added, weight: 1,
			})
		}
	}
}

// scoreUncached lets a scorer score rows: those that fit, or the first ones of groups.
func (sr *search) scoreUncached(s cluster.Snapshot, sc Scorer, at int, score plugin.UncachedScore,
	fit []cluster.NodeIdx) {
	raw := make([]int64, 2*len(fit))
	raw, normalised := raw[:len(fit):len(fit)], raw[len(fit):]
	score.Rows(s, fit, raw)
	copy(normalised, raw)
	score.Normalize(s, fit, normalised)
	if failing, can := score.(plugin.FailingScore); can && failing.Failed() != nil {
		sr.err = failing.Failed()
		return
	}
	for i, v := range normalised {
		if v < 0 || v > plugin.MaxScore {
			panic(fmt.Sprintf("place: %s scores node %q with %d, which is not in 0..%d",
				sc.Name(), s.NodeName(fit[i]), v, plugin.MaxScore))
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
func (top *topTwo) scanFlat(verdicts []plugin.Verdict, base []int64, constant int64) (feasible int) {
	base = base[:len(verdicts)]
	for n, v := range verdicts {
		if v != plugin.Fits {
			continue
		}
		feasible++
		if total := base[n] + constant; total > top.next {
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
