// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"cmp"
	"math"
	"slices"
)

// scale is a whole bin in the sizes of the bounds below. Sizes are rounded down, so a bound stays one.
const scale = 1 << 20

// Bins returns a number of equal bins with fewer than which no packing of the items is possible (bound B2): the largest
// of Martello and Toth's bound L2 for each resource and for means of resources, and the size of a set of items of which
// no two fit together. Items and capacity are amounts by resource; each item fits an empty bin.
func Bins(items [][]int64, capacity []int64) int {
	sizes := make([][]int64, len(capacity)) // by resource, then by item
	for r, c := range capacity {
		sizes[r] = make([]int64, len(items))
		for i, item := range items {
			if c > 0 {
				sizes[r][i] = int64(float64(item[r]) / float64(c) * scale)
			}
		}
	}
	best := clique(items, capacity)
	for a := range sizes {
		best = max(best, martelloToth(sizes[a]))
		for b := range a {
			best = max(best, martelloToth(mean(sizes[a], sizes[b])))
		}
	}
	return max(best, martelloToth(mean(sizes...)))
}

// mean returns the means of sizes, which are sizes of a relaxation: what fits a bin in each resource fits it in their
// mean.
func mean(sizes ...[]int64) []int64 {
	if len(sizes) == 0 {
		return nil
	}
	out := make([]int64, len(sizes[0]))
	for i := range out {
		for _, list := range sizes {
			out[i] += list[i]
		}
		out[i] /= int64(len(sizes))
	}
	return out
}

// martelloToth returns the bound L2 for sizes in bins of size scale: for each threshold, large items take a bin each,
// and those from the threshold to a half of a bin fill what the items above a half leave, and then more bins.
func martelloToth(sizes []int64) int {
	sorted := slices.Clone(sizes)
	slices.Sort(sorted)
	sums := make([]int64, len(sorted)+1)
	for i, s := range sorted {
		sums[i+1] = sums[i] + s
	}
	from := func(size int64) int { i, _ := slices.BinarySearch(sorted, size); return i } // first item of at least size
	half := from(scale/2 + 1)
	best := 0
	for i, threshold := range sorted[:half] {
		if i > 0 && sorted[i-1] == threshold {
			continue
		}
		best = max(best, byThreshold(sorted, sums, i, half, from(scale-threshold+1)))
	}
	return max(best, byThreshold(sorted, sums, half, half, len(sorted)))
}

// byThreshold is L2 for one threshold: items from small on count, those from half on are above a half of a bin, and
// those from large on share a bin with no item that counts.
func byThreshold(sorted, sums []int64, small, half, large int) int {
	large = max(large, half)
	bins := int64(len(sorted) - half)
	left := int64(large-half)*scale - (sums[large] - sums[half])
	if more := sums[half] - sums[small] - left; more > 0 {
		bins += (more + scale - 1) / scale
	}
	return int(bins)
}

// clique returns the size of a set of items of which no two fit into one bin, found from the largest item on.
func clique(items [][]int64, capacity []int64) int {
	largest := func(item []int64) (share float64) {
		for r, c := range capacity {
			if c > 0 {
				share = max(share, float64(item[r])/float64(c))
			}
		}
		return share
	}
	sorted := slices.Clone(items)
	slices.SortStableFunc(sorted, func(a, b []int64) int { return cmp.Compare(largest(b), largest(a)) })
	var set [][]int64
	for _, item := range sorted {
		if !slices.ContainsFunc(set, func(other []int64) bool { return fitTogether(item, other, capacity) }) {
			set = append(set, item)
		}
	}
	return len(set)
}

func fitTogether(a, b, capacity []int64) bool {
	for r, c := range capacity {
		if add(a[r], b[r]) > c {
			return false
		}
	}
	return true
}

// Ceiling returns how much of items can be packed at most into bins of a capacity, each item as a whole (bound B3).
// sizes are the number of items by size: size -> items. For each threshold up to a half of a bin, an item above the
// rest of a bin counts as a whole bin, one below the threshold as nothing, and the items that count least for their
// size are packed first, the last of them in part.
func Ceiling(sizes map[int64]int64, bins, capacity int64) int64 {
	list := make([]int64, 0, len(sizes))
	for size := range sizes { // order: sorted below
		list = append(list, size)
	}
	slices.Sort(list)
	best := math.Inf(1)
	for threshold := range capacity/2 + 1 {
		best = min(best, packed(list, sizes, float64(bins), capacity, threshold))
	}
	return int64(math.Ceil(best - 1e-6))
}

// packed is Ceiling for one threshold.
func packed(list []int64, count map[int64]int64, bins float64, capacity, threshold int64) float64 {
	weight := func(size int64) float64 {
		switch {
		case size < threshold:
			return 0
		case size > capacity-threshold:
			return 1
		}
		return float64(size) / float64(capacity)
	}
	sorted := slices.Clone(list)
	slices.SortStableFunc(sorted, func(a, b int64) int {
		return cmp.Compare(weight(a)/float64(a), weight(b)/float64(b))
	})
	total := 0.0
	for _, size := range sorted {
		items, w := float64(count[size]), weight(size)
		if size <= 0 {
			continue
		}
		if w > 0 && float64(items*w) > bins {
			items = bins / w
		}
		bins -= float64(items * w)
		total += float64(items * float64(size))
	}
	return total
}
