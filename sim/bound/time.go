// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"cmp"
	"container/heap"
	"slices"
)

// Stay is a pod that needs amounts of each resource from one time to another, in seconds.
type Stay struct {
	From, To float64
	Need     []int64
}

// NodeSeconds returns a time below which the sum of the times that nodes have a pod cannot be (bound B5): at each
// moment, the fewest nodes that hold the pods that are there. It returns false if at some moment all nodes are too
// few.
func (n *Nodes) NodeSeconds(stays []Stay) (seconds float64, fits bool) {
	type change struct {
		at   float64
		stay int
		sign int64
	}
	var changes []change
	for i, s := range stays {
		if s.To > s.From {
			changes = append(changes, change{s.From, i, 1}, change{s.To, i, -1})
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.sign, b.sign)) // ends first
	})
	var demand []int64
	for k, c := range changes {
		for len(demand) < len(stays[c.stay].Need) {
			demand = append(demand, 0)
		}
		for r, q := range stays[c.stay].Need {
			demand[r] += c.sign * q
		}
		if k+1 == len(changes) || changes[k+1].at == c.at {
			continue
		}
		count, fits := n.Fewest(demand)
		if !fits {
			return 0, false
		}
		seconds += float64(float64(count) * (changes[k+1].at - c.at))
	}
	return seconds, true
}

// MeanCompletion returns a time in seconds below which the mean of the times from the release of jobs to their ends
// cannot be, on nodes with these total capacities (bound B7): the mean of the work, and for each resource the mean
// under the shortest remaining work first, if all capacity were one machine and each job could use all of it and
// pause.
func MeanCompletion(jobs []Job, capacity []int64) float64 {
	if len(jobs) == 0 {
		return 0
	}
	sum := 0.0
	for _, j := range jobs {
		sum += j.Work
	}
	for r, c := range capacity {
		if c > 0 {
			sum = max(sum, shortestFirst(jobs, r, float64(c)))
		}
	}
	return sum / float64(len(jobs))
}

// shortestFirst returns the sum of the completion times on one machine that does an amount of a resource in a second.
func shortestFirst(jobs []Job, r int, speed float64) (sum float64) {
	arrivals := slices.Clone(jobs)
	slices.SortStableFunc(arrivals, func(a, b Job) int { return cmp.Compare(a.Release, b.Release) })
	var waiting remaining
	now := 0.0
	for len(arrivals) > 0 || len(waiting) > 0 {
		if len(waiting) == 0 {
			now = max(now, arrivals[0].Release)
		}
		for len(arrivals) > 0 && arrivals[0].Release <= now {
			j := arrivals[0]
			arrivals = arrivals[1:]
			need := int64(0)
			if r < len(j.Need) {
				need = j.Need[r]
			}
			heap.Push(&waiting, rest{float64(float64(need)*j.Work) / speed, j.Release})
		}
		first := &waiting[0]
		if len(arrivals) > 0 && arrivals[0].Release < now+first.work {
			first.work -= arrivals[0].Release - now // it stays the smallest
			now = arrivals[0].Release
			continue
		}
		now += first.work
		sum += now - first.release
		heap.Pop(&waiting)
	}
	return sum
}

// rest is what is left of a job, in seconds of the machine.
type rest struct{ work, release float64 }

// remaining is a heap of jobs, with the least work first.
type remaining []rest

func (h remaining) Len() int           { return len(h) }
func (h remaining) Less(i, j int) bool { return h[i].work < h[j].work }
func (h remaining) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *remaining) Push(x any)        { *h = append(*h, x.(rest)) }
func (h *remaining) Pop() any {
	old := *h
	last := old[len(old)-1]
	*h = old[:len(old)-1]
	return last
}
