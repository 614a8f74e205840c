// SPDX-License-Identifier: Apache-2.0

package compare

import (
	"math/rand/v2"
	"slices"
)

// resamples is how often a bootstrap draws: the ends of an interval are then good to about 1 % of rank.
const resamples = 2000

// tail is the share of the resamples outside of an interval at each end.
const tail = 0.025

// draws are the indexes of one resample. Lists of equal length get the same indexes, so that rounds of two sides stay
// paired, and so that the result does not depend on which side is A.
type draws struct {
	number uint64
	made   map[int][]int // length -> indexes
}

// of returns as many indexes below n as there are.
func (d *draws) of(n int) []int {
	list := d.made[n]
	if list == nil {
		r := rand.New(rand.NewPCG(d.number, uint64(n)))
		list = make([]int, n)
		for i := range list {
			list[i] = r.IntN(n)
		}
		d.made[n] = list
	}
	return list
}

// pick returns the drawn values of a list.
func (d *draws) pick(list []float64) []float64 {
	out := make([]float64, len(list))
	for i, at := range d.of(len(list)) {
		out[i] = list[at]
	}
	return out
}

// bootstrap returns the interval of a statistic over resamples.
func bootstrap(kind Kind, statistic func(*draws) float64) *Interval {
	list := make([]float64, resamples)
	for i := range list {
		list[i] = statistic(&draws{number: uint64(i), made: map[int][]int{}})
	}
	slices.Sort(list)
	k := int(tail * resamples)
	// Symmetric ranks: the interval of the negated statistic is the negated interval.
	return &Interval{Low: list[k], High: list[len(list)-1-k], Kind: kind}
}

func mean(list []float64) float64 {
	sum := 0.0
	for _, v := range list {
		sum += v
	}
	return sum / float64(len(list))
}

// ordered are values of pods with their order, for quantiles of resamples.
type ordered struct {
	values []float64
	order  []int // indexes of values, ascending
}

func orderedOf(values []float64) ordered {
	o := ordered{values, make([]int, len(values))}
	for i := range o.order {
		o.order[i] = i
	}
	slices.SortStableFunc(o.order, func(a, b int) int {
		switch {
		case values[a] < values[b]:
			return -1
		case values[a] > values[b]:
			return 1
		}
		return 0
	})
	return o
}

// quantile returns the value below or at which a share q of the values lies, each counted as often as weight says: the
// nearest rank, so that it is a value that was measured. total is the sum of the weights.
func (o ordered) quantile(q float64, weight []int, total int) float64 {
	rank := max(int(q*float64(total)+0.999999), 1)
	for _, i := range o.order {
		if rank -= weight[i]; rank <= 0 {
			return o.values[i]
		}
	}
	return o.values[o.order[len(o.order)-1]]
}
