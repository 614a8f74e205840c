// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"slices"
	"sort"
)

// Nodes is a set of nodes, prepared to answer how few of them can hold a demand.
type Nodes struct {
	// sums holds, for each resource, the sums of the largest 1, 2, … capacities.
	sums [][]int64
}

// NewNodes prepares nodes, each with a capacity for each resource. A missing capacity is 0.
func NewNodes(capacities [][]int64) *Nodes {
	resources := 0
	for _, c := range capacities {
		resources = max(resources, len(c))
	}
	n := &Nodes{sums: make([][]int64, resources)}
	for r := range n.sums {
		list := make([]int64, len(capacities))
		for i, c := range capacities {
			if r < len(c) {
				list[i] = c[r]
			}
		}
		slices.SortFunc(list, func(a, b int64) int { return compare(b, a) })
		for i := 1; i < len(list); i++ {
			list[i] = add(list[i-1], list[i])
		}
		n.sums[r] = list
	}
	return n
}

func compare(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// add adds amounts that are not negative, and saturates.
func add(a, b int64) int64 {
	if s := a + b; s >= a {
		return s
	}
	return 1<<63 - 1
}

// Fewest returns a number of nodes with fewer than which no placement of the demand is possible: for each resource, as
// many of the largest nodes as it takes; the maximum of these (bound B1). It returns false if all nodes are too few.
func (n *Nodes) Fewest(demand []int64) (count int, fits bool) {
	for r, d := range demand {
		if d <= 0 {
			continue
		}
		if r >= len(n.sums) {
			return 0, false
		}
		sums := n.sums[r]
		k := sort.Search(len(sums), func(i int) bool { return sums[i] >= d })
		if k == len(sums) {
			return 0, false
		}
		count = max(count, k+1)
	}
	return count, true
}

// Job is work that cannot begin before its release and takes a time, with an amount of each resource.
type Job struct {
	Release, Work float64 // seconds
	Need          []int64
}

// Makespan collects jobs, and bounds the time from the first release to the last end.
type Makespan struct {
	first, last float64 // of releases, and of releases plus work
	area        []float64
	some        bool
}

// Add adds a job.
func (m *Makespan) Add(j Job) {
	if !m.some {
		m.first, m.some = j.Release, true
	}
	m.first = min(m.first, j.Release)
	m.last = max(m.last, j.Release+j.Work)
	for len(m.area) < len(j.Need) {
		m.area = append(m.area, 0)
	}
	for r, q := range j.Need {
		m.area[r] += float64(float64(q) * j.Work)
	}
}

// AtLeast returns the bound for nodes with these total capacities, in seconds: the latest end of a job that starts at
// its release, and the time that all work takes on all capacity (bound B7); false if there are no jobs.
func (m *Makespan) AtLeast(capacity []int64) (seconds float64, known bool) {
	if !m.some {
		return 0, false
	}
	seconds = m.last - m.first
	for r, a := range m.area {
		if r < len(capacity) && capacity[r] > 0 {
			seconds = max(seconds, a/float64(capacity[r]))
		}
	}
	return seconds, true
}
