// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"testing"

	"pgregory.net/rapid"
)

// TestFewestCountsLargestNodes: 3 nodes of 8 and 1 of 16 cores, memory 10 each.
func TestFewestCountsLargestNodes(t *testing.T) {
	n := NewNodes([][]int64{{8, 10}, {16, 10}, {8, 10}, {8, 10}})
	for _, c := range []struct {
		demand []int64
		want   int
		fits   bool
	}{
		{[]int64{0, 0}, 0, true}, {[]int64{16, 0}, 1, true}, {[]int64{17, 0}, 2, true}, {[]int64{40, 1}, 4, true},
		{[]int64{1, 21}, 3, true}, {[]int64{41, 0}, 0, false}, {[]int64{0, 0, 1}, 0, false},
	} {
		if got, fits := n.Fewest(c.demand); got != c.want || fits != c.fits {
			t.Errorf("demand %v: %d nodes, fits %v; want %d, %v", c.demand, got, fits, c.want, c.fits)
		}
	}
}

// TestFewestIsNeverAboveOptimum compares the bound with the optimum of random small instances, found by trying every
// placement.
func TestFewestIsNeverAboveOptimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		amount := rapid.Int64Range(1, 6)
		var nodes, pods [][]int64
		for range rapid.IntRange(1, 3).Draw(t, "nodes") {
			nodes = append(nodes, []int64{amount.Draw(t, "cpu") + 3, amount.Draw(t, "memory") + 3})
		}
		total := []int64{0, 0}
		for range rapid.IntRange(1, 5).Draw(t, "pods") {
			p := []int64{amount.Draw(t, "cpu"), amount.Draw(t, "memory")}
			pods = append(pods, p)
			total[0], total[1] = total[0]+p[0], total[1]+p[1]
		}
		free := make([][]int64, len(nodes))
		for i, c := range nodes {
			free[i] = []int64{c[0], c[1]}
		}
		best := len(nodes) + 1
		var try func(k int, used uint)
		try = func(k int, used uint) {
			if k == len(pods) {
				n := 0
				for u := used; u > 0; u &= u - 1 {
					n++
				}
				best = min(best, n)
				return
			}
			for i := range free {
				if free[i][0] < pods[k][0] || free[i][1] < pods[k][1] {
					continue
				}
				free[i][0], free[i][1] = free[i][0]-pods[k][0], free[i][1]-pods[k][1]
				try(k+1, used|1<<i)
				free[i][0], free[i][1] = free[i][0]+pods[k][0], free[i][1]+pods[k][1]
			}
		}
		try(0, 0)
		count, fits := NewNodes(nodes).Fewest(total)
		if best <= len(nodes) && (!fits || count > best) {
			t.Fatalf("nodes %v, pods %v: bound %d (fits %v), optimum %d", nodes, pods, count, fits, best)
		}
	})
}

// TestMakespanBound: two jobs of one core for 10 s on one core take 20 s, on two cores 10 s; a late one ends last.
func TestMakespanBound(t *testing.T) {
	var m Makespan
	if _, known := m.AtLeast([]int64{1}); known {
		t.Error("a bound for no jobs")
	}
	m.Add(Job{0, 10, []int64{1}})
	m.Add(Job{0, 10, []int64{1}})
	for cores, want := range map[int64]float64{1: 20, 2: 10} { // order: each by itself
		if got, _ := m.AtLeast([]int64{cores}); got != want {
			t.Errorf("%d cores: %v, want %v", cores, got, want)
		}
	}
	m.Add(Job{30, 5, []int64{1}})
	if got, _ := m.AtLeast([]int64{2}); got != 35 {
		t.Errorf("with a late job: %v, want 35", got)
	}
}
