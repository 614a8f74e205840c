// SPDX-License-Identifier: Apache-2.0

package place

import (
	"fmt"
	"math"
	"math/bits"

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

func (l *lookup) totals() totals {
	t := totals{base: l.base}
	for i := range l.scorers {
		sc := &l.scorers[i]
		switch {
		case sc.Normal() == plugin.AsIs:
		case sc.nonZero == 0:
			t.flat += sc.Weight * sc.Normal().Apply(0, 0)
		default:
			t.extra = append(t.extra, normalised{sc.raw, sc.Normal(), sc.Weight, l.largest(sc.raw)})
		}
	}
	return t
}

func (l *lookup) largest(raw []int64) int64 {
	var top int64
	for i := range l.len() {
		if n := l.at(i); (l.verdicts[n] == plugin.Fits || mutant == normalOverAll) && raw[n] > top {
			top = raw[n]
		}
	}
	return top
}

// len and at run over the rows to look at, in index order.
func (l *lookup) len() int {
	if l.rows != nil {
		return len(l.rows)
	}
	return len(l.verdicts)
}

func (l *lookup) at(i int) cluster.NodeIdx {
	if l.rows != nil {
		return l.rows[i]
	}
	return cluster.NodeIdx(i)
}

// choose picks the best of the rows that fit.
func (l *lookup) choose(s cluster.Snapshot, draw func(n int) int) Outcome {
	out := Outcome{Nodes: s.Nodes(), Node: cluster.NoNode, RunnerUp: cluster.NoNode, look: l}
	t := l.totals()
	top := topTwo{first: cluster.NoNode, second: cluster.NoNode, next: math.MinInt64}
	if l.rows == nil && len(t.extra) == 0 {
		out.Feasible = top.scanFlat(l.verdicts, &t)
	} else {
		for i := range l.len() {
			if n := l.at(i); l.verdicts[n] == plugin.Fits {
				out.Feasible++
				top.see(n, t.of(n))
			}
		}
	}
	switch {
	case top.first < 0:
		return out
	case out.Feasible > 1 && l.broken != nil:
		out.Err = l.broken
		return out
	}
	out.Node, out.Total, out.Tied = top.first, top.best, top.tied
	if out.RunnerUp = top.second; out.RunnerUp != cluster.NoNode {
		out.RunnerUpTotal = top.next
	}
	if out.Tied > 1 && mutant != tieToFirst {
		l.breakTie(&out, &t, draw(out.Tied))
	}
	return out
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

// scanFlat sees every row that fits when no score needs normalising, which is the common case, and returns their number.
// Rows that cannot be among the two best cost one comparison.
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

// breakTie makes the k-th of the tied rows the winner, and the first of the others the runner-up.
func (l *lookup) breakTie(out *Outcome, t *totals, k int) {
	if k < 0 || k >= out.Tied {
		panic(fmt.Sprintf("place: draw gave %d of %d tied nodes", k, out.Tied))
	}
	out.RunnerUp, out.RunnerUpTotal = out.Node, out.Total
	want := k
	if k == 0 {
		want = 1 // the first row wins, the second is the runner-up
	}
	seen := 0
	for i := range l.len() {
		n := l.at(i)
		if l.verdicts[n] != plugin.Fits || len(t.extra) == 0 && t.base[n]+t.flat != out.Total || t.of(n) != out.Total {
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

// Draw is the draw among ties of one decision: the same for the same seed and decision number, whatever was drawn
// before. The mixing function is splitmix64 (Steele, Lea, Flood 2014).
func Draw(seed, decision uint64) func(n int) int {
	return func(n int) int {
		z := seed + (decision+1)*0x9e3779b97f4a7c15
		z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
		z = (z ^ z>>27) * 0x94d049bb133111eb
		z ^= z >> 31
		hi, _ := bits.Mul64(z, uint64(n))
		return int(hi)
	}
}
