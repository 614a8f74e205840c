// SPDX-License-Identifier: Apache-2.0

package classes

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// topTwo is the best total and the next best one, each with the first row that has it.
type topTwo struct {
	first, second cluster.NodeIdx
	best, next    int64
	tied          int // rows with the best total
}

// slowTop reads a ranking row by row: the reference implementation of top, kth and next.
func slowTop(totals []int64) (top topTwo, ranked int) {
	top = topTwo{first: cluster.NoNode, second: cluster.NoNode, best: unranked, next: unranked}
	for n, total := range totals {
		switch {
		case total == unranked:
			continue
		case total > top.best:
			top.second, top.next = top.first, top.best
			top.first, top.best, top.tied = cluster.NodeIdx(n), total, 1
		case total == top.best:
			top.tied++
		case total > top.next:
			top.second, top.next = cluster.NodeIdx(n), total
		}
		ranked++
	}
	return top, ranked
}

// hash is a mixing function, for totals that differ from row to row (splitmix64).
func hash(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Rankings gives rows totals at random and compares with a scan of all rows. Sizes go over the edges of blocks and
// superblocks. Faults: superblockKept, nextFirst.
func Rankings(t *rapid.T) {
	size := rapid.SampledFrom([]int{1, 2, fanout - 1, fanout, fanout + 1, 5 * fanout, fanout*fanout - 1, fanout*fanout + 3, 3 * fanout * fanout}).Draw(t, "rows")
	var r ranking
	first := rapid.Uint64().Draw(t, "totals")
	at := func(n cluster.NodeIdx) int64 {
		switch v := hash(first+uint64(n)) % 11; v {
		case 0:
			return unranked
		default:
			return int64(v) / 2 * 100
		}
	}
	if rapid.Bool().Draw(t, "at once") {
		r.rebuild(size, at)
	} else {
		r.grow(size)
		for n := range size {
			r.set(cluster.NodeIdx(n), at(cluster.NodeIdx(n)))
		}
	}
	for range rapid.IntRange(0, 30).Draw(t, "changes") {
		n := cluster.NodeIdx(rapid.IntRange(0, size-1).Draw(t, "row"))
		r.set(n, rapid.SampledFrom([]int64{unranked, -1, 0, 100, 500, 501, 600}).Draw(t, "total"))
		want, ranked := slowTop(r.totals)
		top := r.top()
		if r.ranked != ranked || int(top.rows) != want.tied || ranked > 0 && top.best != want.best {
			t.Fatalf("%d ranked, best %d in %d rows; row by row %d, %d in %d", r.ranked, top.best, top.rows, ranked, want.best, want.tied)
		}
		switch {
		case want.tied == 0:
		case want.tied == 1:
			winner := r.kth(top.best, 0)
			second, total := r.next(winner)
			if winner != want.first || second != want.second || second != cluster.NoNode && total != want.next {
				t.Fatalf("row %d won before %d with %d; row by row %d before %d with %d", winner, second, total, want.first, want.second, want.next)
			}
		default:
			k, seen := rapid.IntRange(0, want.tied-1).Draw(t, "k"), 0
			for n, total := range r.totals {
				if total == want.best {
					if seen == k && r.kth(top.best, k) != cluster.NodeIdx(n) {
						t.Fatalf("the best number %d is row %d; row by row %d", k, r.kth(top.best, k), n)
					}
					seen++
				}
			}
		}
	}
}

func TestRankingMatchesScan(t *testing.T) { rapid.Check(t, Rankings) }
