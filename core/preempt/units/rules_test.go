// SPDX-License-Identifier: Apache-2.0

package units_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/preempt/simulated"
	"github.com/kumiki-scheduler/kumiki/core/preempt/units"
)

// unitRules are the rules of preemption by units, each with an example small enough to follow by hand: four nodes
// of four cores, n0 and n1 in zone z0, n2 and n3 in z1; and a gang of priority 10, "boss", of two pods of four
// cores, unless it says otherwise.
var unitRules = []struct {
	name  string
	scene func(w *gangWorld)
	more  func(ask *wish)
	want  string
}{
	{"R5: a gang goes whole, wherever its pods are", func(w *gangWorld) {
		w.Bind("n0", of("g", simulated.Pod("g0", 1, 4)))
		w.Bind("n1", of("g", simulated.Pod("g1", 1, 1)))
		w.Bind("n2", of("g", simulated.Pod("g2", 1, 4)))
		w.Bind("n3", simulated.Pod("own", 10, 4))
	}, nil, "g[g0 g1 g2]"},
	{"R4: equal priority is never a victim", func(w *gangWorld) {
		for i := range 4 {
			w.Bind(fmt.Sprint("n", i), of("g", simulated.Pod(fmt.Sprint("g", i), 10, 4)))
		}
	}, nil, "preemption: No preemption victims found for incoming preemptor"},
	{"A3: the highest of its members protects a gang", func(w *gangWorld) {
		w.Bind("n0", of("g", simulated.Pod("g0", 1, 4)))
		w.Bind("n1", of("g", simulated.Pod("g1", 10, 4)))
		w.Bind("n2", simulated.Pod("a", 9, 4))
		w.Bind("n3", simulated.Pod("b", 9, 4))
	}, nil, "a b"},
	{"A3: a declared priority counts instead of its members'", func(w *gangWorld) {
		w.declared["g"], w.declared["h"] = 10, 1
		w.Bind("n0", of("g", simulated.Pod("g0", 1, 4)))
		w.Bind("n1", of("g", simulated.Pod("g1", 1, 4)))
		w.Bind("n2", of("h", simulated.Pod("h0", 50, 4)))
		w.Bind("n3", of("h", simulated.Pod("h1", 50, 4)))
	}, nil, "h[h0 h1]"},
	{"R6: nobody goes where the whole preemptor would not fit", func(w *gangWorld) {
		w.Bind("n0", simulated.Pod("a", 1, 4))
		for i := range 3 {
			w.Bind(fmt.Sprint("n", i+1), simulated.Pod(fmt.Sprint("own", i), 10, 4))
		}
	}, nil, "preemption: there is no room with all 1 units of lower priority gone either."},
	{"R7: nobody goes who is not needed", func(w *gangWorld) {
		w.Bind("n0", simulated.Pod("a", 1, 4))
		w.Bind("n1", simulated.Pod("b", 1, 4))
		w.Bind("n2", simulated.Pod("c", 1, 1))
		w.Bind("n3", simulated.Pod("own", 10, 4))
		w.SetNode("n2", 3, 10, "z1")
	}, nil, "a b"},
	{"R16: a gang with a member that may not go stays", func(w *gangWorld) {
		w.never["g1"] = "a pod of another scheduler"
		w.Bind("n0", of("g", simulated.Pod("g0", 1, 4)))
		w.Bind("n1", of("g", simulated.Pod("g1", 1, 4)))
		w.Bind("n2", simulated.Pod("a", 9, 4))
		w.Bind("n3", simulated.Pod("b", 9, 4))
	}, nil, "a b"},
	{"A11: a violation weighs more than any priority", func(w *gangWorld) {
		w.SetBudget("web", 0, map[string]string{"app": "web"})
		w.Bind("n0", simulated.Labelled(simulated.Pod("a", 1, 4), "web"))
		w.Bind("n1", simulated.Pod("b", 9, 4))
		w.Bind("n2", simulated.Pod("c", 9, 4))
		w.Bind("n3", simulated.Pod("own", 10, 4))
	}, nil, "b c"},
	{"A12: against strict budgets nobody goes", func(w *gangWorld) {
		w.SetBudget("web", 0, map[string]string{"app": "web"})
		w.Bind("n0", simulated.Labelled(simulated.Pod("a", 1, 4), "web"))
		w.Bind("n1", simulated.Pod("b", 9, 4))
		w.Bind("n2", simulated.Pod("own2", 10, 4))
		w.Bind("n3", simulated.Pod("own", 10, 4))
	}, func(ask *wish) { ask.strict = true }, "preemption: disruption budgets protect pods that would have to go, and they are strict."},
	{"A12: strict budgets let go what they allow", func(w *gangWorld) {
		w.SetBudget("web", 1, map[string]string{"app": "web"})
		w.Bind("n0", simulated.Labelled(simulated.Pod("a", 1, 4), "web"))
		w.Bind("n1", simulated.Pod("b", 9, 4))
		w.Bind("n2", simulated.Labelled(simulated.Pod("c", 8, 4), "web"))
		w.Bind("n3", simulated.Pod("own", 10, 4))
	}, func(ask *wish) { ask.strict = true }, "b c"},
	{"A11: the lowest of the highest priorities", func(w *gangWorld) {
		w.Bind("n0", of("g", simulated.Pod("g0", 5, 4)))
		w.Bind("n1", of("g", simulated.Pod("g1", 5, 4)))
		w.Bind("n2", simulated.Pod("a", 4, 4))
		w.Bind("n3", simulated.Pod("b", 4, 4))
	}, nil, "a b"},
	{"A11: then the fewest units", func(w *gangWorld) {
		w.Bind("n0", of("g", simulated.Pod("g0", 4, 4)))
		w.Bind("n1", of("g", simulated.Pod("g1", 4, 4)))
		w.Bind("n2", simulated.Pod("a", 4, 4))
		w.Bind("n3", simulated.Pod("b", 4, 4))
	}, func(ask *wish) { ask.notPlain = true }, "g[g0 g1]"},
	{"A11: then the fewest pods", func(w *gangWorld) {
		for i := range 4 {
			w.Bind("n0", of("many", simulated.Pod(fmt.Sprint("m", i), 4, 1)))
		}
		w.Bind("n1", of("few", simulated.Pod("f0", 4, 4)))
		w.Bind("n2", simulated.Pod("own", 10, 4))
		w.Bind("n3", simulated.Pod("own2", 10, 4))
	}, func(ask *wish) { ask.pods = ask.pods[:1] }, "few[f0]"},
	{"A11: then the newest", func(w *gangWorld) {
		for i := range 4 {
			w.Bind(fmt.Sprint("n", i), simulated.Started(simulated.Pod(fmt.Sprint("p", i), 4, 4), int64([]int{200, 100, 300, 50}[i])))
		}
	}, nil, "p0 p2"},
	{"A9: who is going is no victim, and its room counts", func(w *gangWorld) {
		w.Bind("n0", going(simulated.Pod("leaves", 99, 4)))
		w.Bind("n1", simulated.Pod("a", 1, 4))
		w.Bind("n2", simulated.Pod("b", 2, 4))
		w.Bind("n3", simulated.Pod("own", 10, 4))
	}, nil, "a"},
	{"A9: nobody goes where enough are going", func(w *gangWorld) {
		w.Bind("n0", going(of("g", simulated.Pod("g0", 1, 4))))
		w.Bind("n1", going(of("g", simulated.Pod("g1", 1, 4))))
		w.Bind("n2", simulated.Pod("a", 1, 4))
		w.Bind("n3", simulated.Pod("b", 1, 4))
	}, nil, "preemption: there is room once 2 pods that are terminating have gone."},
	{"A23: a gang goes for one pod, the smaller one of two", func(w *gangWorld) {
		for i := range 4 {
			w.Bind(fmt.Sprint("n", i), of("big", simulated.Pod(fmt.Sprint("b", i), 1, 2)))
		}
		for i := range 3 {
			w.Bind(fmt.Sprint("n", i), of("small", simulated.Pod(fmt.Sprint("s", i), 1, 2)))
		}
		w.Bind("n3", simulated.Pod("own", 10, 2))
	}, func(ask *wish) { ask.pods = []*v1.Pod{simulated.Pod("boss", 10, 2)} }, "small[s0 s1 s2]"},
	{"H22: a pod does not break a gang, it takes it whole or not at all", func(w *gangWorld) {
		for i := range 4 {
			w.Bind(fmt.Sprint("n", i), of("g", simulated.Pod(fmt.Sprint("g", i), 1, 4)))
		}
	}, func(ask *wish) { ask.pods = []*v1.Pod{simulated.Pod("boss", 10, 1)} }, "g[g0 g1 g2 g3]"},
	{"H23: its own gang never goes", func(w *gangWorld) {
		w.Bind("n0", of("boss", simulated.Pod("old", 1, 4)))
		w.Bind("n1", simulated.Pod("a", 9, 4))
		w.Bind("n2", simulated.Pod("b", 9, 4))
		w.Bind("n3", simulated.Pod("own", 10, 4))
	}, nil, "a b"},
	{"H23: who is on a node that does not help stays", func(w *gangWorld) {
		w.Bind("n0", simulated.Pod("a", 1, 4))
		w.Bind("n1", simulated.Pod("b", 9, 4))
		w.Bind("n2", simulated.Pod("c", 9, 4))
		w.Bind("n3", simulated.Pod("d", 9, 4))
	}, func(ask *wish) {
		for _, p := range ask.pods {
			p.Spec.NodeSelector = map[string]string{"zone": "z1"}
		}
	}, "c d"},
	{"who is elsewhere goes where that helps", func(w *gangWorld) {
		// The pods want to be beside one of their own app, or to be the first of it. The one there is has a node
		// without capacity.
		friend := simulated.Pod("friend", 1, 0)
		friend.Labels = map[string]string{"app": "boss"}
		w.Bind("n0", friend)
		w.Bind("n0", simulated.Pod("own", 10, 4))
	}, func(ask *wish) {
		for _, p := range ask.pods {
			p.Labels = map[string]string{"app": "boss"}
			p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
				{LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}, TopologyKey: "zone"}}}}
		}
	}, "friend"},
	{"all in one zone", func(w *gangWorld) {
		w.Bind("n0", simulated.Pod("a", 1, 4))
		w.Bind("n1", simulated.Pod("own", 10, 4))
		w.Bind("n2", simulated.Pod("b", 5, 4))
		w.Bind("n3", simulated.Pod("c", 5, 4))
	}, func(ask *wish) { ask.topology = []cluster.GangTopology{{Key: "zone", Required: true}} }, "b c"},
	{"a quorum does", func(w *gangWorld) {
		for i := range 4 {
			w.Bind(fmt.Sprint("n", i), simulated.Pod(fmt.Sprint("p", i), int32(i), 4))
		}
	}, func(ask *wish) { ask.quorum = 1 }, "p0"},
}

