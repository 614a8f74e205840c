// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"math"
	"slices"
)

// quantile is the value below or at which a share q of the sorted values lies: the nearest rank, so that it is always a
// value that was measured. It is NaN without values.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	rank := int(math.Ceil(q * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}

// Spread is the middle and the ends of a figure over runs.
type Spread struct {
	Median float64 `json:"median"`
	Min    float64 `json:"min"`
	Max    float64 `json:"max"`
}

// spread takes the median as the mean of the two middle values when their number is even.
func spread(values []float64) Spread {
	if len(values) == 0 {
		return Spread{math.NaN(), math.NaN(), math.NaN()}
	}
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return Spread{Median: (sorted[(n-1)/2] + sorted[n/2]) / 2, Min: sorted[0], Max: sorted[n-1]}
}

// ratios divides run by run: what was measured next to each other is compared with each other.
func ratios(of, to []float64) []float64 {
	out := make([]float64, 0, len(of))
	for i := range min(len(of), len(to)) {
		out = append(out, of[i]/to[i])
	}
	return out
}
