// SPDX-License-Identifier: Apache-2.0

package units_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/preempt/simulated"
	"github.com/kumiki-scheduler/kumiki/core/preempt/units"
	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// unitsMix is what random clusters are made of.
type unitsMix struct {
	plain    bool // only amounts reject
	pods     int  // at most
	topology bool
	onePod   bool // the preemptor is one pod
}

var unitsMixes = map[string]unitsMix{
	"amounts":       {plain: true, pods: 9},
	"wide":          {pods: 8},
	"domains":       {plain: true, pods: 9, topology: true},
	"wide domains":  {pods: 8, topology: true},
	"one pod":       {plain: true, pods: 10, onePod: true},
	"one picky pod": {pods: 9, onePod: true},
	"many":          {plain: true, pods: 30},
	"many picky":    {pods: 16, topology: true},
}

// pick chooses one of n.
type pick func(what string, n int) int

func (c pick) oneIn(n int, what string) bool { return c(what, n) == 0 }

// settle makes a random cluster that is nearly full.
func (m unitsMix) settle(c pick) *gangWorld {
	w := newGangWorld()
	nodes := 2 + c("nodes", 4)
	for i := range nodes {
		w.SetNode(fmt.Sprint("n", i), int64(1+c("cores", 5)), int64(2+c("places", 5)), fmt.Sprint("z", i%2))
	}
	for range 2 + c("how many", m.pods-1) + m.pods/2 {
		p := m.pod(w, c, int32(c("priority", 4)))
		if g := c("gang", 7); g < 4 {
			p = of(fmt.Sprint("g", g), p)
		} else if g == 4 && c.oneIn(3, "own") {
			p = of("boss", p)
		}
		switch c("fate", 20) {
		case 0:
			going(p)
		case 1:
			w.never[p.Name] = "it is not ours"
		}
		w.Bind(fmt.Sprint("n", c("node", nodes)), p)
	}
	for g := range 4 {
		if c.oneIn(5, "declares") {
			w.declared[fmt.Sprint("g", g)] = int32(c("declared", 4))
		}
	}
	w.byPods["g3"], w.byPods["boss"] = c.oneIn(3, "g3 by pods"), c.oneIn(2, "boss by pods")
	if m.onePod && c.oneIn(3, "expected") {
		w.promise(c, m, "n0")
	}
	for b := range c("budgets", 3) {
		w.SetBudget(fmt.Sprint("b", b), int32(c("allowed", 3)), map[string]string{"app": []string{"a", "b"}[c("app", 2)]})
	}
	return w
}

// pod makes a pod with whatever makes filters reject.
func (m unitsMix) pod(w *gangWorld, c pick, priority int32) *v1.Pod {
	w.serial++
	p := simulated.Pod(fmt.Sprint("p", w.serial), priority, int64(c("asks cores", 4)))
	if at := c("start", 6); at > 0 {
		simulated.Started(p, int64(at))
	}
	if app := []string{"", "a", "b"}[c("app", 3)]; app != "" {
		p.Labels = map[string]string{"app": app}
	}
	if m.plain {
		return p
	}
	about := &metav1.LabelSelector{MatchLabels: map[string]string{"app": []string{"a", "b"}[c("about", 2)]}}
	key := []string{"zone", v1.LabelHostname}[c("key", 2)]
	terms := []v1.PodAffinityTerm{{LabelSelector: about, TopologyKey: key}}
	switch c("special", 10) {
	case 0:
		p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: int32(80 + c("port", 2))}}
	case 1:
		p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: about}}
	case 2:
		p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
	case 3:
		p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: terms}}
	case 4:
		p.Spec.NodeSelector = map[string]string{"zone": "z0"}
	case 5:
		p.Spec.Containers[0].Resources.Requests[v1.ResourceMemory] = apiresource.MustParse("6Gi")
	}
	return p
}

