// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/conformance/gen"
	"github.com/kumiki-scheduler/kumiki/conformance/outcome"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// The figures in these tests are worked out by hand from the documented formulas,
// so that a mistake in how the oracle drives upstream cannot hide as agreement.

func node(name, cpu, memory string) *v1.Node {
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}},
		Status: v1.NodeStatus{Allocatable: v1.ResourceList{
			v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory), v1.ResourcePods: resource.MustParse("110"),
		}},
	}
}

func pod(name, cpu, memory string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)},
		Spec: v1.PodSpec{SchedulerName: SchedulerName, Containers: []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse(memory)},
		}}}},
	}
}

func decide(t *testing.T, s *scenario.Scenario, p *v1.Pod) *outcome.Outcome {
	t.Helper()
	if s.Profile.Plugins == nil {
		s.Profile.Plugins = gen.DefaultPlugins()
	}
	o := New()
	t.Cleanup(o.Close)
	c, err := o.Cluster(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c.Decide(p)
}

// Of two nodes of equal size, one half full, the empty one wins: LeastAllocated
// gives (100-25 + 100-25)/2 = 75 against 25, the other plugins do not care.
func TestLeastAllocatedPrefersTheEmptyNode(t *testing.T) {
	full := pod("full", "2", "4Gi")
	full.Spec.NodeName = "b"
	s := &scenario.Scenario{Nodes: []*v1.Node{node("a", "4", "8Gi"), node("b", "4", "8Gi")}, Bound: []*v1.Pod{full}}
	got := decide(t, s, pod("new", "1", "2Gi"))
	if !slices.Equal(got.Best, []int{0}) {
		t.Errorf("best nodes %v, want [0]", got.Best)
	}
	want := map[string][]int64{ // plugin -> raw score per node
		"NodeResourcesFit": {75, 25}, "NodeResourcesBalancedAllocation": {75, 75}, "TaintToleration": {0, 0}, "ImageLocality": {0, 0},
		"DynamicResources": {0, 0}, "VolumeBinding": {0, 0},
	}
	for _, ps := range got.Scores {
		if w, ok := want[ps.Plugin]; !ok || !slices.Equal(ps.Raw, w) {
			t.Errorf("raw scores of %s are %v, want %v", ps.Plugin, ps.Raw, w)
		}
		delete(want, ps.Plugin)
	}
	if len(want) != 0 {
		t.Errorf("plugins that did not score: %v", want)
	}
	// No taints: 100 each, times weight 3.
	if !slices.Equal(got.Total, []int64{75 + 75 + 300, 25 + 75 + 300}) {
		t.Errorf("totals %v", got.Total)
	}
}

// Each node rejects for another reason; the message counts and sorts them.
func TestEveryRejectionIsAttributed(t *testing.T) {
	tainted, cordoned, small, other := node("a", "4", "8Gi"), node("b", "4", "8Gi"), node("c", "500m", "8Gi"), node("d", "4", "8Gi")
	tainted.Spec.Taints = []v1.Taint{{Key: "gpu", Effect: v1.TaintEffectNoSchedule}}
	cordoned.Spec.Unschedulable = true
	for _, n := range []*v1.Node{tainted, cordoned, small} {
		n.Labels["disk"] = "ssd"
	}
	p := pod("new", "1", "1Gi")
	p.Spec.NodeSelector = map[string]string{"disk": "ssd"}
	got := decide(t, &scenario.Scenario{Nodes: []*v1.Node{tainted, cordoned, small, other}}, p)
	want := []outcome.Verdict{
		{Code: outcome.Unresolvable, Plugin: "TaintToleration", Reasons: []string{"node(s) had untolerated taint(s)"}},
		{Code: outcome.Unresolvable, Plugin: "NodeUnschedulable", Reasons: []string{"node(s) were unschedulable"}},
		{Code: outcome.Unresolvable, Plugin: "NodeResourcesFit", Reasons: []string{"Insufficient cpu"}},
		{Code: outcome.Unresolvable, Plugin: "NodeAffinity", Reasons: []string{"node(s) didn't match Pod's node affinity/selector"}},
	}
	if fmt.Sprint(got.Nodes) != fmt.Sprint(want) {
		t.Errorf("verdicts\n%v, want\n%v", got.Nodes, want)
	}
	const message = "0/4 nodes are available: 1 Insufficient cpu, 1 node(s) didn't match Pod's node affinity/selector, " +
		"1 node(s) had untolerated taint(s), 1 node(s) were unschedulable."
	if got.Message != message {
		t.Errorf("message %q", got.Message)
	}
	if !slices.Equal(got.Rejectors, []string{"NodeAffinity", "NodeResourcesFit", "NodeUnschedulable", "TaintToleration"}) {
		t.Errorf("rejectors %v", got.Rejectors)
	}
}

// A full node is Unschedulable, since an eviction would help; a node that is too
// small is not.
func TestFullAndSmallNodesDiffer(t *testing.T) {
	full := pod("full", "4", "1Gi")
	full.Spec.NodeName = "a"
	got := decide(t, &scenario.Scenario{Nodes: []*v1.Node{node("a", "4", "8Gi"), node("b", "1", "8Gi")}, Bound: []*v1.Pod{full}}, pod("new", "2", "1Gi"))
	if got.Nodes[0].Code != outcome.Unschedulable || got.Nodes[1].Code != outcome.Unresolvable {
		t.Errorf("verdicts %v", got.Nodes)
	}
}

// A term on the node's name narrows the search before any filter runs.
func TestPinnedPodLeavesTheOtherNodesOut(t *testing.T) {
	p := pod("new", "1", "1Gi")
	p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{
		NodeSelectorTerms: []v1.NodeSelectorTerm{{MatchFields: []v1.NodeSelectorRequirement{{Key: "metadata.name", Operator: v1.NodeSelectorOpIn, Values: []string{"b"}}}}},
	}}}
	s := &scenario.Scenario{Nodes: []*v1.Node{node("a", "4", "8Gi"), node("b", "4", "8Gi")}}
	got := decide(t, s, p)
	if !slices.Equal(got.Feasible, []int{1}) || got.Nodes[0].Plugin != "" || got.Scores != nil {
		t.Errorf("outcome %+v", got)
	}
	p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].MatchFields[0].Values = []string{"gone"}
	if got := decide(t, s, p); got.Message != "0/2 nodes are available: 2 node(s) didn't satisfy plugin(s) [NodeAffinity]." {
		t.Errorf("message %q", got.Message)
	}
}

