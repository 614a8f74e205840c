// SPDX-License-Identifier: Apache-2.0

package bound

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestProgramsByHand has programs whose largest gains are known, one of which 0 does not satisfy.
func TestProgramsByHand(t *testing.T) {
	for _, c := range []struct {
		name   string
		p      program
		want   float64
		solved bool
	}{
		{"two limits", program{[]float64{3, 2}, [][]float64{{1, 1}, {1, 3}}, []float64{4, 6}}, 12, true},
		{"a corner", program{[]float64{1, 1}, [][]float64{{2, 1}, {1, 2}}, []float64{3, 3}}, 2, true},
		{"at least 2, at most 3", program{[]float64{-1}, [][]float64{{-1}, {1}}, []float64{-2, 3}}, -2, true},
		{"at least 2, at most 1", program{[]float64{1}, [][]float64{{-1}, {1}}, []float64{-2, 1}}, 0, false},
		{"no limit", program{[]float64{1}, [][]float64{{-1}}, []float64{0}}, 0, false},
		{"no rows, no gain", program{[]float64{-1}, nil, nil}, 0, true},
	} {
		if got, solved := c.p.maximum(); solved != c.solved || math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%s: %v (solved %v), want %v (%v)", c.name, got, solved, c.want, c.solved)
		}
	}
}

// TestMostValueByHand: three pods and a third fit a node by amounts; a pod that is larger than each node counts
// nothing, and neither does one that is allowed on no node.
func TestMostValueByHand(t *testing.T) {
	nodes := []NodeClass{{[]int64{10}, 1}}
	for _, c := range []struct {
		name string
		pods []PodClass
		want float64
	}{
		{"divided", []PodClass{{Need: []int64{3}, Count: 9, Value: 1}}, 10.0 / 3},
		{"all", []PodClass{{Need: []int64{3}, Count: 2, Value: 5}}, 10},
		{"too large", []PodClass{{Need: []int64{11}, Count: 1, Value: 1}}, 0},
		{"not allowed", []PodClass{{Need: []int64{1}, Count: 1, Value: 1, Allowed: []bool{false}}}, 0},
		{"the most valuable", []PodClass{{Need: []int64{5}, Count: 2, Value: 3},
			{Need: []int64{2}, Count: 5, Value: 1}}, 6},
	} {
		if got, solved := MostValue(c.pods, nodes); !solved || math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%s: %v (solved %v), want %v", c.name, got, solved, c.want)
		}
	}
}

// TestMostValueIsNotBelowOptimum compares with the exact solver on clusters with taints and two resources.
func TestMostValueIsNotBelowOptimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var s Small
		var nodes []NodeClass
		for range rapid.IntRange(1, 4).Draw(t, "nodes") {
			free := []int64{rapid.Int64Range(0, 9).Draw(t, "cpu"), rapid.Int64Range(0, 9).Draw(t, "memory")}
			s.Free = append(s.Free, free)
			nodes = append(nodes, NodeClass{free, 1})
		}
		var pods []PodClass
		for range rapid.IntRange(1, 4).Draw(t, "classes") {
			p := SmallPod{Need: []int64{rapid.Int64Range(0, 5).Draw(t, "cpu"),
				rapid.Int64Range(0, 5).Draw(t, "memory")}}
			for range s.Free {
				p.Allowed = append(p.Allowed, rapid.IntRange(0, 3).Draw(t, "allowed") > 0)
			}
			count := rapid.IntRange(1, 3).Draw(t, "count")
			s.Pods = append(s.Pods, slices.Repeat([]SmallPod{p}, count)...)
			pods = append(pods, PodClass{p.Need, count, 1, p.Allowed})
		}
		best := s.Solve(50_000)
		most, solved := MostValue(pods, nodes)
		if !solved || most < float64(best.Placed[0]) || most > float64(len(s.Pods))+1e-6 {
			t.Fatalf("bound %v (solved %v), and %v pods of %d can be placed", most, solved, best.Placed, len(s.Pods))
		}
	})
}

