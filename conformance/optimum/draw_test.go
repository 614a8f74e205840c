// SPDX-License-Identifier: Apache-2.0

package optimum

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/conformance/gen"
	"github.com/kumiki-scheduler/kumiki/sim/bound"
)

// scene is one cluster with the pods that wait, for the schedulers and for the solver.
type scene struct {
	nodes  []*v1.Node
	pods   []*v1.Pod
	gangs  bool // workloads may be gangs
	groups []*schedulingv1beta1.PodGroup
	small  bound.Small
}

const (
	mostPods = 25
	zones    = 3
)

// draw draws a cluster of 2 to 6 nodes, and workloads whose sum is about what the nodes have.
func draw(r *gen.Rand) *scene {
	w := &scene{gangs: r.Chance(50)}
	total := int64(0)
	for i := range r.Range(2, 6) {
		cpu, memory := int64(r.Range(4, 12)), int64(r.Range(4, 12))
		name := fmt.Sprint("node-", i)
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: map[string]string{
			v1.LabelHostname: name, v1.LabelTopologyZone: fmt.Sprint("zone-", i%zones)}}}
		if r.Rare(4) {
			n.Spec.Taints = []v1.Taint{{Key: "reserved", Effect: v1.TaintEffectNoSchedule}}
		}
		n.Status.Allocatable = amounts(cpu, memory)
		n.Status.Allocatable[v1.ResourcePods] = apiresource.MustParse("110")
		w.nodes = append(w.nodes, n)
		w.small.Free = append(w.small.Free, []int64{cpu, memory})
		w.small.Domains = append(w.small.Domains, i%zones)
		total += cpu
	}
	load := total * int64(r.Range(80, 130)) / 100
	for k := 1; load > 0 && len(w.pods) < mostPods; k++ {
		load -= w.workload(r, k)
	}
	return w
}

// workload adds a workload, and returns the CPUs that it requests.
func (w *scene) workload(r *gen.Rand, number int) int64 {
	size := min(r.Range(1, 6), mostPods-len(w.pods))
	cpu, memory, priority := int64(r.Range(1, 5)), int64(r.Range(1, 5)), int32(r.Range(0, 2))
	name := fmt.Sprint("w", number)
	never := v1.PreemptNever
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Labels: map[string]string{"app": name}}}
	pod.Spec.SchedulerName, pod.Spec.Priority, pod.Spec.PreemptionPolicy = v1.DefaultSchedulerName, &priority, &never
	pod.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
		Requests: amounts(cpu, memory)}}}
	small := bound.SmallPod{Need: []int64{cpu, memory}, Priority: priority}
	if r.Rare(3) {
		pod.Spec.Tolerations = []v1.Toleration{{Key: "reserved", Operator: v1.TolerationOpExists}}
	} else {
		for _, n := range w.nodes {
			small.Allowed = append(small.Allowed, len(n.Spec.Taints) == 0)
		}
	}
	switch r.Intn(4) {
	case 0:
		small.Spread, small.MaxSkew = number, r.Range(1, 2)
		pod.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: int32(small.MaxSkew),
			TopologyKey: v1.LabelTopologyZone, WhenUnsatisfiable: v1.DoNotSchedule,
			LabelSelector: &metav1.LabelSelector{MatchLabels: pod.Labels}}}
	case 1:
		if w.gangs && size > 1 {
			small.Gang = number
			g := &schedulingv1beta1.PodGroup{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name,
				UID: types.UID("group-" + name)}}
			g.Spec.Priority = &priority
			g.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: int32(size)}
			w.groups = append(w.groups, g)
			pod.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &g.Name}
		}
	}
	for range size {
		p := pod.DeepCopy()
		p.Name = fmt.Sprint("p", len(w.pods))
		p.UID = types.UID(p.Name)
		p.CreationTimestamp = metav1.Unix(int64(1000+len(w.pods)), 0)
		w.pods = append(w.pods, p)
		w.small.Pods = append(w.small.Pods, small)
	}
	return cpu * int64(size)
}

func amounts(cpu, gib int64) v1.ResourceList {
	return v1.ResourceList{v1.ResourceCPU: *apiresource.NewQuantity(cpu, apiresource.DecimalSI),
		v1.ResourceMemory: *apiresource.NewQuantity(gib<<30, apiresource.BinarySI)}
}

// count returns the pods that have a node, by priority, and whether the rules were kept.
func (w *scene) count(nodes map[string]string) []int {
	placed := make([]int, len(w.pods))
	for i, p := range w.pods {
		placed[i] = -1
		for n := range w.nodes {
			if w.nodes[n].Name == nodes[p.Name] {
				placed[i] = n
			}
		}
	}
	return w.small.Count(placed)
}

// String prints the scene for a report.
func (w *scene) String() string {
	var b strings.Builder
	for i, n := range w.nodes {
		fmt.Fprintf(&b, "node %d zone %d free %v taints %v\n", i, w.small.Domains[i], w.small.Free[i], n.Spec.Taints)
	}
	for i := range w.pods {
		fmt.Fprintf(&b, "pod %d %+v\n", i, w.small.Pods[i])
	}
	return b.String()
}