// wish makes a preemptor.
func (m unitsMix) wish(w *gangWorld, c pick) wish {
	ask := wish{power: int32(1 + c("power", 4))}
	if m.onePod {
		ask.pods = []*v1.Pod{m.pod(w, c, ask.power)}
		return ask
	}
	ask.pods = times(1+c("members", 4), of("boss", m.pod(w, c, ask.power)))
	if c.oneIn(3, "two kinds") {
		ask.pods = append(ask.pods, times(1+c("more members", 2), of("boss", m.pod(w, c, ask.power)))...)
	}
	ask.quorum = max(1, len(ask.pods)-[]int{0, 0, 0, 1}[c("extras", 4)])
	if m.topology {
		ask.topology = []cluster.GangTopology{{Key: "zone", Required: !c.oneIn(5, "preferred")}}
		if c.oneIn(6, "bound") {
			ask.bound = []cluster.NodeIdx{0}
		}
	}
	return ask
}

// TestUnitsProperties holds the search, with capacity and bounds, against its plain form and, in small cases,
// against the exact solver, and each answer against the rules.
func TestUnitsProperties(t *testing.T) {
	for name, m := range unitsMixes {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				unitsHold(t, m, func(what string, n int) int { return rapid.IntRange(0, n-1).Draw(t, what) }, map[string]int{})
			})
		})
	}
}

// TestUnitsThousands does the same with even choices, under which more preemptors have somebody to evict.
func TestUnitsThousands(t *testing.T) {
	all := 0
	defer func() {
		if all == 0 {
			t.Error("no search was tired before it had proved its victims needed")
		}
	}()
	for name, m := range unitsMixes {
		t.Run(name, func(t *testing.T) {
			seen := map[string]int{}
			evenly(t, m, 0, thousands(), seen)
			t.Log(seen)
			all += seen["unproved"]
			for _, what := range []string{"evict", "nobody", "less than plain"} {
				if seen[what] == 0 {
					t.Errorf("no case of %q: %v", what, seen)
				}
			}
		})
	}
}

// evenly makes cases with even choices, each from its own seed.
func evenly(t fataler, m unitsMix, from, to int, seen map[string]int) {
	for seed := from; seed < to; seed++ {
		even := rand.New(rand.NewPCG(uint64(seed), 7))
		unitsHold(seeded{t, seed}, m, func(_ string, n int) int { return even.IntN(n) }, seen)
	}
}

// thousands is how many cases there are of each mix.
func thousands() int {
	if testing.Short() {
		return 100
	}
	return 500
}

// fataler is what a property fails.
type fataler interface {
	Fatalf(format string, args ...any)
}

// seeded fails a test with the seed of the case.
type seeded struct {
	t    fataler
	seed int
}

func (s seeded) Fatalf(format string, args ...any) {
	s.t.Fatalf("seed %d: %s", s.seed, fmt.Sprintf(format, args...))
}

func unitsHold(t fataler, m unitsMix, c pick, seen map[string]int) {
	w := m.settle(c)
	ask := m.wish(w, c)
	var f units.Finder
	fast, asked := w.units(&f, ask, func(q *units.Question) { q.Limit = 1 << 20 })
	if !asked {
		return
	}
	slow, _ := w.units(&f, ask, func(q *units.Question) { q.Reference = true })
	var g units.Finder
	g.PlacesFirst()
	places, _ := w.units(&g, ask, func(q *units.Question) { q.Limit = 1 << 20 })
	hasty, _ := w.units(&f, ask, func(q *units.Question) { q.Limit = 1 })
	if places.Verdict != fast.Verdict || slow.Verdict == preempt.Evict && hasty.Verdict != fast.Verdict {
		t.Fatalf("%s, but places first: %s, with few dry runs: %s", toldUnits(fast), toldUnits(places), toldUnits(hasty))
	}
	var tired units.Finder
	tired.Tire(1)
	if a, _ := w.units(&tired, ask, func(q *units.Question) { q.Limit = 1 }); a.Unproved > 0 {
		seen["unproved"]++
	} else if why := w.unlawful(ask, a); why != "" {
		t.Fatalf("tired: %s: %s", toldUnits(a), why)
	}
	for _, a := range []units.Answer{fast, slow, places, hasty} {
		if why := w.unlawful(ask, a); why != "" {
			t.Fatalf("%s: %s", toldUnits(a), why)
		}
	}
	found := fast.Verdict == preempt.Evict
	switch {
	case slow.Verdict == preempt.Evict && !found:
		t.Fatalf("plain: %s, but: %s", toldUnits(slow), fast.Message)
	case slow.Verdict == preempt.Evict && fast.Loss.Compare(slow.Loss) > 0:
		t.Fatalf("plain: %s %+v, but: %s %+v", toldUnits(slow), slow.Loss, toldUnits(fast), fast.Loss)
	case slow.Verdict == preempt.NotEligible != (fast.Verdict == preempt.NotEligible):
		t.Fatalf("plain: %s, but: %s", toldUnits(slow), toldUnits(fast))
	}
	if found {
		seen["evict"]++
	} else {
		seen["nobody"]++
	}
	if found && fast.Loss != slow.Loss {
		seen["less than plain"]++
	}
	if len(w.parties(ask)) > fewParties {
		return
	}
	least, any := w.minimum(ask)
	for i, a := range []units.Answer{fast, places, hasty} {
		if a.Verdict == preempt.Evict && (!any || a.Minimum && a.Loss != least || !a.Minimum && i < 2) {
			t.Fatalf("%d: %s costs %+v (minimum: %v), the least is %+v (%v)", i, toldUnits(a), a.Loss, a.Minimum, least, any)
		}
	}
	if any && !found && fast.Verdict != preempt.NotEligible {
		t.Fatalf("%s, but there is room for a loss of %+v", fast.Message, least)
	}
}

