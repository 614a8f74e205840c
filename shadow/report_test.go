// SPDX-License-Identifier: Apache-2.0

package shadow

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestQuantilesAreThoseOfASortedList: within 0.4 %, exact below 256 and at the end, in bounded space.
// It catches: buckets that overlap, a rank that is off by one, a middle outside its bucket.
func TestQuantilesAreThoseOfASortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SliceOfN(rapid.OneOf(rapid.Int64Range(0, 300), rapid.Int64Range(0, math.MaxInt64)), 1,
			200).Draw(t, "values")
		var d distribution
		for _, v := range values {
			d.add(v)
		}
		slices.Sort(values)
		q := d.quantiles(1)
		near := func(name string, got float64, percent int) {
			want := float64(values[(len(values)*percent+99)/100-1])
			if want < 256 && got != want || math.Abs(got-want) > want/256 {
				t.Errorf("%s is %g, want %g", name, got, want)
			}
		}
		near("p50", q.P50, 50)
		near("p90", q.P90, 90)
		near("p99", q.P99, 99)
		if largest := values[len(values)-1]; q.Count != len(values) || q.Max != float64(largest) {
			t.Errorf("%+v of %d values up to %d", q, len(values), largest)
		}
	})
	for _, v := range []int64{0, 255, 256, 511, 512, 1 << 40, math.MaxInt64} {
		if b := bucketOf(v); b < 0 || b > 7300 {
			t.Errorf("%d is in bucket %d", v, b)
		}
	}
}
