// SPDX-License-Identifier: Apache-2.0

package preempt_test

import (
	"fmt"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/preempt/simulated"
)

// rules are upstream's, each with an example small enough to follow by hand: nodes of four cores, and a pod of
// priority 10 that asks for some.
var rules = []struct {
	name  string
	scene func(w *world)
	cores int64
	more  func(p *v1.Pod, q *preempt.Question)
	want  string
}{
	{"only pods of lower priority go", func(w *world) {
		w.Bind("n0", simulated.Started(simulated.Pod("equal", 10, 4), 1))
		w.Bind("n1", simulated.Started(simulated.Pod("lower", 9, 4), 1))
	}, 4, nil, "n1 [lower] 0"},
	{"equal priority is never a victim", func(w *world) {
		w.Bind("n0", simulated.Pod("a", 10, 4))
		w.Bind("n1", simulated.Pod("b", 10, 4))
	}, 4, nil, "preemption: 0/2 nodes are available: 2 No preemption victims found for incoming pod."},
	{"as many as possible are spared, the most important first", func(w *world) {
		w.Bind("n0", simulated.Started(simulated.Pod("five", 5, 2), 1))
		w.Bind("n0", simulated.Started(simulated.Pod("three", 3, 1), 1))
		w.Bind("n0", simulated.Started(simulated.Pod("one", 1, 1), 1))
		w.Bind("n1", simulated.Pod("own", 10, 4))
	}, 1, nil, "n0 [one] 0"},
	{"who started first is spared first", func(w *world) {
		w.Bind("n0", simulated.Started(simulated.Pod("young", 1, 2), 200))
		w.Bind("n0", simulated.Started(simulated.Pod("old", 1, 2), 100))
		w.Bind("n1", simulated.Pod("own", 10, 4))
	}, 2, nil, "n0 [young] 0"},
	{"a pod that has not started counts as the youngest", func(w *world) {
		w.Bind("n0", simulated.Pod("new", 1, 2))
		w.Bind("n0", simulated.Started(simulated.Pod("old", 1, 2), 100))
		w.Bind("n1", simulated.Pod("own", 10, 4))
	}, 2, nil, "n0 [new] 0"},
	{"of pods that have not started, the first on its node counts as the oldest", func(w *world) {
		w.SetBudget("web", 0, map[string]string{"app": "web"})
		w.Bind("n0", simulated.Pod("first", 1, 2))
		w.Bind("n0", simulated.Labelled(simulated.Pod("second", 1, 2), "web"))
		w.Bind("n1", simulated.Pod("own", 10, 4))
	}, 4, nil, "n0 [first second] 1"},
	{"a violation weighs more than any priority", func(w *world) {
		w.SetBudget("web", 0, map[string]string{"app": "web"})
		w.Bind("n0", simulated.Started(simulated.Labelled(simulated.Pod("cheap", 1, 4), "web"), 1))
		w.Bind("n1", simulated.Started(simulated.Pod("dear", 9, 4), 1))
	}, 4, nil, "n1 [dear] 0"},
	{"of one node those that a budget protects are spared first", func(w *world) {
		w.SetBudget("web", 1, map[string]string{"app": "web"})
		// Both are of the budget. It allows one: the second in the order of importance would be too much.
		w.Bind("n0", simulated.Started(simulated.Labelled(simulated.Pod("six", 6, 2), "web"), 1))
		w.Bind("n0", simulated.Started(simulated.Labelled(simulated.Pod("two", 2, 2), "web"), 1))
		w.Bind("n1", simulated.Pod("own", 10, 4))
	}, 2, nil, "n0 [six] 0"},
	{"violations are counted", func(w *world) {
		w.SetBudget("web", 0, map[string]string{"app": "web"})
		w.Bind("n0", simulated.Started(simulated.Labelled(simulated.Pod("a", 6, 2), "web"), 1))
		w.Bind("n0", simulated.Started(simulated.Labelled(simulated.Pod("b", 2, 2), "web"), 1))
		w.Bind("n1", simulated.Pod("own", 10, 4))
	}, 4, nil, "n0 [a b] 2"},
	{"A12: against strict budgets nobody goes", func(w *world) {
		w.SetBudget("web", 0, map[string]string{"app": "web"})
		w.Bind("n0", simulated.Started(simulated.Labelled(simulated.Pod("a", 6, 2), "web"), 1))
		w.Bind("n0", simulated.Started(simulated.Pod("b", 2, 2), 1))
		w.Bind("n1", simulated.Pod("own", 10, 4))
	}, 4, func(_ *v1.Pod, q *preempt.Question) { q.Strict = true },
		"preemption: disruption budgets protect pods that would have to go, and they are strict."},
	{"A12: strict budgets let go what they allow", func(w *world) {
		w.SetBudget("web", 1, map[string]string{"app": "web"})
		w.Bind("n0", simulated.Started(simulated.Labelled(simulated.Pod("a", 6, 4), "web"), 1))
		w.Bind("n1", simulated.Pod("own", 10, 4))
	}, 4, func(_ *v1.Pod, q *preempt.Question) { q.Strict = true }, "n0 [a] 0"},
	{"the lowest of the highest priorities", func(w *world) {
		w.Bind("n0", simulated.Started(simulated.Pod("six", 6, 4), 1))
		w.Bind("n1", simulated.Started(simulated.Pod("five", 5, 2), 1))
		w.Bind("n1", simulated.Started(simulated.Pod("four", 4, 2), 1))
	}, 4, nil, "n1 [five four] 0"},
	{"then the lowest sum", func(w *world) {
		w.Bind("n0", simulated.Started(simulated.Pod("a5", 5, 2), 1))
		w.Bind("n0", simulated.Started(simulated.Pod("a4", 4, 2), 1))
		w.Bind("n1", simulated.Started(simulated.Pod("b5", 5, 2), 1))
		w.Bind("n1", simulated.Started(simulated.Pod("b3", 3, 2), 1))
	}, 4, nil, "n1 [b5 b3] 0"},
	{"a crowd of negative priority is no cheaper than one", func(w *world) {
		w.Bind("n0", simulated.Started(simulated.Pod("a1", -5, 2), 1))
		w.Bind("n0", simulated.Started(simulated.Pod("a2", -5, 2), 1))
		w.Bind("n1", simulated.Started(simulated.Pod("b", -5, 4), 1))
	}, 4, nil, "n1 [b] 0"},
	{"then the node whose oldest victim started last", func(w *world) {
		w.Bind("n0", simulated.Started(simulated.Pod("a", 5, 4), 100))
		w.Bind("n1", simulated.Started(simulated.Pod("b", 5, 4), 200))
	}, 4, nil, "n1 [b] 0"},
	{"only the oldest of the highest priority counts", func(w *world) {
		w.Bind("n0", simulated.Started(simulated.Pod("a5", 5, 2), 100))
		w.Bind("n0", simulated.Started(simulated.Pod("a1", 1, 2), 900))
		w.Bind("n1", simulated.Started(simulated.Pod("b5", 5, 2), 200))
		w.Bind("n1", simulated.Started(simulated.Pod("b1", 1, 2), 50))
	}, 4, nil, "n1 [b5 b1] 0"},
	{"of equal losses the first row", func(w *world) {
		w.Bind("n0", simulated.Started(simulated.Pod("a", 5, 4), 100))
		w.Bind("n1", simulated.Started(simulated.Pod("b", 5, 4), 100))
	}, 4, nil, "n0 [a] 0"},
	{"preemptionPolicy Never", func(w *world) {
		w.Bind("n0", simulated.Pod("a", 1, 4))
		w.Bind("n1", simulated.Pod("b", 1, 4))
	}, 4, func(p *v1.Pod, _ *preempt.Question) {
		never := v1.PreemptNever
		p.Spec.PreemptionPolicy = &never
	}, "preemption: not eligible due to preemptionPolicy=Never."},
	{"nobody else goes while a victim is going", func(w *world) {
		gone := simulated.Pod("going", 1, 4)
		gone.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		gone.Status.Conditions = []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler}}
		w.Bind("n0", gone)
		w.Bind("n1", simulated.Pod("b", 1, 4))
	}, 4, func(p *v1.Pod, _ *preempt.Question) { p.Status.NominatedNodeName = "n0" },
		"preemption: not eligible due to a terminating pod on the nominated node."},
	{"nor while one is told to go", func(w *world) {
		w.Bind("n0", simulated.Pod("a", 1, 4))
		w.Bind("n1", simulated.Pod("b", 1, 4))
	}, 4, func(p *v1.Pod, q *preempt.Question) {
		p.Status.NominatedNodeName, q.Nominated, q.Awaited = "n0", "n0", true
	},
		"preemption: not eligible due to a terminating pod on the nominated node."},
	{"a limit ends the search at the first candidates", func(w *world) {
		w.Bind("n0", simulated.Started(simulated.Pod("dear", 9, 4), 1))
		w.Bind("n1", simulated.Started(simulated.Pod("cheap", 1, 4), 1))
	}, 4, func(_ *v1.Pod, q *preempt.Question) { q.Limit = &preempt.Limit{MinAbsolute: 1} }, "n0 [dear] 0"},
	{"nothing helps", func(w *world) {
		w.Bind("n0", simulated.Pod("a", 1, 1))
		w.Bind("n0", simulated.Pod("b", 10, 3))
		w.Bind("n1", simulated.Pod("c", 10, 4))
	}, 3, nil, "preemption: 0/2 nodes are available: 1 Insufficient cpu, 1 No preemption victims found for incoming pod."},
	{"nodes that were rejected for good are told of too", func(w *world) {
		w.Bind("n0", simulated.Pod("a", 10, 4))
		w.SetNode("n1", 1, 10, "z1")
	}, 3, nil, "preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod, 1 Preemption is not helpful for scheduling."},
}

