// SPDX-License-Identifier: Apache-2.0

package report

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestQuantileIsAValueThatWasMeasured(t *testing.T) {
	hundred := make([]float64, 100)
	for i := range hundred {
		hundred[i] = float64(i + 1)
	}
	for q, want := range map[float64]float64{0: 1, 0.5: 50, 0.505: 51, 0.99: 99, 0.991: 100, 1: 100} {
		if got := NearestRank(hundred, q); got != want {
			t.Errorf("quantile %g of 1..100 is %g, want %g", q, got, want)
		}
	}
	if got := NearestRank([]float64{7}, 0.99); got != 7 {
		t.Errorf("p99 of one value is %g, want 7", got)
	}
	if got := NearestRank(nil, 0.5); !math.IsNaN(got) {
		t.Errorf("quantile of nothing is %g, want NaN", got)
	}
}

// By counting: at least the share q lies at or below the quantile, and less than q below it.
func TestQuantileCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.Float64Range(0, 10), 1, 60).Draw(t, "values")
		percent := rapid.IntRange(1, 100).Draw(t, "percent")
		slices.Sort(values)
		got := NearestRank(values, float64(percent)/100)
		below, upTo := 0, 0
		for _, v := range values {
			if v < got {
				below++
			}
			if v <= got {
				upTo++
			}
		}
		if 100*upTo < percent*len(values) || 100*below >= percent*len(values) {
			t.Fatalf("p%d of %v is %g: %d values are below it and %d up to it", percent, values, got, below, upTo)
		}
	})
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   Spread
	}{
		{[]float64{4}, Spread{4, 4, 4}},
		{[]float64{9, 1, 4}, Spread{4, 1, 9}},
		{[]float64{9, 1, 4, 6}, Spread{5, 1, 9}},
	} {
		before := slices.Clone(c.values)
		if got := SpreadOf(c.values); got != c.want {
			t.Errorf("spread of %v is %v, want %v", c.values, got, c.want)
		}
		if !slices.Equal(before, c.values) {
			t.Errorf("the values were moved: %v became %v", before, c.values)
		}
	}
	if got := SpreadOf(nil); !math.IsNaN(got.Median) {
		t.Errorf("spread of nothing is %v, want NaN", got)
	}
}

func TestRatiosPairTheRounds(t *testing.T) {
	// The third run of the second is missing, as after an interrupt.
	if got, want := Ratios([]float64{2, 9, 5}, []float64{4, 3}), []float64{0.5, 3}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
