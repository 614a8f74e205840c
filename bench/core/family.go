// SPDX-License-Identifier: Apache-2.0

package core

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// zones is how many zones the nodes are in, in turn; one node in tainted has a taint that no pod tolerates.
const (
	zones   = 3
	tainted = 10
)

// Family is a kind of workload of upstream's scheduler_perf, as pods.
type Family struct {
	Name string
	// Templates is how many take turns.
	Templates int
	// oneZone says that the pods have to be in one zone together.
	oneZone bool
	// shape gives a pod of template k its rules; nil for none.
	shape func(p *v1.Pod, k int)
}

// Families are all families, plain pods first.
func Families() []Family {
	const zone, host = v1.LabelTopologyZone, v1.LabelHostname
	mixed := []func(*v1.Pod, int){
		func(*v1.Pod, int) {}, spreadBy(zone, v1.DoNotSchedule), spreadBy(host, v1.ScheduleAnyway),
		near(zone, required), near(host, preferred),
	}
	return []Family{
		{Name: "basic", Templates: 1},
		{Name: "20 templates", Templates: 20, shape: size},
		{Name: "1000 templates", Templates: 1000, shape: size},
		{Name: "spread by zone", Templates: 1, shape: spreadBy(zone, v1.DoNotSchedule)},
		{Name: "spread by host", Templates: 1, shape: spreadBy(host, v1.DoNotSchedule)},
		{Name: "preferred spread by zone", Templates: 1, shape: spreadBy(zone, v1.ScheduleAnyway)},
		{Name: "preferred spread by host", Templates: 1, shape: spreadBy(host, v1.ScheduleAnyway)},
		{Name: "affinity by zone", Templates: 1, oneZone: true, shape: near(zone, required)},
		{Name: "anti-affinity by host", Templates: 1, shape: near(host, apart)},
		{Name: "anti-affinity by host, all namespaces", Templates: 1, shape: anywhere(host, apart)},
		{Name: "preferred affinity by host", Templates: 1, shape: near(host, preferred)},
		{Name: "preferred affinity by zone, all namespaces", Templates: 1, shape: anywhere(zone, preferred)},
		{Name: "preferred anti-affinity by host", Templates: 1, shape: near(host, preferApart)},
		{Name: "mixed", Templates: len(mixed), shape: func(p *v1.Pod, k int) { mixed[k](p, k) }},
	}
}

// Node returns node number i: 64 cores, 256 GiB, at most 1,000 pods.
func Node(i int) *v1.Node {
	name := nodeName(i)
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{
		v1.LabelTopologyZone: fmt.Sprint("z", i%zones), v1.LabelHostname: name}}}
	if i%tainted == 0 {
		n.Spec.Taints = []v1.Taint{{Key: "dedicated", Value: "x", Effect: v1.TaintEffectNoSchedule}}
	}
	n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("64"), v1.ResourceMemory: apiresource.MustParse("256Gi"),
		v1.ResourcePods: apiresource.MustParse("1000")}
	n.Status.Capacity = n.Status.Allocatable
	return n
}

// Pod is pod number i, of the default scheduler, pending.
func (f *Family) Pod(i int) *v1.Pod {
	k := i % f.Templates
	name := fmt.Sprint("pod-", i)
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name), Labels: map[string]string{"app": app(k)}}}
	p.Spec.SchedulerName = v1.DefaultSchedulerName
	p.Spec.Containers = []v1.Container{{Name: "c", Image: "pause", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
		v1.ResourceCPU: apiresource.MustParse("100m"), v1.ResourceMemory: apiresource.MustParse("500Mi")}}}}
	if f.shape != nil {
		f.shape(p, k)
	}
	return p
}

// Bound is pod number i on a node that has no taint, in one of nodes nodes. As few as possible share a node.
func (f *Family) Bound(i, nodes int) *v1.Pod {
	p := f.Pod(i)
	p.Spec.NodeName = nodeName(f.nodeOfBound(i, nodes))
	return p
}

// nodeOfBound returns the number of the node of bound pod i. If the number of nodes is not a multiple of the period
// of taints and zones, the last, incomplete period is left out.
func (f *Family) nodeOfBound(i, nodes int) int {
	const round = zones * tainted // taints and zones repeat
	var free []int
	for n := range min(round, nodes) {
		if n%tainted != 0 && (!f.oneZone || n%zones == 0) {
			free = append(free, n)
		}
	}
	if len(free) == 0 {
		panic(fmt.Sprintf("bench/core: %d nodes leave no capacity for bound pods", nodes))
	}
	rounds := max(nodes/round, 1)
	i %= rounds * len(free)
	return i/len(free)*round + free[i%len(free)]
}

func nodeName(i int) string { return fmt.Sprintf("node-%06d", i) }

func app(k int) string { return fmt.Sprint("app-", k) }

// size makes templates differ in what they ask for.
func size(p *v1.Pod, k int) {
	p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = *apiresource.NewMilliQuantity(int64(100+k), apiresource.DecimalSI)
}

func spreadBy(key string, how v1.UnsatisfiableConstraintAction) func(*v1.Pod, int) {
	return func(p *v1.Pod, k int) {
		p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 5, TopologyKey: key, WhenUnsatisfiable: how,
			LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app(k)}}}}
	}
}

// near is a term about pods of the same template, in the same namespace; anywhere is one about those of all namespaces.
func near(key string, how func(v1.PodAffinityTerm) *v1.Affinity) func(*v1.Pod, int) {
	return func(p *v1.Pod, k int) { p.Spec.Affinity = how(term(key, k)) }
}

func anywhere(key string, how func(v1.PodAffinityTerm) *v1.Affinity) func(*v1.Pod, int) {
	return func(p *v1.Pod, k int) {
		t := term(key, k)
		t.NamespaceSelector = &metav1.LabelSelector{}
		p.Spec.Affinity = how(t)
	}
}

func term(key string, k int) v1.PodAffinityTerm {
	return v1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app(k)}}, TopologyKey: key}
}

func required(t v1.PodAffinityTerm) *v1.Affinity {
	return &v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{t}}}
}

func apart(t v1.PodAffinityTerm) *v1.Affinity {
	return &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{t}}}
}

func preferred(t v1.PodAffinityTerm) *v1.Affinity {
	return &v1.Affinity{PodAffinity: &v1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: weighted(t)}}
}

func preferApart(t v1.PodAffinityTerm) *v1.Affinity {
	return &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: weighted(t)}}
}

func weighted(t v1.PodAffinityTerm) []v1.WeightedPodAffinityTerm {
	return []v1.WeightedPodAffinityTerm{{Weight: 10, PodAffinityTerm: t}}
}
