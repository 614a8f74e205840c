// SPDX-License-Identifier: Apache-2.0

package defrag

import (
	"errors"
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/sim"
)

// kumiki is the production engine with the default profile.
func kumiki() sim.Stepper {
	p := engine.DefaultProfile(v1.DefaultSchedulerName)
	p.Preemption = &preempt.Config{}
	return engine.New(engine.Config{
		Profiles: []engine.Profile{p}, Less: basic.PrioritySort{}, InitialBackoff: record.Second,
		MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second,
	})
}

// stage is a cluster that becomes a Problem.
type stage struct {
	in *convert.Intake
	p  Problem
}

func newStage(unit string, size, count int) *stage {
	s := &stage{in: convert.NewIntake()}
	s.in.DeclareGangs(convert.GangRules{Annotation: true})
	s.p = Problem{At: 1000 * record.Second, Size: size, Count: count, MaxMoves: 20, Make: kumiki}
	s.p.Unit = s.in.Pod(s.object("unit", "", unit))
	return s
}

func (s *stage) object(name, on, cpu string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)}}
	p.Spec.NodeName, p.Spec.SchedulerName = on, v1.DefaultSchedulerName
	p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: apiresource.MustParse(cpu)}}}}
	return p
}

func (s *stage) node(name, cpu string, change ...func(*v1.Node)) {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}}}
	n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: apiresource.MustParse(cpu), v1.ResourcePods: apiresource.MustParse("20")}
	for _, c := range change {
		c(n)
	}
	s.p.Nodes = append(s.p.Nodes, s.in.Node(n))
}

// pod adds a running pod of a ReplicaSet.
func (s *stage) pod(name, on, cpu string, change ...func(*v1.Pod)) {
	p := s.object(name, on, cpu)
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "r", Controller: &yes}}
	for _, c := range change {
		c(p)
	}
	s.p.Pods = append(s.p.Pods, s.in.Pod(p))
}

func moves(p Plan) (out string) {
	for _, m := range p.Moves {
		out += fmt.Sprintf("%s:%s>%s ", m.Pod.Name, m.From, m.To)
	}
	return out
}

// TestMovesOnePod: two nodes of 4 are half full; moving one pod empties one for a pod of 4.
func TestMovesOnePod(t *testing.T) {
	s := newStage("4", 1, 0)
	s.node("a", "4")
	s.node("b", "4")
	s.pod("x", "a", "2")
	s.pod("y", "b", "2")
	p, err := s.p.Find()
	if err != nil || p.Now != 0 || p.After != 1 || len(p.Moves) != 1 || !p.Proved() || p.Movable != 2 {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestGangNeedsSeveralMoves: four nodes with a pod each have to become three empty ones, so that a gang of three fits:
// three pods go to the fourth node.
func TestGangNeedsSeveralMoves(t *testing.T) {
	s := newStage("4", 3, 1)
	for _, n := range []string{"a", "b", "c", "d"} {
		s.node(n, "4")
	}
	s.pod("p", "a", "1")
	s.pod("q", "b", "1")
	s.pod("r", "c", "1")
	s.pod("s", "d", "1")
	p, err := s.p.Find()
	if err != nil || p.Now != 0 || p.After != 1 || len(p.Moves) != 3 || !p.Proved() {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestFixedPodsStay: pods without a controller, of a node, of a gang, terminating ones and those with a budget are not
// moved, and are counted by reason.
func TestFixedPodsStay(t *testing.T) {
	for reason, change := range map[string]func(*v1.Pod){ // order: each by itself
		"has no controller":   func(p *v1.Pod) { p.OwnerReferences = nil },
		"belongs to its node": func(p *v1.Pod) { p.OwnerReferences[0].Kind = "DaemonSet" },
		"is in a gang": func(p *v1.Pod) {
			p.Annotations = map[string]string{"pod_group": "g", "pod_group_size": "2"}
		},
		"terminates":        func(p *v1.Pod) { p.DeletionTimestamp = &metav1.Time{} },
		"disruption budget": func(p *v1.Pod) { p.Labels = map[string]string{"app": "guarded"} },
	} {
		s := newStage("4", 1, 0)
		s.p.Objects = []cluster.Object{&policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "b", Namespace: "default"},
			Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "guarded"}}}}}
		s.node("a", "4")
		s.node("b", "4")
		s.pod("x", "a", "2", change)
		s.pod("y", "b", "2", change)
		p, err := s.p.Find()
		if !errors.Is(err, ErrNoPlan) || p.Fixed[reason] != 2 || p.Movable != 0 {
			t.Errorf("%s: %+v, %v", reason, p, err)
		}
	}
}

