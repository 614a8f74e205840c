// SPDX-License-Identifier: Apache-2.0

package timing

import (
	"math/bits"

	"github.com/kumiki-scheduler/kumiki/record"
)

// Buckets is the number of bounds of a histogram. The bounds are powers of 4 from 1.024 µs to about 1,100 s.
const Buckets = 16

// firstBound is the binary logarithm of the first bound in nanoseconds.
const firstBound = 10

// bounds are the bounds in nanoseconds, inclusive.
var bounds = func() (list [Buckets]record.Time) {
	for i := range list {
		list[i] = 1 << (firstBound + 2*i)
	}
	return list
}()

// histogram counts durations.
type histogram struct {
	counts [Buckets + 1]uint64 // the last one: above all bounds
	sum    record.Time
	most   record.Time
}

// observe counts a duration; a negative one counts as 0.
func (h *histogram) observe(d record.Time) {
	d = max(d, 0)
	i := 0
	if d > 1 {
		// The smallest i with d <= 4^i << firstBound.
		i = min(max(bits.Len64(uint64(d-1))-firstBound+1, 0)/2, Buckets)
	}
	h.counts[i]++
	h.sum += d
	h.most = max(h.most, d)
}

// report returns the histogram as a record.
func (h *histogram) report() record.Histogram {
	out := record.Histogram{Bounds: bounds[:], Counts: make([]uint64, Buckets+1), Sum: h.sum, Max: h.most}
	for i, n := range h.counts {
		out.Counts[i] = n
		out.Count += n
	}
	return out
}
