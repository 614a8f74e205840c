// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"testing"

	"pgregory.net/rapid"
)

// TestKnownBounds has bounds by hand, of bins of 10.
func TestKnownBounds(t *testing.T) {
	one := func(sizes ...int64) (items [][]int64) {
		for _, s := range sizes {
			items = append(items, []int64{s})
		}
		return items
	}
	for _, c := range []struct {
		name     string
		items    [][]int64
		capacity []int64
		want     int
	}{
		{"nothing", nil, []int64{10}, 0},
		{"by the sum", one(4, 4, 4), []int64{10}, 2},
		// 6 + 6 + 6 take a bin each, and 4 + 4 + 4 fill them; the last 4 needs another one
		{"halves", one(6, 6, 6, 4, 4, 4, 4), []int64{10}, 4},
		// 7s leave 3, which holds no 4: three bins and one more for 4 + 4
		{"large items leave too little", one(7, 7, 7, 4, 4), []int64{10}, 4},
		// the sums of each resource need two bins
		{"items that fit together", [][]int64{{9, 2}, {2, 9}, {1, 1}}, []int64{10, 10}, 2},
		{"a clique", [][]int64{{9, 2}, {2, 9}, {5, 5}}, []int64{10, 10}, 3},
	} {
		if got := Bins(c.items, c.capacity); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
}

// fewestBins tries every placement.
func fewestBins(items [][]int64, capacity []int64) int {
	best := len(items)
	var free [][]int64
	var try func(k int)
	try = func(k int) {
		if len(free) >= best {
			return
		}
		if k == len(items) {
			best = len(free)
			return
		}
		for _, f := range free {
			if !covers(f, items[k]) {
				continue
			}
			move(f, items[k], -1)
			try(k + 1)
			move(f, items[k], 1)
		}
		f := append([]int64(nil), capacity...)
		move(f, items[k], -1)
		free = append(free, f)
		try(k + 1)
		free = free[:len(free)-1]
	}
	try(0)
	return best
}

func covers(free, item []int64) bool {
	for r, q := range item {
		if free[r] < q {
			return false
		}
	}
	return true
}

func move(free, item []int64, sign int64) {
	for r, q := range item {
		free[r] += sign * q
	}
}

// TestBinsIsNeverAboveOptimum compares the bound with the optimum of random small instances, and that of one resource,
// packed into the optimum of bins, with the ceiling.
func TestBinsIsNeverAboveOptimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		resources := rapid.IntRange(1, 3).Draw(t, "resources")
		capacity := make([]int64, resources)
		for r := range capacity {
			capacity[r] = rapid.Int64Range(5, 12).Draw(t, "capacity")
		}
		items := make([][]int64, rapid.IntRange(0, 7).Draw(t, "items"))
		sizes, sum := map[int64]int64{}, int64(0) // size -> items
		for i := range items {
			for r := range capacity {
				items[i] = append(items[i], rapid.Int64Range(1, capacity[r]).Draw(t, "amount"))
			}
			sizes[items[i][0]]++
			sum += items[i][0]
		}
		best := 0
		if len(items) > 0 {
			best = fewestBins(items, capacity)
		}
		if got := Bins(items, capacity); got > best {
			t.Fatalf("items %v in bins of %v: bound %d, optimum %d", items, capacity, got, best)
		}
		if got := Ceiling(sizes, int64(best), capacity[0]); got < sum {
			t.Fatalf("items %v fit %d bins of %v, but the ceiling is %d of %d", items, best, capacity, got, sum)
		}
	})
}

// TestCeiling: items of more than half of a bin share no bin with another one of them.
func TestCeiling(t *testing.T) {
	for _, c := range []struct {
		sizes map[int64]int64
		bins  int64
		want  int64
	}{
		{map[int64]int64{6: 3}, 2, 12}, {map[int64]int64{6: 3, 4: 1}, 2, 16}, {map[int64]int64{5: 9}, 2, 20},
		{map[int64]int64{3: 1}, 2, 3}, {nil, 2, 0}, {map[int64]int64{0: 5, 10: 3}, 2, 20},
	} {
		if got := Ceiling(c.sizes, c.bins, 10); got != c.want {
			t.Errorf("%v in %d bins: at most %d, want %d", c.sizes, c.bins, got, c.want)
		}
	}
}
