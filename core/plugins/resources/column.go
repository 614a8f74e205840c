// SPDX-License-Identifier: Apache-2.0

package resources

import (
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// Column adds up the parts one resource after the other, then divides by the weights. Rows on which not all weights
// count, or with vast amounts, are done singly.
func (f *fitScore) Column(s cluster.Snapshot, lo, hi cluster.NodeIdx, out []int64) {
	if countsDevices(f.list) != nil {
		rowByRow(s, lo, hi, out, f.Plain)
		return
	}
	f.buf = columns(s, lo, hi, f.list, f.space, f.buf)
	out = out[lo:hi]
	var weights int64
	for i := range f.buf {
		weights += f.buf[i].weight
	}
	if weights == 0 || weights > mostWeights {
		for i := range out {
			out[i] = f.single(i)
		}
		return
	}
	if f.scorer.strategy == LeastAllocated && len(f.buf) == 2 {
		f.leastOfTwo(uint64(weights), out)
		return
	}
	clear(out)
	for i := range f.buf {
		switch c := &f.buf[i]; f.scorer.strategy {
		case LeastAllocated:
			c.addLeast(out)
		case MostAllocated:
			c.addMost(out)
		default:
			c.addRatio(&f.scorer.ratio, out)
		}
	}
	f.divide(uint64(weights), out)
}

// single is the score of the i-th row of the columns.
func (f *fitScore) single(i int) int64 {
	var m mean
	for k := range f.buf {
		c := &f.buf[k]
		if alloc := c.alloc[i]; alloc != 0 {
			m.add(f.scorer, f.scorer.part(resource.Add(c.used[i], c.pod), alloc), c.weight)
		}
	}
	return m.of(f.scorer)
}

// doneSingly is added to the sums of rows that have to be done singly; it is below all that can be added to it.
const doneSingly int64 = -1 << 40

// vast reports whether percentFast cannot divide by whole, which may be 0.
func vast(whole int64) bool { return uint64(whole-1) >= 1<<56 }

// addLeast adds the parts of one resource. Requests are not negative: a sum that is has passed int64.
func (c *scoredColumns) addLeast(out []int64) {
	alloc, used := c.alloc[:len(out)], c.used[:len(out)]
	for i := range out {
		whole, asked := alloc[i], used[i]+c.pod
		if vast(whole) {
			out[i] += doneSingly
		} else if asked >= 0 && asked <= whole {
			out[i] += percentFast(whole-asked, whole) * c.weight
		}
	}
}

// leastOfTwo is addLeast and divide of the usual two resources, in one go.
func (f *fitScore) leastOfTwo(weights uint64, out []int64) {
	n := len(out)
	a, b := &f.buf[0], &f.buf[1]
	allocA, usedA, allocB, usedB := a.alloc[:n], a.used[:n], b.alloc[:n], b.used[:n]
	podA, podB, weightA, weightB := a.pod, b.pod, a.weight, b.weight
	inverse := (1<<32 + weights - 1) / weights
	for i := range out {
		wholeA, wholeB := allocA[i], allocB[i]
		if vast(wholeA) || vast(wholeB) {
			out[i] = f.single(i)
			continue
		}
		var sum int64
		if asked := usedA[i] + podA; asked >= 0 && asked <= wholeA {
			sum = percentFast(wholeA-asked, wholeA) * weightA
		}
		if asked := usedB[i] + podB; asked >= 0 && asked <= wholeB {
			sum += percentFast(wholeB-asked, wholeB) * weightB
		}
		out[i] = int64(uint64(sum) * inverse >> 32)
	}
}

func (c *scoredColumns) addMost(out []int64) {
	alloc, used := c.alloc[:len(out)], c.used[:len(out)]
	for i := range out {
		whole, asked := alloc[i], used[i]+c.pod
		if vast(whole) {
			out[i] += doneSingly
			continue
		}
		if asked < 0 || asked > whole {
			asked = whole
		}
		out[i] += percentFast(asked, whole) * c.weight
	}
}

func (c *scoredColumns) addRatio(ratio *[101]int64, out []int64) {
	alloc, used := c.alloc[:len(out)], c.used[:len(out)]
	for i := range out {
		whole, asked := alloc[i], used[i]+c.pod
		if vast(whole) {
			out[i] += doneSingly
			continue
		}
		if asked < 0 || asked > whole {
			asked = whole
		}
		part := ratio[percentFast(asked, whole)]
		if part == 0 { // its weight does not count
			part = doneSingly
		}
		out[i] += part * c.weight
	}
}

// mostWeights is up to which sum of weights divide is exact: for a numerator n of at most 201 times the weights and a
// divisor d of at most twice them, n times (2^32/d, rounded up) >> 32 is n/d as long as n*d < 2^32.
const mostWeights = 3000

// divide makes sums of parts means, rounded down, or for a ratio to the nearest, halves up.
func (f *fitScore) divide(weights uint64, out []int64) {
	times, plus, by := uint64(1), uint64(0), weights
	if f.scorer.strategy == RequestedToCapacityRatio {
		times, plus, by = 2, weights, 2*weights
	}
	inverse := (1<<32 + by - 1) / by
	for i, sum := range out {
		if sum < 0 {
			out[i] = f.single(i)
			continue
		}
		out[i] = int64((uint64(sum)*times + plus) * inverse >> 32)
	}
}

// percentFast is percent for wholes that are not vast, by a floating-point division, which takes a fraction of the
// time. The quotient is off by less than a millionth, so its integer part is off by one at most; the remainder
// shows which way.
func percentFast(part, whole int64) int64 {
	q := int64(float64(part) * 100 / float64(whole))
	rest := part*100 - q*whole
	if rest < 0 {
		return q - 1
	}
	if rest >= whole {
		return q + 1
	}
	return q
}
