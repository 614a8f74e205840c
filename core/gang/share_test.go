// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/place"
)

var share = flag.Int("share", 0,
	"instances of each family that TestShareByBudget reports on; 0 checks a few and reports nothing")

// budgets are those that the share is reported by. With the first, nothing but the unit's order is tried.
var budgets = []int{1, 32, 128, 512, gang.DefaultBudget, 4096}

// family is instances of one sort, each of which has places for its gang.
type family struct {
	name, what string
	make       func(w *world, c pick, prof place.Profile) (gang.Need, bool)
	least      float64 // of instances that DefaultBudget must solve
}

func families() []family {
	small := func(m mix) func(*world, pick, place.Profile) (gang.Need, bool) {
		return func(w *world, c pick, prof place.Profile) (gang.Need, bool) {
			need := instance(w, c, m)
			is, known := feasible(w, prof, need, judgements)
			return need, is && known
		}
	}
	return []family{
		{"small", "2 to 6 nodes, 2 to 6 members of up to 3 kinds, 3 resources",
			small(mix{nodes: 6, members: 6, kinds: 3, used: true}), 0.999},
		{"picky", "the same with node selectors, host ports and extras",
			small(mix{nodes: 6, members: 6, kinds: 3, used: true, picky: true, extras: true}), 0.999},
		{"wide", "up to 5 nodes and members, with affinity, anti-affinity and spread", small(mixes["wide"]), 0.97},
		{"domains", "up to 6 nodes, 4 members, with a topology", small(mixes["domains"]), 0.99},
		{"full 8", "8 members that fill 4 nodes to the last core and byte", full(4, 8, 0), 0.9},
		{"full 16", "16 members that fill 6 nodes", full(6, 16, 0), 0.8},
		{"full 64", "64 members that fill 20 nodes", full(20, 64, 0), 0},
		{"95 % 16", "16 members that fill 6 nodes to 95 %", full(6, 16, 50), 0},
		{"90 % 64", "64 members that fill 20 nodes to 90 %", full(20, 64, 100), 0},
	}
}

// full makes members that were cut out of nodes, and so fit; spare is the additional capacity of nodes, in
// thousandths.
func full(nodes, members, spare int) func(*world, pick, place.Profile) (gang.Need, bool) {
	return func(w *world, c pick, _ place.Profile) (gang.Need, bool) {
		const cpu, memory = 32, 128 // cores and GiB of a node
		more := func(n int) string { return fmt.Sprint(n * (1000 + spare)) }
		for i := range nodes {
			w.node(fmt.Sprintf("n%d", i), map[string]string{host: fmt.Sprintf("n%d", i)},
				map[string]string{"cpu": more(cpu) + "m", "memory": more(memory*1<<20) + "Ki"})
		}
		var pods []*v1.Pod
		for i := range nodes {
			parts := members*(i+1)/nodes - members*i/nodes
			cores, gibs := cut(c, cpu, parts), cut(c, memory, parts)
			for k := range parts {
				pods = append(pods, pod("m", map[string]string{"cpu": fmt.Sprint(cores[k]),
					"memory": fmt.Sprintf("%dMi", gibs[k]*1000)}))
			}
		}
		var need gang.Need
		for i := range pods { // a shuffle
			k := i + c("next", len(pods)-i)
			pods[i], pods[k] = pods[k], pods[i]
			pods[i].Name = fmt.Sprintf("m%d", i)
			pods[i].UID = types.UID(pods[i].Name)
			need.Members = append(need.Members, w.intake.Pod(pods[i]))
		}
		need.Quorum = members
		return need, true
	}
}

// cut cuts an amount into parts of at least 1.
func cut(c pick, amount, parts int) []int {
	cuts := make([]int, parts)
	for i := range cuts {
		cuts[i] = 1
	}
	for range amount - parts {
		cuts[c("part", parts)]++
	}
	return cuts
}

// TestShareByBudget counts the instances with places that a search finds, by its budget. With -share 1000 -v it
// prints the table of docs/bench/gangs.md. A budget never makes things worse: the same try comes first. Mutants:
// neverDig, unitOrderOnly.
func TestShareByBudget(t *testing.T) {
	prof := profile(t)
	for _, f := range families() {
		if *share == 0 {
			f.solve(t, prof, 15)
			continue
		}
		solved, tries := f.solve(t, prof, *share)
		var row []string
		for b := range budgets {
			row = append(row, fmt.Sprintf("%.1f %%", 100*float64(solved[b])/float64(*share)))
		}
		t.Logf("| %s | %s | %s | %d |", f.name, f.what, strings.Join(row, " | "), tries / *share)
	}
}

// solve tries so many instances with each budget, and counts those that are solved and the searches that were made with
// the default budget.
func (f family) solve(t tester, prof place.Profile, instances int) (solved []int, tries int) {
	solved = make([]int, len(budgets))
	for seed, made := uint64(0), 0; made < instances; seed++ {
		r := rand.New(rand.NewPCG(seed, 1))
		w := newWorld(t)
		need, ok := f.make(w, func(_ string, n int) int { return r.IntN(n) }, prof)
		if !ok {
			continue
		}
		made++
		before := false
		for b, budget := range budgets {
			need.Budget = budget
			w.try(need, func(a gang.Answer) {
				switch {
				case a.Verdict == gang.Placed:
					solved[b]++
				case before:
					t.Errorf("%s, seed %d: solved with a budget of %d and not with %d", f.name, seed, budgets[b-1],
						budget)
				case a.Verdict != gang.GaveUp:
					t.Errorf("%s, seed %d: %v, and there are places: %s", f.name, seed, a.Verdict, a.Proof)
				}
				if before = a.Verdict == gang.Placed; budget == gang.DefaultBudget {
					tries += a.Tried
				}
			})
		}
	}
	for b, budget := range budgets {
		if part := float64(solved[b]) / float64(instances); budget == gang.DefaultBudget && part < f.least {
			t.Errorf("%s: %.3f of the instances are solved with the default budget, %.3f are wanted", f.name, part,
				f.least)
		}
	}
	return solved, tries
}

// TestDenials counts how gangs without places are answered with the default budget: by a proof that there are none,
// now or ever, or by giving up. With -share 1000 -v it prints the second table of docs/bench/gangs.md.
func TestDenials(t *testing.T) {
	prof := profile(t)
	for _, name := range []string{"resources", "picky", "wide", "domains", "all"} {
		verdicts, tries := map[gang.Verdict]int{}, 0
		instances := max(*share, 15)
		for seed, made := uint64(0), 0; made < instances; seed++ {
			r := rand.New(rand.NewPCG(seed, 2))
			w := newWorld(t)
			need := instance(w, func(_ string, n int) int { return r.IntN(n) }, mixes[name])
			if is, known := feasible(w, prof, need, judgements); is || !known {
				continue
			}
			made++
			a := w.answer(need)
			verdicts[a.Verdict]++
			tries += a.Tried
			if a.Verdict == gang.Placed || a.Verdict == gang.Failed {
				t.Errorf("%s, seed %d: %v, and there are no places", name, seed, a.Verdict)
			}
		}
		if *share > 0 {
			part := func(v gang.Verdict) string {
				return fmt.Sprintf("%.1f %%", 100*float64(verdicts[v])/float64(instances))
			}
			t.Logf("| %s | %s | %s | %s | %d |", name, part(gang.NeverFits), part(gang.Unschedulable), part(gang.GaveUp),
				tries/instances)
		}
	}
}