// fewParties is up to how many units the exact solver is asked.
const fewParties = 7

// unlawful tells which rule an answer breaks, empty for none.
func (w *gangWorld) unlawful(ask wish, a units.Answer) string {
	if a.Verdict != preempt.Evict {
		return ""
	}
	var gone []party
	s := w.Store.Snapshot()
	for _, v := range a.Victims {
		if len(v.Pods) == 0 || v.Priority >= ask.power {
			return fmt.Sprintf("R4: priority %d for one of %d, %d pods", v.Priority, ask.power, len(v.Pods))
		}
		gone = append(gone, party{v.Pods, v.Priority})
		for _, p := range v.Pods {
			key, in := s.HeldGang(p.UID)
			switch {
			case p.Terminating:
				return "A9: " + p.Name + " is going already"
			case w.never[p.Name] != "":
				return "R16: " + p.Name + " may not go"
			case in && !ask.isOwn(key):
				if key != v.Gang && !w.byPods[key.Name] {
					return "R5: " + p.Name + " goes without its gang"
				}
			case in:
				return "H23: " + p.Name + " is of the preemptor's own gang"
			}
			if w.protection(p) != v.Priority {
				return "A3: " + p.Name + " is protected otherwise"
			}
		}
		if v.Gang != (cluster.GangKey{}) {
			for _, other := range s.GangMembers(v.Gang) {
				if !other.Pod.Terminating && !slices.Contains(v.Pods, other.Pod) {
					return "R5: " + other.Pod.Name + " stays without its gang"
				}
			}
		}
	}
	if a.Loss != w.lossOf(gone) {
		return fmt.Sprintf("A11: the loss is %+v, it says %+v", w.lossOf(gone), a.Loss)
	}
	if !w.roomWithout(ask, gone) {
		return "R6: there is no room with them gone"
	}
	for i := range gone {
		if w.roomWithout(ask, slices.Concat(gone[:i], gone[i+1:])) {
			return "R7: " + gone[i].pods[0].Name + " need not go"
		}
	}
	return ""
}

// isOwn reports whether a gang is the preemptor.
func (ask wish) isOwn(key cluster.GangKey) bool {
	return key.Name == ask.pods[0].Annotations["pod_group"]
}

// listed is all that can be read of the pods in the store.
func (w *gangWorld) listed() string {
	var b strings.Builder
	s := w.Store.Snapshot()
	for n := range cluster.NodeIdx(s.Rows()) {
		var ports []string
		for _, port := range s.Ports(n) {
			ports = append(ports, fmt.Sprint(port))
		}
		slices.Sort(ports) // their order is not specified
		fmt.Fprint(&b, s.NodeName(n), ports)
		s.EachPod(n, func(p *cluster.Pod, assumed bool) { fmt.Fprint(&b, " ", p.Name, assumed) })
		for id := range s.Names().Len() {
			fmt.Fprint(&b, " ", s.Requested(resource.ID(id)).At(n))
		}
		b.WriteByte('\n')
	}
	return b.String()
}
