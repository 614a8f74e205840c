// SPDX-License-Identifier: Apache-2.0

package classes

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// CompactRankings is Rankings for codes. Faults: superblockKept, nextFirst.
func CompactRankings(t *rapid.T) {
	size := rapid.SampledFrom([]int{1, 2, fanout - 1, fanout, fanout + 1, 5 * fanout, fanout*fanout - 1, fanout*fanout + 3}).Draw(t, "rows")
	c := compact{shared: newSharedClass()}
	first := rapid.Uint64().Draw(t, "codes")
	if rapid.Bool().Draw(t, "at once") {
		for n := range size {
			c.codes = append(c.codes, rowCode(hash(first+uint64(n))%6)*100-100)
		}
		c.summarize()
	} else {
		c.grow(size)
		for n := range size {
			if is := rowCode(hash(first+uint64(n))%6)*100 - 100; is != c.codes[n] {
				c.set(cluster.NodeIdx(n), is)
			}
		}
	}
	for range rapid.IntRange(0, 30).Draw(t, "changes") {
		n := rapid.IntRange(0, size-1).Draw(t, "row")
		if is := rapid.SampledFrom([]rowCode{-2, -1, 0, 100, 400, 401, 500}).Draw(t, "code"); is != c.codes[n] {
			c.set(cluster.NodeIdx(n), is)
		}
		totals := make([]int64, size)
		for n := range totals {
			totals[n] = c.at(n)
		}
		want, ranked := slowTop(totals)
		top := c.top()
		if c.ranked != ranked || int(top.rows) != want.tied || ranked > 0 && top.best != want.best {
			t.Fatalf("%d ranked, best %d in %d rows; row by row %d, %d in %d", c.ranked, top.best, top.rows, ranked, want.best, want.tied)
		}
		switch {
		case want.tied == 0:
		case want.tied == 1:
			winner := c.kthOf(&c, top.best, 0)
			second, total := c.nextOf(&c, winner)
			if winner != want.first || second != want.second || second != cluster.NoNode && total != want.next {
				t.Fatalf("row %d won before %d with %d; row by row %d before %d with %d", winner, second, total, want.first, want.second, want.next)
			}
		default:
			if got := c.kthOf(&c, top.best, want.tied-1); totals[got] != top.best {
				t.Fatalf("the last of the best is row %d with %d, the best is %d", got, totals[got], top.best)
			}
		}
	}
}

func TestCompactRankingMatchesScan(t *testing.T) { rapid.Check(t, CompactRankings) }
