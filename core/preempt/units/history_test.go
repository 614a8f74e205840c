// SPDX-License-Identifier: Apache-2.0

package units_test

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/preempt/simulated"
	"github.com/kumiki-scheduler/kumiki/core/preempt/units"
)

// declare changes how a gang of the annotation goes, as its object would: nil for no priority of its own.
func (w *gangWorld) declare(gang string, priority *int32, byPods bool) {
	delete(w.declared, gang)
	if priority != nil {
		w.declared[gang] = *priority
	}
	w.byPods[gang] = byPods
	for _, source := range []cluster.GangSource{cluster.GangOfAnnotation, cluster.GangOfGroup} {
		key := cluster.GangKey{Source: source, Namespace: "default", Name: gang}
		obj := &cluster.Gang{Key: key}
		obj.Namespace, obj.Name = key.Object().Namespace, key.Object().Name
		w.Change(func() { w.Store.SetObject(obj) })
	}
}

// some is one of the pods that hold capacity, nil where there are none.
func (w *gangWorld) some(c pick) *cluster.Pod {
	var pods []*cluster.Pod
	s := w.Store.Snapshot()
	for n := range cluster.NodeIdx(s.Rows()) {
		s.EachPod(n, func(p *cluster.Pod, _ bool) { pods = append(pods, p) })
	}
	if len(pods) == 0 {
		return nil
	}
	return pods[c("which pod", len(pods))]
}

// stirUnits makes one thing happen that search may have to hear of.
func (w *gangWorld) stirUnits(c pick, m unitsMix) {
	node, gang := fmt.Sprint("n", c("node", 6)), fmt.Sprint("g", c("gang", 4))
	p := w.some(c)
	switch what := c("what", 16); {
	case what < 6:
		q := m.pod(w, c, int32(c("priority", 4)))
		if c("in a gang", 2) == 0 {
			q = of(gang, q)
		}
		w.Bind(node, q)
	case what == 6 && c("node goes", 3) == 0: // what is on it stays in the ledger
		w.Change(func() { w.Store.DeleteNode(node) })
	case what <= 7:
		w.SetNode(node, int64(1+c("cores", 5)), int64(2+c("places", 5)), fmt.Sprint("z", c("zone", 2)))
	case what == 8:
		own := int32(c("declared", 5))
		w.declare(gang, &own, c("by pods", 3) == 0)
	case what == 9:
		w.declare(gang, nil, c("by pods", 3) == 0)
	case what == 10:
		w.SetBudget(fmt.Sprint("b", c("budget", 2)), int32(c("allowed", 3)), map[string]string{"app": []string{"a", "b"}[c("app", 2)]})
	case what == 11:
		w.promise(c, m, node)
	case p == nil:
	case what == 12:
		q := *p
		q.Terminating, w.stuck[p.Name] = true, c("stuck", 3) == 0
		w.Change(func() { w.Store.SetPod(&q) })
	case what == 13: // learnt later: when it started, or its native group
		q := *p
		if q.Start = 1e9 * 60; c("group", 2) == 0 && q.Gang == nil {
			q.Start, q.Gang = p.Start, &cluster.GangMark{Key: cluster.GangKey{Source: cluster.GangOfGroup, Namespace: "default", Name: gang}}
		}
		w.Change(func() { w.Store.SetPod(&q) })
	case what == 14: // somebody tries, and takes it back
		w.Store.Begin()
		w.Store.DeletePod(p.UID)
		w.Store.Abort()
	default:
		w.Change(func() { w.Store.DeletePod(p.UID) })
	}
}

// mustGoByUnits tells pod by pod whether one of a lower priority than this goes with others, or is protected
// otherwise than it says itself.
func (w *gangWorld) mustGoByUnits(priority int32) bool {
	return w.Store.Snapshot().AnyGangPod(func(key cluster.GangKey, holds int, p *cluster.Pod) bool {
		own, declared := w.declared[key.Name]
		lower := p.Spec.Priority < priority || declared && own < priority
		return lower && (declared && own != p.Spec.Priority || holds > 1 && !w.byPods[key.Name])
	})
}