// Gates keep the pod out of the queue before anything else is looked at.
func TestGatedPodIsNotEvaluated(t *testing.T) {
	p := pod("new", "1", "1Gi")
	p.Spec.SchedulingGates = []v1.PodSchedulingGate{{Name: "example.com/hold"}}
	got := decide(t, &scenario.Scenario{Nodes: []*v1.Node{node("a", "4", "8Gi")}}, p)
	if got.Gate == nil || got.Gate.Plugin != "SchedulingGates" || got.Nodes != nil {
		t.Errorf("outcome %+v", got)
	}
}

// A pod with a nomination of higher priority counts as placed (the first of two
// passes); one of lower priority does not.
func TestNominatedPodHoldsItsRoom(t *testing.T) {
	promised := pod("promised", "3", "1Gi")
	promised.Status.NominatedNodeName = "a"
	for _, c := range []struct {
		priority int32
		want     []int
	}{{10, []int{1}}, {-10, []int{0, 1}}} {
		promised.Spec.Priority = &c.priority
		s := &scenario.Scenario{Nodes: []*v1.Node{node("a", "4", "8Gi"), node("b", "4", "8Gi")}, Nominated: []*v1.Pod{promised}}
		if got := decide(t, s, pod("new", "2", "1Gi")); !slices.Equal(got.Feasible, c.want) {
			t.Errorf("priority %d: feasible %v, want %v", c.priority, got.Feasible, c.want)
		}
	}
}

// The same seed gives the same questions and upstream the same answers.
func TestGeneratorAndOracleAreDeterministic(t *testing.T) {
	o := New()
	defer o.Close()
	answers := func() string {
		s := gen.Make(7, 3, gen.DefaultSizes)
		c, err := o.Cluster(s)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		var out string
		for _, a := range s.Asks {
			text, err := json.Marshal(c.Decide(a.Pod))
			if err != nil {
				t.Fatal(err)
			}
			out += string(text) + "\n"
		}
		return out
	}
	if a, b := answers(), answers(); a != b {
		t.Errorf("two runs differ:\n%s\n%s", a, b)
	}
}