// TestFairSharesByHand: the example of Dominant Resource Fairness (Ghodsi et al., 2011): 9 CPUs and 18 GB, tasks of 1
// CPU and 4 GB and of 3 CPUs and 1 GB; both tenants have two thirds. One with few tasks leaves the rest to the other.
func TestFairSharesByHand(t *testing.T) {
	nodes := []NodeClass{{[]int64{9, 18}, 1}}
	memory, cpu := Tenant{Task: []int64{1, 4}, Tasks: 100}, Tenant{Task: []int64{3, 1}, Tasks: 100}
	few, twice := cpu, cpu
	few.Tasks, twice.Weight = 1, 2
	for _, c := range []struct {
		name    string
		tenants []Tenant
		want    []float64
	}{
		{"two thirds each", []Tenant{memory, cpu}, []float64{2.0 / 3, 2.0 / 3}},
		{"one task", []Tenant{memory, few}, []float64{17.0 / 18, 1.0 / 3}},
		{"twice the weight", []Tenant{memory, twice}, []float64{0.4, 0.4}},
	} {
		got, solved := FairShares(c.tenants, nodes)
		for i := range c.want {
			if !solved || math.Abs(got[i]-c.want[i]) > 1e-6 {
				t.Errorf("%s: %v (solved %v), want %v", c.name, got, solved, c.want)
				break
			}
		}
	}
}

// TestFairSharesAreNotBelowWholeTasks compares with all divisions of whole tasks: none has a sorted list of shares that
// is larger.
func TestFairSharesAreNotBelowWholeTasks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var nodes []NodeClass
		for range rapid.IntRange(1, 2).Draw(t, "nodes") {
			nodes = append(nodes, NodeClass{[]int64{rapid.Int64Range(1, 6).Draw(t, "cpu"),
				rapid.Int64Range(1, 6).Draw(t, "memory")}, 1})
		}
		var tenants []Tenant
		for range rapid.IntRange(1, 3).Draw(t, "tenants") {
			tenants = append(tenants, Tenant{Task: []int64{rapid.Int64Range(1, 3).Draw(t, "cpu"),
				rapid.Int64Range(1, 3).Draw(t, "memory")}, Tasks: rapid.IntRange(1, 3).Draw(t, "tasks")})
		}
		bound, solved := FairShares(tenants, nodes)
		if !solved {
			t.Fatal("not solved")
		}
		slices.Sort(bound)
		for _, whole := range wholeDivisions(tenants, nodes) {
			for k := range whole {
				if whole[k] > bound[k]+1e-6 {
					t.Fatalf("%v on %v: whole tasks have shares of %v, above %v", tenants, nodes, whole, bound)
				}
				if whole[k] < bound[k]-1e-6 {
					break
				}
			}
		}
	})
}

// wholeDivisions returns the sorted dominant shares of all divisions of whole tasks.
func wholeDivisions(tenants []Tenant, nodes []NodeClass) (all [][]float64) {
	c := newClasses(nodes)
	free := make([][]int64, len(nodes))
	for k := range nodes {
		free[k] = slices.Clone(nodes[k].Capacity)
	}
	has := make([]int, len(tenants))
	var try func(i, k int)
	try = func(i, k int) {
		switch {
		case i == len(tenants):
			var shares []float64
			for j := range tenants {
				shares = append(shares, float64(has[j])*c.dominant(tenants[j].Task))
			}
			slices.Sort(shares)
			all = append(all, shares)
			return
		case k == len(nodes):
			try(i+1, 0)
			return
		}
		try(i, k+1)
		if has[i] < tenants[i].Tasks && covers(free[k], tenants[i].Task) {
			move(free[k], tenants[i].Task, -1)
			has[i]++
			try(i, k)
			has[i]--
			move(free[k], tenants[i].Task, 1)
		}
	}
	try(0, 0)
	return all
}