// promise lets a pod be expected on a node, or no pod.
func (w *gangWorld) promise(c pick, m unitsMix, node string) {
	if delete(w.Nominations, node); c("nobody", 2) != 0 {
		w.Nominations[node] = []*cluster.Pod{w.Intake.Pod(m.pod(w, c, int32(1+c("expected priority", 5))))}
	}
}

// historyHolds holds a search that remembers through a history against one that is new each time, and against the
// other ways to answer: as for gangs, and plainly.
func historyHolds(t fataler, m unitsMix, c pick, seen map[string]int) {
	w := m.settle(c)
	var f units.Finder
	for round := range 6 {
		for range 1 + c("changes", 5) {
			w.stirUnits(c, m)
		}
		for priority := range int32(6) {
			if got, want := f.GoesByUnits(w.Store.Snapshot(), priority, w.rule), w.mustGoByUnits(priority); got != want {
				t.Fatalf("round %d: a pod of priority %d goes by units: %v, want %v", round, priority, got, want)
			}
		}
		ask := m.wish(w, c)
		ask.strict = c("strict", 4) == 0
		kept, asked := w.units(&f, ask, nil)
		if !asked {
			continue
		}
		var fresh units.Finder
		anew, _ := w.units(&fresh, ask, nil)
		if !sameAnswer(kept, anew) {
			t.Fatalf("round %d: %s %+v, but one that remembers nothing: %s %+v", round, toldUnits(kept), kept.Loss, toldUnits(anew), anew.Loss)
		}
		if f.Refuted() {
			t.Fatalf("round %d: a dry run refutes what sums said: %s", round, toldUnits(kept))
		}
		var asGang units.Finder
		asGang.AsForGangs()
		general, _ := w.units(&asGang, ask, nil)
		plain, _ := w.units(&fresh, ask, func(q *units.Question) { q.Reference = true })
		switch {
		case kept.Verdict != general.Verdict || plain.Verdict == preempt.Evict && kept.Verdict != preempt.Evict:
			t.Fatalf("round %d: %s, as for gangs: %s, plainly: %s", round, toldUnits(kept), toldUnits(general), toldUnits(plain))
		case kept.Units != general.Units || kept.Verdict != preempt.Evict && kept.Message != general.Message:
			t.Fatalf("round %d: %d units, %q, as for gangs %d, %q", round, kept.Units, kept.Message, general.Units, general.Message)
		case plain.Verdict == preempt.Evict && kept.Loss.Compare(plain.Loss) > 0 || kept.Minimum && general.Loss.Compare(kept.Loss) < 0 || general.Minimum && kept.Loss.Compare(general.Loss) < 0:
			t.Fatalf("round %d: %s %+v, as for gangs: %s %+v, plainly: %s %+v", round, toldUnits(kept), kept.Loss, toldUnits(general), general.Loss, toldUnits(plain), plain.Loss)
		}
		if why := w.unlawful(ask, kept); why != "" {
			t.Fatalf("round %d: %s: %s", round, toldUnits(kept), why)
		}
		if kept.Verdict == preempt.Evict {
			seen["evict"]++
		} else {
			seen["nobody"]++
		}
		if f.Lone() {
			seen["by sums"]++
		}
	}
}

// sameAnswer reports whether two answers are one.
func sameAnswer(a, b units.Answer) bool {
	return a.Verdict == b.Verdict && a.Message == b.Message && a.Loss == b.Loss && toldUnits(a) == toldUnits(b) && a.Minimum == b.Minimum &&
		a.Units == b.Units && len(a.Terminating) == len(b.Terminating) && reflect.DeepEqual(considerations(a), considerations(b))
}

// considerations are the reasons why units stay, in some order.
func considerations(a units.Answer) map[string]int {
	all := map[string]int{}
	for _, c := range a.Considered {
		all[fmt.Sprint(c.Gang, c.Pod.Name, c.Pods, c.Priority, c.Why)]++
	}
	return all
}

