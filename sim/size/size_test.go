// SPDX-License-Identifier: Apache-2.0

package size

import (
	"fmt"
	"strings"
	"testing"

	v1 "k8s.io/api/core/v1"
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

var intake = convert.NewIntake()

func node(name, cpu, memory string) *cluster.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name}}}
	n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: apiresource.MustParse(cpu),
		v1.ResourceMemory: apiresource.MustParse(memory), v1.ResourcePods: apiresource.MustParse("20")}
	return intake.Node(n)
}

// pods returns pods that request cpu, numbered from first.
func pods(first int, on string, priority int32, cpu ...string) (list []*cluster.Pod) {
	for i, c := range cpu {
		name := fmt.Sprintf("p%d", first+i)
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)}}
		p.Spec.NodeName, p.Spec.SchedulerName, p.Spec.Priority = on, v1.DefaultSchedulerName, &priority
		p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: apiresource.MustParse(c)}}}}
		list = append(list, intake.Pod(p))
	}
	return list
}

func repeat(n int, cpu string) (list []string) {
	for range n {
		list = append(list, cpu)
	}
	return list
}

func find(t *testing.T, p Problem) Answer {
	t.Helper()
	p.At, p.Make = 1000*record.Second, kumiki
	a, err := p.Find()
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestCountsNodes: cases of which the optimum is known.
func TestCountsNodes(t *testing.T) {
	four := node("n", "4", "8Gi")
	for _, c := range []struct {
		name string
		p    Problem
		want int
		says string
	}{
		{"the sum decides", Problem{Shape: four, Pods: pods(0, "", 0, repeat(10, "1")...)}, 3, "sum of the requests: cpu 10"},
		{"large pods do not share", Problem{Shape: four, Pods: pods(0, "", 0, repeat(6, "2500m")...)}, 6, "more than half"},
		{"by their number", Problem{Shape: four, Pods: pods(0, "", 0, repeat(50, "10m")...)}, 3, "pods 50"},
		{"a daemon on each node", Problem{Shape: four, Pods: pods(0, "", 0, repeat(6, "1")...),
			Daemons: pods(90, "n", 0, "1")}, 2, "a node has 3"},
		{"what is there has capacity", Problem{Shape: four, Nodes: []*cluster.Node{node("old", "8", "8Gi")},
			Bound: pods(90, "old", 0, "5"), Pods: pods(0, "", 0, repeat(7, "1")...)}, 1, "sum"},
		{"nothing is needed", Problem{Shape: four, Nodes: []*cluster.Node{node("old", "8", "8Gi")},
			Pods: pods(0, "", 0, repeat(3, "1")...)}, 0, "may hold all"},
		{"running pods are not evicted", Problem{Shape: four, Nodes: []*cluster.Node{node("old", "4", "8Gi")},
			Bound: pods(90, "old", 0, "4"), Pods: pods(0, "", 100, "4")}, 1, "sum"},
	} {
		a := find(t, c.p)
		if a.Fewest != c.want || a.AtLeast != c.want || !a.Exact() || !strings.Contains(a.Reason, c.says) {
			t.Errorf("%s: %+v, want %d because of %q", c.name, a, c.want, c.says)
		}
	}
}

// TestRunningPodsStay: a pod of high priority would fit by evicting one of two running pods. That does not count.
func TestRunningPodsStay(t *testing.T) {
	four := node("n", "4", "8Gi")
	a := find(t, Problem{Shape: four, Nodes: []*cluster.Node{node("old1", "4", "8Gi"), node("old2", "4", "8Gi")},
		Bound: append(pods(90, "old1", 0, "2"), pods(91, "old2", 0, "2")...), Pods: pods(0, "", 100, "4"), Most: 3})
	if a.AtLeast != 0 || a.Fewest != 1 || a.Exact() {
		t.Errorf("%+v", a)
	}
}

// TestOrdersDiffer: as given, small pods spread over all nodes before the large ones come; the largest first need fewer.
func TestOrdersDiffer(t *testing.T) {
	list := append(repeat(6, "1"), repeat(3, "3")...)
	a := find(t, Problem{Shape: node("n", "4", "8Gi"), Pods: pods(0, "", 0, list...), Seeds: []uint64{1, 2}})
	if a.AtLeast != 4 || a.Fewest != 4 || a.Orders[0].Name != "largest first" {
		t.Errorf("%+v", a)
	}
}

// TestNoNumberSuffices: a pod that no node of the shape holds, and too few nodes, are errors with the pod.
func TestNoNumberSuffices(t *testing.T) {
	p := Problem{At: 1000 * record.Second, Shape: node("n", "4", "8Gi"), Pods: pods(0, "", 0, "1", "5"), Make: kumiki}
	if _, err := p.Find(); err == nil || !strings.Contains(err.Error(), "pod default/p1 requests cpu 5, and a node as n has 4") {
		t.Errorf("too large: %v", err)
	}
	p.Pods, p.Most = pods(0, "", 0, repeat(9, "3")...), 5
	if a, err := p.Find(); err != nil || a.Fewest != 9 { // the bound is above what was asked for
		t.Errorf("%+v, %v", a, err)
	}
	p.Nodes = []*cluster.Node{node("old", "1", "1Gi")} // the bound does not see that it holds none
	if _, err := p.Find(); err == nil || !strings.Contains(err.Error(), "8 nodes do not hold all pods in any order") {
		t.Errorf("too few nodes: %v", err)
	}
	p.Nodes = nil
	selected := pods(0, "", 0, "1")
	spec := *selected[0].Spec
	spec.NodeName, spec.Alike, spec.WithoutRequests = "elsewhere", nil, nil
	selected[0].Spec = intake.Share(&spec)
	p = Problem{At: 1000 * record.Second, Shape: node("n", "4", "8Gi"), Pods: selected, Make: kumiki}
	if _, err := p.Find(); err == nil || !strings.Contains(err.Error(), "pod default/p0 has none") {
		t.Errorf("fits nowhere: %v", err)
	}
}

// TestBoundIsBelowOptimum: on random pods, the bound is at most the optimum of an exhaustive search, and what the
// scheduler needs at least that.
func TestBoundIsBelowOptimum(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(1, 10), 1, 7).Draw(t, "cpu")
		var cpu []string
		for _, s := range sizes {
			cpu = append(cpu, fmt.Sprint(s))
		}
		var p Problem
		p.At, p.Make, p.Shape, p.Pods = 1000*record.Second, kumiki, node("n", "10", "8Gi"), pods(0, "", 0, cpu...)
		present := rapid.SliceOfN(rapid.IntRange(1, 25), 0, 2).Draw(t, "present")
		var bins []int
		for i, c := range present {
			p.Nodes = append(p.Nodes, node(fmt.Sprintf("old%d", i), fmt.Sprint(c), "8Gi"))
			bins = append(bins, c)
		}
		optimum := 0
		for !pack(sizes, append(append([]int(nil), bins...), repeatInt(optimum, 10)...)) {
			optimum++
		}
		a, err := p.Find()
		if err != nil {
			t.Fatal(err)
		}
		if a.AtLeast > optimum || a.Fewest < optimum {
			t.Fatalf("%+v, and the optimum is %d", a, optimum)
		}
	})
}

func repeatInt(n, v int) (list []int) {
	for range n {
		list = append(list, v)
	}
	return list
}

// pack reports whether sizes fit into bins, by trying everything.
func pack(sizes, bins []int) bool {
	if len(sizes) == 0 {
		return true
	}
	for i := range bins {
		if bins[i] < sizes[0] {
			continue
		}
		bins[i] -= sizes[0]
		fits := pack(sizes[1:], bins)
		bins[i] += sizes[0]
		if fits {
			return true
		}
	}
	return false
}