// TestRules plays each example both ways.
func TestRules(t *testing.T) {
	for _, r := range rules {
		if said := play(r.name); said != "" {
			t.Error(said)
		}
	}
}

// play is empty when an example ends as it should.
func play(name string) string {
	for _, r := range rules {
		if r.name != name {
			continue
		}
		for _, all := range []bool{false, true} {
			w := newWorld()
			w.SetNode("n0", 4, 10, "z0")
			w.SetNode("n1", 4, 10, "z1")
			r.scene(w)
			pod := simulated.Pod("boss", 10, r.cores)
			var q preempt.Question
			if r.more != nil {
				r.more(pod, &q)
			}
			a, ok := w.ask(&w.finder, pod, func(ask *preempt.Question) {
				ask.All = all
				ask.Limit, ask.Awaited, ask.Strict = q.Limit, q.Awaited, q.Strict
			})
			if got := w.told(a); !ok || got != r.want {
				return fmt.Sprintf("%s (all nodes tried: %v): %s, want %s", name, all, got, r.want)
			}
		}
	}
	return ""
}

// startsLater: a start that is learnt after a search counts in the next.
func startsLater(t interface{ Fatalf(string, ...any) }) {
	w := newWorld()
	w.SetNode("n0", 4, 10, "z0")
	a, b := simulated.Pod("a", 1, 2), simulated.Started(simulated.Pod("b", 1, 2), 50)
	w.Bind("n0", a)
	w.Bind("n0", b)
	for _, want := range []string{"n0 [a] 0", "n0 [b] 0"} {
		if got, _ := w.ask(&w.finder, simulated.Pod("boss", 10, 2), nil); w.told(got) != want {
			t.Fatalf("%s, want %s", w.told(got), want)
		}
		w.Bind("n0", simulated.Started(a, 20))
	}
}