// bosses are the pods of the preemptor.
func bosses() wish {
	return wish{pods: times(2, of("boss", simulated.Pod("boss", 10, 4))), power: 10}
}

// playUnits is empty when an example ends as it should.
func playUnits(name string) string {
	for _, r := range unitRules {
		if r.name != name {
			continue
		}
		for _, plain := range []bool{false, true} {
			w := newGangWorld()
			for i := range 4 {
				w.SetNode(fmt.Sprint("n", i), 4, 10, fmt.Sprint("z", i/2))
			}
			r.scene(w)
			ask := bosses()
			if r.more != nil {
				r.more(&ask)
			}
			if plain && ask.notPlain {
				continue
			}
			var f units.Finder
			a, ok := w.units(&f, ask, func(q *units.Question) { q.Reference = plain })
			if got := toldUnits(a); !ok || got != r.want {
				return fmt.Sprintf("%s (plain: %v): %s, want %s", name, plain, got, r.want)
			}
		}
	}
	return ""
}

// TestUnitRules plays each rule of preemption by units, in the plain form and in the other.
func TestUnitRules(t *testing.T) {
	for _, r := range unitRules {
		t.Run(r.name, func(t *testing.T) {
			if wrong := playUnits(r.name); wrong != "" {
				t.Error(wrong)
			}
		})
	}
}
