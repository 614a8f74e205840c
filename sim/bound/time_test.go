// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestNodeSeconds: two pods of 6 on nodes of 10 overlap for 5 s, when they need two nodes.
func TestNodeSeconds(t *testing.T) {
	nodes := NewNodes([][]int64{{10}, {10}})
	stays := []Stay{{0, 10, []int64{6}}, {5, 15, []int64{6}}, {20, 20, []int64{9}}, {15, 17, []int64{1}}}
	if got, fits := nodes.NodeSeconds(stays); got != 22 || !fits {
		t.Errorf("%v (%v), want 22", got, fits)
	}
	if _, fits := nodes.NodeSeconds(append(stays, Stay{6, 7, []int64{9}})); fits {
		t.Error("21 on nodes of 20 fits")
	}
}

// TestNodeSecondsByTheSecond compares with the nodes in each second.
func TestNodeSecondsByTheSecond(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes := NewNodes([][]int64{{6, 5}, {9, 5}, {20, 40}})
		var stays []Stay
		for range rapid.IntRange(0, 6).Draw(t, "stays") {
			from := rapid.IntRange(0, 8).Draw(t, "from")
			stays = append(stays, Stay{float64(from), float64(from + rapid.IntRange(0, 8).Draw(t, "length")),
				[]int64{rapid.Int64Range(0, 5).Draw(t, "cpu"), rapid.Int64Range(0, 5).Draw(t, "memory")}})
		}
		want := 0.0
		for second := range 16 {
			demand := []int64{0, 0}
			for _, s := range stays {
				if s.From <= float64(second) && float64(second) < s.To {
					move(demand, s.Need, 1)
				}
			}
			count, _ := nodes.Fewest(demand)
			want += float64(count)
		}
		if got, fits := nodes.NodeSeconds(stays); !fits || got != want {
			t.Fatalf("%v: %v (%v), want %v", stays, got, fits, want)
		}
	})
}

// TestMeanCompletionByHand: on one core, 1 s of work that comes 1 s after 9 s of work goes first.
func TestMeanCompletionByHand(t *testing.T) {
	jobs := []Job{{0, 9, []int64{1}}, {1, 1, []int64{1}}}
	for _, c := range []struct {
		cores int64
		want  float64
	}{{1, (10 + 1) / 2.0}, {2, 5}, {0, 5}} { // with two cores, the mean of the work is more than 2.75
		if got := MeanCompletion(jobs, []int64{c.cores}); got != c.want {
			t.Errorf("%d cores: %v, want %v", c.cores, got, c.want)
		}
	}
	if got := MeanCompletion(nil, []int64{1}); got != 0 {
		t.Errorf("no jobs: %v", got)
	}
}

// TestMeanCompletionIsNeverAboveASchedule compares with the best of the list schedules of a few gangs, in every order:
// each job starts as early as capacity and the jobs before it let it.
func TestMeanCompletionIsNeverAboveASchedule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const capacity = 4
		var jobs []Job
		for range rapid.IntRange(1, 5).Draw(t, "jobs") {
			jobs = append(jobs, Job{float64(rapid.IntRange(0, 5).Draw(t, "release")),
				float64(rapid.IntRange(1, 5).Draw(t, "work")), []int64{rapid.Int64Range(1, capacity).Draw(t, "need")}})
		}
		best := math.Inf(1)
		order := make([]int, 0, len(jobs))
		var permute func()
		permute = func() {
			if len(order) == len(jobs) {
				best = min(best, listSchedule(jobs, order, capacity)/float64(len(jobs)))
				return
			}
			for i := range jobs {
				if !slices.Contains(order, i) {
					order = append(order, i)
					permute()
					order = order[:len(order)-1]
				}
			}
		}
		permute()
		if got := MeanCompletion(jobs, []int64{capacity}); got > best+1e-9 {
			t.Fatalf("%v: bound %v, a schedule has %v", jobs, got, best)
		}
	})
}

// listSchedule returns the sum of completion times if jobs are fitted in, by the second, in an order.
func listSchedule(jobs []Job, order []int, capacity int64) (sum float64) {
	used := make([]int64, 100)
	for _, i := range order {
		j := jobs[i]
		start := int(j.Release)
		for k := start; k < start+int(j.Work); k++ {
			if used[k]+j.Need[0] > capacity {
				start = k + 1
			}
		}
		for k := start; k < start+int(j.Work); k++ {
			used[k] += j.Need[0]
		}
		sum += float64(start) + j.Work - j.Release
	}
	return sum
}