// historyMixes are those of the preemptors in histories.
var historyMixes = map[string]unitsMix{
	"one pod":       {plain: true, pods: 14, onePod: true},
	"one picky pod": {pods: 10, onePod: true},
	"gangs":         {plain: true, pods: 8},
}

// histories makes histories with even choices, each from its own seed.
func histories(t fataler, m unitsMix, count int, seen map[string]int) {
	for seed := range count {
		even := rand.New(rand.NewPCG(uint64(seed), 11))
		historyHolds(seeded{t, seed}, m, func(_ string, n int) int { return even.IntN(n) }, seen)
	}
}

// TestUnitHistories: what is kept between searches is what there is, whatever happens: pods come, go, begin to go
// and learn their start or their group, nodes come and go, gangs change how they go and what protects them, and
// trials are rolled back.
func TestUnitHistories(t *testing.T) {
	for name, m := range historyMixes {
		t.Run(name, func(t *testing.T) {
			seen := map[string]int{}
			histories(t, m, thousands(), seen)
			t.Log(seen)
			if seen["evict"] == 0 || seen["nobody"] == 0 || m.plain && m.onePod && seen["by sums"] < seen["evict"] {
				t.Errorf("too little was seen: %v", seen)
			}
		})
	}
}

// TestLoneOnManyPods: on nodes with many units each, the search for one pod still finds the smallest loss, and is
// held against the others.
func TestLoneOnManyPods(t *testing.T) {
	seen := map[string]int{}
	for seed := range 60 {
		even := rand.New(rand.NewPCG(uint64(seed), 13))
		crowdHolds(t, seed, even.IntN, seen)
	}
	t.Log(seen)
}

func crowdHolds(t fataler, seed int, c func(n int) int, seen map[string]int) {
	w := newGangWorld()
	for i := range 3 {
		name := fmt.Sprint("n", i)
		w.SetNode(name, 20, 30, "z0")
		for k := range 8 + c(6) {
			p := simulated.Started(simulated.Pod(fmt.Sprint("p", i, "-", k), int32(c(2)), int64(1+c(3))), int64(1+c(50)))
			p.Spec.Containers[0].Resources.Requests[v1.ResourceMemory] = *gib(int64(c(3)))
			if p.Labels = map[string]string{"app": []string{"a", "b"}[c(2)]}; c(4) == 0 {
				p = of(fmt.Sprint("g", c(3)), p)
			}
			w.Bind(name, p)
		}
	}
	if c(2) == 0 {
		w.SetBudget("a", int32(c(3)), map[string]string{"app": "a"})
	}
	boss := simulated.Pod("boss", 10, int64(12+c(8)))
	boss.Spec.Containers[0].Resources.Requests[v1.ResourceMemory] = *gib(int64(6 + c(8)))
	ask := wish{pods: []*v1.Pod{boss}, power: 10}
	var f, asGang units.Finder
	asGang.AsForGangs()
	a, asked := w.units(&f, ask, nil)
	if !asked {
		return
	}
	general, _ := w.units(&asGang, ask, nil)
	plain, _ := w.units(&f, ask, func(q *units.Question) { q.Reference = true })
	if a.Verdict != plain.Verdict || a.Loss.Compare(plain.Loss) > 0 || a.Minimum && general.Loss.Compare(a.Loss) < 0 {
		t.Fatalf("seed %d: %s %+v, as for gangs: %s %+v, plainly: %s %+v", seed, toldUnits(a), a.Loss, toldUnits(general), general.Loss, toldUnits(plain), plain.Loss)
	}
	if why := w.unlawful(ask, a); why != "" {
		t.Fatalf("seed %d: %s: %s", seed, toldUnits(a), why)
	}
	if a.Loss != general.Loss {
		seen["less than as for gangs"]++
	}
	if !a.Minimum {
		seen["not proved"]++
	}
	seen["all"]++
}

// gib is so many GiB.
func gib(n int64) *apiresource.Quantity { return apiresource.NewQuantity(n<<30, apiresource.BinarySI) }