// TestStartIsLearntLater: what the finder remembers of a pod follows its start.
func TestStartIsLearntLater(t *testing.T) { startsLater(t) }

// TestVictimsAreNeeded: with any one of the victims spared the pod does not fit (rule R7 for one pod).
func TestVictimsAreNeeded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		for range rapid.IntRange(5, 40).Draw(t, "changes") {
			w.stir(t, true) // amounts alone: with affinity to victims a larger set may fit where a smaller one does not
		}
		w.Nominations = simulated.Nominations{}
		pod := w.drawPod(t, true)
		*pod.Spec.Priority++
		a, ok := w.ask(&w.finder, pod, nil)
		if !ok || a.Verdict != preempt.Evict {
			return
		}
		for spared := range a.Best.Victims {
			w.Store.Begin()
			for i, v := range a.Best.Victims {
				if i != spared {
					w.Store.DeletePod(v.UID)
				}
			}
			out := w.Placer.Place(w.Store.Snapshot(), w.Intake.Pod(pod), w.Nominations, func(int) int { return 0 })
			w.Store.Abort()
			if out.Verdict(a.Best.Node) == 0 && out.Node != cluster.NoNode {
				t.Fatalf("the pod fits although %s is spared, of %s", a.Best.Victims[spared].Name, w.named(a.Best))
			}
		}
	})
}
