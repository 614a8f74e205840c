// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestLeastLossByHand: the lowest highest priority comes first, then the sum of priorities with the number of victims.
func TestLeastLossByHand(t *testing.T) {
	victims := []Victim{{[]int64{1}, 1, false}, {[]int64{1}, 1, false}, {[]int64{4}, 2, false}, {[]int64{9}, 0, true}}
	for _, c := range []struct {
		deficit int64
		want    Loss
		fits    bool
	}{
		{0, Loss{}, true}, {1, LossOf(victims[:1]), true}, {2, LossOf(victims[:2]), true},
		{3, LossOf(victims[2:3]), true}, {7, LossOf(victims[3:]), true}, {16, Loss{}, false},
	} {
		if got, fits := LeastLoss(victims, []int64{c.deficit}); got != c.want || fits != c.fits {
			t.Errorf("deficit %d: %+v (%v), want %+v (%v)", c.deficit, got, fits, c.want, c.fits)
		}
	}
}

// TestLeastLossOfAllSubsets compares with all subsets.
func TestLeastLossOfAllSubsets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var victims []Victim
		for range rapid.IntRange(0, 7).Draw(t, "victims") {
			victims = append(victims, Victim{[]int64{rapid.Int64Range(0, 5).Draw(t, "cpu"),
				rapid.Int64Range(0, 5).Draw(t, "memory")}, rapid.Int32Range(-3, 3).Draw(t, "priority"),
				rapid.Bool().Draw(t, "violates")})
		}
		deficit := []int64{rapid.Int64Range(-2, 12).Draw(t, "cpu"), rapid.Int64Range(-2, 12).Draw(t, "memory")}
		var want *Loss
		for set := range 1 << len(victims) {
			var chosen []Victim
			free := []int64{0, 0}
			for i := range victims {
				if set>>i&1 == 1 {
					chosen = append(chosen, victims[i])
					move(free, victims[i].Frees, 1)
				}
			}
			if l := LossOf(chosen); covers(free, deficit) && (want == nil || l.Compare(*want) < 0) {
				want = &l
			}
		}
		got, possible := LeastLoss(victims, deficit)
		if possible != (want != nil) || possible && got != *want {
			t.Fatalf("%v for %v: %+v (%v), want %+v", victims, deficit, got, possible, want)
		}
	})
}

// TestLeastDifferenceOfAllPlacements compares with all ways to add pods to domains.
func TestLeastDifferenceOfAllPlacements(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var counts, most []int
		for range rapid.IntRange(1, 3).Draw(t, "domains") {
			counts = append(counts, rapid.IntRange(0, 4).Draw(t, "count"))
			most = append(most, rapid.IntRange(0, 6).Draw(t, "most"))
		}
		pods := rapid.IntRange(0, 6).Draw(t, "pods")
		want := -1
		var try func(left int, now []int)
		try = func(left int, now []int) {
			if left == 0 {
				if d := slices.Max(now) - slices.Min(now); want < 0 || d < want {
					want = d
				}
				return
			}
			for i := range now {
				if now[i] < most[i] {
					now[i]++
					try(left-1, now)
					now[i]--
				}
			}
		}
		try(pods, slices.Clone(counts))
		got, fits := LeastDifference(counts, most, pods)
		if fits != (want >= 0) || fits && got != want {
			t.Fatalf("%d pods to %v of at most %v: %d (%v), want %d", pods, counts, most, got, fits, want)
		}
	})
}