// TestTargetsAreTheSchedulers: a pod goes only where its selector, the taints and other pods allow it; what only the
// simulation shows excludes the move.
func TestTargetsAreTheSchedulers(t *testing.T) {
	s := newStage("4", 1, 1)
	s.node("a", "4")
	s.node("tainted", "4", func(n *v1.Node) {
		n.Spec.Taints = []v1.Taint{{Key: "k", Effect: v1.TaintEffectNoSchedule}}
	})
	s.node("full", "4", func(n *v1.Node) { n.Labels["disk"] = "ssd" })
	s.node("beside", "2", func(n *v1.Node) { n.Labels["disk"] = "ssd" })
	s.node("last", "3", func(n *v1.Node) { n.Labels["disk"] = "ssd" })
	apart := func(p *v1.Pod) {
		p.Labels = map[string]string{"app": "apart"}
		p.Spec.NodeSelector = map[string]string{"disk": "ssd"}
		p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "apart"}}, TopologyKey: v1.LabelHostname}}}}
	}
	s.pod("x", "a", "1", func(p *v1.Pod) { p.OwnerReferences = nil })
	s.pod("y", "full", "1", apart)
	s.pod("z", "beside", "1", apart)
	p, err := s.p.Find()
	if err != nil || moves(p) != "y:full>last " || len(p.Refused) != 1 || p.Refused[0].To != "beside" {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestNoPlan: if nothing helps, the plan says how far it got.
func TestNoPlan(t *testing.T) {
	s := newStage("4", 1, 2)
	s.node("a", "4")
	s.node("b", "4")
	s.pod("x", "a", "2")
	s.pod("y", "b", "2")
	p, err := s.p.Find()
	if !errors.Is(err, ErrNoPlan) || p.Now != 0 || p.Goal != 2 || p.Moves != nil {
		t.Errorf("%+v, %v", p, err)
	}
}

// TestPlansOnRandomClusters: a plan is valid by its own arithmetic, its number of moves is at least the bound, and on
// small clusters it is the least of an exhaustive search without any bound.
func TestPlansOnRandomClusters(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newStage("4", rapid.IntRange(1, 2).Draw(t, "size"), 0)
		nodes := rapid.IntRange(2, 4).Draw(t, "nodes")
		free := make([]int, nodes)
		for i := range nodes {
			c := rapid.IntRange(3, 6).Draw(t, "cpu")
			free[i] = c
			s.node(fmt.Sprint("n", i), fmt.Sprint(c))
		}
		var at, need []int
		for i := range rapid.IntRange(0, 6).Draw(t, "pods") {
			n, cpu := rapid.IntRange(0, nodes-1).Draw(t, "on"), rapid.IntRange(1, 3).Draw(t, "needs")
			if cpu > free[n] {
				continue
			}
			free[n] -= cpu
			at, need = append(at, n), append(need, cpu)
			s.pod(fmt.Sprint("p", i), fmt.Sprint("n", n), fmt.Sprint(cpu))
		}
		s.p.MaxMoves = 4
		p, err := s.p.Find()
		least := -1
		for k := 0; k <= 4 && least < 0; k++ {
			if reach(free, at, need, p.Goal*s.p.Size, k) {
				least = k
			}
		}
		switch {
		case err != nil && !errors.Is(err, ErrNoPlan):
			t.Fatal(err)
		case err != nil && least >= 0:
			t.Fatalf("%v, but %d moves reach %d gangs", err, least, p.Goal)
		case err == nil && (len(p.Moves) != least || p.AtLeast != least || p.After < p.Goal):
			t.Fatalf("%+v, and the least is %d", p, least)
		}
	})
}

// reach reports whether at most left moves make so many nodes hold a pod of 4 more, by trying everything.
func reach(free, at, need []int, slots, left int) bool {
	have := 0
	for _, f := range free {
		have += f / 4
	}
	if have >= slots {
		return true
	}
	if left == 0 {
		return false
	}
	for i := range at {
		for to := range free {
			from := at[i]
			if to == from || free[to] < need[i] {
				continue
			}
			free[from], free[to], at[i] = free[from]+need[i], free[to]-need[i], to
			found := reach(free, at, need, slots, left-1)
			free[from], free[to], at[i] = free[from]-need[i], free[to]+need[i], from
			if found {
				return true
			}
		}
	}
	return false
}
