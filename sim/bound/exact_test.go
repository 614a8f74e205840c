// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSolveKnownCases has optima by hand.
func TestSolveKnownCases(t *testing.T) {
	pods := func(needs ...int64) (list []SmallPod) {
		for _, n := range needs {
			list = append(list, SmallPod{Need: []int64{n}})
		}
		return list
	}
	with := func(list []SmallPod, change func(i int, p *SmallPod)) []SmallPod {
		for i := range list {
			change(i, &list[i])
		}
		return list
	}
	for _, c := range []struct {
		name string
		s    Small
		want string
	}{
		{"no pods", Small{Free: [][]int64{{4}}}, "[]"},
		{"two bins of 6 and 4", Small{Free: [][]int64{{10}, {10}}, Pods: pods(4, 4, 6, 6)}, "[4]"},
		{"small ones instead of a large one", Small{Free: [][]int64{{4}}, Pods: pods(4, 2, 2)}, "[2]"},
		{"priority before number", Small{Free: [][]int64{{4}},
			Pods: with(pods(4, 2, 2), func(i int, p *SmallPod) { p.Priority = []int32{5, 0, 0}[i] })}, "[1 0]"},
		{"a node that is not allowed", Small{Free: [][]int64{{4}, {1}},
			Pods: with(pods(1, 1), func(_ int, p *SmallPod) { p.Allowed = []bool{false, true} })}, "[1]"},
		{"a gang as a whole or not at all", Small{Free: [][]int64{{4}},
			Pods: with(pods(2, 2, 2), func(_ int, p *SmallPod) { p.Gang = 1 })}, "[0]"},
		{"a gang and a pod", Small{Free: [][]int64{{5}},
			Pods: with(pods(2, 1, 2, 1), func(i int, p *SmallPod) { p.Gang = []int{1, 0, 1, 0}[i] })}, "[3]"},
		{"a skew of one", Small{Free: [][]int64{{9}, {1}}, Domains: []int{0, 1},
			Pods: with(pods(1, 1, 1, 1), func(_ int, p *SmallPod) { p.Spread, p.MaxSkew = 1, 1 })}, "[3]"},
		{"a domain without capacity", Small{Free: [][]int64{{9}, {0}}, Domains: []int{0, 1},
			Pods: with(pods(1, 1, 1), func(_ int, p *SmallPod) { p.Spread, p.MaxSkew = 1, 2 })}, "[2]"},
	} {
		got := c.s.Solve(1000)
		if fmt.Sprint(got.Placed) != c.want || !got.Proved {
			t.Errorf("%s: %v (proved %v), want %s", c.name, got.Placed, got.Proved, c.want)
		}
		if fmt.Sprint(c.s.Count(got.Node)) != fmt.Sprint(got.Placed) {
			t.Errorf("%s: the placement %v is not the count %v", c.name, got.Node, got.Placed)
		}
	}
}

// TestSolveEndsWithoutProof: a search that may visit few states says that it proved nothing.
func TestSolveEndsWithoutProof(t *testing.T) {
	s := Small{Free: [][]int64{{7}, {7}}}
	for i := range 8 {
		s.Pods = append(s.Pods, SmallPod{Need: []int64{int64(1 + i%4)}})
	}
	if got := s.Solve(5); got.Proved || got.States != 5 {
		t.Errorf("%+v, want 5 states and no proof", got)
	}
	if got := s.Solve(100_000); !got.Proved {
		t.Errorf("%+v, want a proof", got)
	}
}

// allowed reports whether a placement keeps all rules.
func (s *Small) allowed(node []int) bool {
	free := make([][]int64, len(s.Free))
	for n := range s.Free {
		free[n] = slices.Clone(s.Free[n])
	}
	members, placed := map[int]int{}, map[int]int{} // gang -> pods, pods with a node
	counts, skews := map[int][]int{}, map[int]int{} // spread -> pods by domain, MaxSkew
	for i, n := range node {
		p := &s.Pods[i]
		members[p.Gang]++
		if p.Spread != 0 && counts[p.Spread] == nil {
			counts[p.Spread], skews[p.Spread] = make([]int, slices.Max(s.Domains)+1), p.MaxSkew
		}
		if n < 0 {
			continue
		}
		placed[p.Gang]++
		if !covers(free[n], p.Need) || p.Allowed != nil && !p.Allowed[n] {
			return false
		}
		move(free[n], p.Need, -1)
		if p.Spread != 0 {
			counts[p.Spread][s.Domains[n]]++
		}
	}
	for g := range members { // order: each gang by itself
		if g != 0 && placed[g] > 0 && placed[g] < members[g] {
			return false
		}
	}
	for g, list := range counts { // order: each by itself
		if slices.Max(list)-slices.Min(list) > skews[g] {
			return false
		}
	}
	return true
}

// enumerate returns what the best of all placements places, by priority.
func (s *Small) enumerate() (best []int) {
	node := make([]int, len(s.Pods))
	var try func(i int)
	try = func(i int) {
		if i == len(node) {
			if s.allowed(node) {
				if got := s.Count(node); best == nil || slices.Compare(got, best) > 0 {
					best = got
				}
			}
			return
		}
		for n := -1; n < len(s.Free); n++ {
			node[i] = n
			try(i + 1)
		}
	}
	try(0)
	return best
}

// drawSmall draws a problem with priorities, nodes that are not allowed, gangs and spread pods.
func drawSmall(t *rapid.T) *Small {
	s := &Small{}
	resources := rapid.IntRange(1, 2).Draw(t, "resources")
	amounts := func(from, to int64, what string) (list []int64) {
		for range resources {
			list = append(list, rapid.Int64Range(from, to).Draw(t, what))
		}
		return list
	}
	for i := range rapid.IntRange(1, 3).Draw(t, "nodes") {
		s.Free = append(s.Free, amounts(2, 8, "free"))
		s.Domains = append(s.Domains, i%2)
	}
	for k := range rapid.IntRange(1, 3).Draw(t, "kinds") {
		p := SmallPod{Need: amounts(1, 4, "need"), Priority: rapid.Int32Range(0, 2).Draw(t, "priority")}
		if rapid.IntRange(0, 3).Draw(t, "taint") == 0 {
			for range s.Free {
				p.Allowed = append(p.Allowed, rapid.Bool().Draw(t, "allowed"))
			}
		}
		switch rapid.IntRange(0, 3).Draw(t, "rule") {
		case 0:
			p.Gang = k + 1
		case 1:
			p.Spread, p.MaxSkew = k+1, rapid.IntRange(1, 2).Draw(t, "skew")
		}
		for range rapid.IntRange(1, 2).Draw(t, "pods") {
			s.Pods = append(s.Pods, p)
		}
		if p.Gang != 0 && rapid.Bool().Draw(t, "another member") {
			p.Need = amounts(1, 4, "need")
			s.Pods = append(s.Pods, p)
		}
	}
	return s
}

// TestSolveIsTheOptimum compares the solver with all placements of small problems.
func TestSolveIsTheOptimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := drawSmall(t)
		got := s.Solve(1_000_000)
		want := s.enumerate()
		if !got.Proved || !slices.Equal(got.Placed, want) || !s.allowed(got.Node) ||
			!slices.Equal(s.Count(got.Node), got.Placed) {
			t.Fatalf("%+v: %+v, want %v", s, got, want)
		}
	})
}
