// SPDX-License-Identifier: Apache-2.0

package size

import (
	"fmt"
	"slices"
	"strconv"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/kumiki-scheduler/kumiki/sim"
)

// limit is a number of nodes that no scheduler can do without, with its reason.
type limit struct {
	nodes  int
	reason string
}

// atLeast returns the strongest limit: pods that request need on new nodes of a capacity, besides existing nodes with
// free capacity.
func atLeast(capacity sim.Vector, free, need []sim.Vector, names []string) limit {
	best := limit{0, "no pods"}
	if len(need) > 0 {
		best.reason = "the present nodes may hold all pods"
		if len(free) == 0 {
			best = limit{1, "there is a pod"}
		}
	}
	for r, name := range names {
		c := capacity.At(r)
		if c <= 0 {
			continue
		}
		var sizes []int64
		for _, v := range need {
			if q := v.At(r); q > 0 {
				sizes = append(sizes, q)
			}
		}
		if n, sum := bySum(c, r, free, sizes); n > best.nodes {
			best = limit{n, fmt.Sprintf("the sum of the requests: %s %s, a node has %s", name, amount(name, sum),
				amount(name, c))}
		}
		if n, large := martelloToth(c, r, free, sizes); n > best.nodes {
			best = limit{n, fmt.Sprintf("large pods: %d pods request more than half of the %s of a node (bound L2)",
				large, name)}
		}
	}
	return best
}

// bySum returns how many nodes the sum of the requests needs, and the sum that is left after the free capacity.
func bySum(capacity int64, r int, free []sim.Vector, sizes []int64) (nodes int, sum int64) {
	for _, q := range sizes {
		sum += q
	}
	for _, f := range free {
		sum -= max(0, f.At(r))
	}
	if sum <= 0 {
		return 0, 0
	}
	return int((sum + capacity - 1) / capacity), sum
}

// martelloToth returns bound L2 and the number of pods that are larger than half of a node. Existing nodes count as so
// many of full capacity, which is a relaxation.
func martelloToth(capacity int64, r int, free []sim.Vector, sizes []int64) (nodes, large int) {
	sizes = slices.Clone(sizes)
	slices.Sort(sizes)
	sums := make([]int64, len(sizes)+1)
	for i, q := range sizes {
		sums[i+1] = sums[i] + q
	}
	upTo := func(limit int64) int { // how many sizes are at most limit
		i, _ := slices.BinarySearch(sizes, limit+1)
		return i
	}
	half := upTo(capacity / 2)
	tried := int64(-1)
	for i := -1; i < half; i++ {
		t := int64(0)
		if i >= 0 {
			t = sizes[i]
		}
		if t == tried {
			continue
		}
		tried = t
		whole := upTo(capacity - t)        // beyond it: pods beside which none of at least t fits
		first := upTo(t - 1)               // pods of less than t are left out
		beside := sums[whole] - sums[half] // of the pods of more than half beside which some fit
		gap := int64(whole-half)*capacity - beside
		rest := sums[half] - sums[first] - gap
		n := len(sizes) - half
		if rest > 0 {
			n += int((rest + capacity - 1) / capacity)
		}
		nodes = max(nodes, n)
	}
	for _, f := range free {
		switch have := f.At(r); {
		case have > capacity: // split one pod after the other, it fills at most so many, as each two hold more than one
			nodes -= 2 * int((have+capacity-1)/capacity)
		case have > 0:
			nodes--
		}
	}
	return max(nodes, 0), len(sizes) - half
}

// amount prints an amount of a resource.
func amount(name string, v int64) string {
	switch {
	case name == string(v1.ResourceCPU):
		return apiresource.NewMilliQuantity(v, apiresource.DecimalSI).String()
	case name == string(v1.ResourceMemory) || name == string(v1.ResourceEphemeralStorage):
		return apiresource.NewQuantity(v, apiresource.BinarySI).String()
	}
	return strconv.FormatInt(v, 10)
}
