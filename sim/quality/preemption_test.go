// SPDX-License-Identifier: Apache-2.0

package quality

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/sim/bound"
)

// fullNode is a node without free capacity with victims of 4 CPUs and 4 GiB each, and a pod that needs as much.
func fullNode(victims ...bound.Victim) *Preemption {
	c := &Preemption{on: map[string]int{}, victims: map[string]bound.Victim{}, need: []int64{4, 4},
		free: [][]int64{{0, 0}}, budget: &policyv1.PodDisruptionBudget{}}
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node", UID: "node"}}
	n.Status.Allocatable = preemptionAmounts([]int64{8, 8})
	c.nodes = append(c.nodes, n)
	for i, v := range victims {
		name := string(rune('a' + i))
		v.Frees = []int64{4, 4}
		pod := preemptionPod(name, v.Frees, v.Priority)
		pod.Spec.NodeName = "node"
		c.pods, c.victims[name] = append(c.pods, pod), v
	}
	c.pod = preemptionPod("preemptor", c.need, 100)
	return c
}

// TestNeedlessVictimsAreCounted: a scheduler that evicts two pods where either is enough.
func TestNeedlessVictimsAreCounted(t *testing.T) {
	c := fullNode(bound.Victim{Priority: 1}, bound.Victim{Priority: 3})
	both := &script{effects: []engine.Effect{engine.Evict{Victims: []record.PodRef{{Name: "a"}, {Name: "b"}}}}}
	tally := &PreemptionTally{}
	if err := c.Run(both, false, tally); err != nil {
		t.Fatal(err)
	}
	want := PreemptionTally{Cases: 1, Higher: 1, Victims: 2, BestVictims: 1, Priorities: 4, BestPriorities: 1,
		Needless: 2}
	if *tally != want {
		t.Errorf("%+v, want %+v", *tally, want)
	}
}

// TestLeastLossOfStrictBudgets: with strict budgets, a pod that one protects is no victim.
func TestLeastLossOfStrictBudgets(t *testing.T) {
	c := fullNode(bound.Victim{Priority: 1, Violates: true})
	if least, possible := c.least(false); !possible || least.Violations != 1 {
		t.Errorf("best effort: %+v (%v), want a violation", least, possible)
	}
	if least, possible := c.least(true); possible {
		t.Errorf("strict: %+v, want no victims", least)
	}
	none := &script{}
	tally := &PreemptionTally{}
	if err := c.Run(none, true, tally); err != nil || tally.Impossible != 1 {
		t.Errorf("%+v (%v), want an impossible case", *tally, err)
	}
	if err := c.Run(none, false, tally); err == nil {
		t.Error("a scheduler that evicts nothing where it would help passes")
	}
}

// TestDrawnClustersAreFull: the pod fits no node, and victims help in most cases.
func TestDrawnClustersAreFull(t *testing.T) {
	helped := 0
	for seed := range int64(200) {
		c := DrawPreemption(seed)
		for n, free := range c.free {
			if covered(c.need, free) {
				t.Errorf("seed %d: the pod fits node %d", seed, n)
			}
		}
		if _, possible := c.least(false); possible {
			helped++
		}
	}
	if helped < 150 {
		t.Errorf("victims help in %d of 200 cases", helped)
	}
}
