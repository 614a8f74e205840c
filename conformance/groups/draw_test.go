// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/conformance/gen"
)

// ownPriority is the priority of the group that preempts and of its pods: upstream tries no group in which they differ.
const ownPriority = 5

// scene is one cluster and the pod group that finds no place.
type scene struct {
	nodes   []*v1.Node
	bound   []*v1.Pod
	groups  []*schedulingv1beta1.PodGroup // of victims
	budget  *policyv1.PodDisruptionBudget // nil for none
	own     *schedulingv1beta1.PodGroup
	members []*v1.Pod // of own that wait

	r     *gen.Rand
	alike bool // the members request the same
	// topology: the group has a topology constraint. protected: a pod of a DaemonSet or of another scheduler is bound.
	topology, protected bool
	serial              int
}

func draw(r *gen.Rand) *scene {
	w := &scene{r: r, alike: r.Chance(60), topology: r.Chance(15)}
	for i := range r.Range(1, 5) {
		w.nodes = append(w.nodes, w.node(i))
	}
	for i := range r.Range(0, 3) {
		w.groups = append(w.groups, w.group(fmt.Sprint("g", i), int32(r.Range(0, 6))))
	}
	w.own = w.group("own", ownPriority)
	w.own.Spec.DisruptionMode = nil
	held := 0
	for _, n := range w.nodes {
		left := n.Status.Allocatable.Cpu().Value()
		for range r.Range(0, 5) {
			p := w.newPod("b", int64(r.Range(1, 2)))
			if p.Spec.Containers[0].Resources.Requests.Cpu().Value() > left {
				continue
			}
			left -= p.Spec.Containers[0].Resources.Requests.Cpu().Value()
			p.Spec.NodeName = n.Name
			p.Status.StartTime = &metav1.Time{Time: metav1.Unix(int64(w.serial), 0).Time}
			if held += w.join(p, held); r.Rare(25) && p.Spec.SchedulingGroup == nil {
				w.protect(p)
			}
			w.bound = append(w.bound, p)
		}
	}
	if r.Chance(40) {
		w.budget = &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "budget", Namespace: "default"}}
		w.budget.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
		w.budget.Status.DisruptionsAllowed = int32(r.Range(0, 2))
	}
	w.drawMembers(held)
	return w
}

// join makes a bound pod a member of a group, or of none. It returns 1 for the group that preempts.
func (w *scene) join(p *v1.Pod, held int) int {
	switch {
	case held < 2 && w.r.Rare(12):
		*p.Spec.Priority = ownPriority
		setGroup(p, w.own)
		return 1
	case len(w.groups) > 0 && w.r.Chance(50):
		setGroup(p, gen.Pick(w.r, w.groups...))
		*p.Spec.Priority = int32(w.r.Range(0, 6))
	}
	return 0
}

// protect makes a bound pod one that kumiki does not evict for a gang (rule R16).
func (w *scene) protect(p *v1.Pod) {
	w.protected = true
	if w.r.Chance(50) {
		p.Spec.SchedulerName = "other"
		return
	}
	yes := true
	p.OwnerReferences = []metav1.OwnerReference{
		{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "d", Controller: &yes}}
}

func (w *scene) drawMembers(held int) {
	r, size := w.r, int64(w.r.Range(1, 3))
	least := r.Range(1, 4)
	if gang := w.own.Spec.SchedulingPolicy.Gang; gang != nil {
		gang.MinCount = int32(least + held)
	}
	if w.topology {
		w.own.Spec.SchedulingConstraints = &schedulingv1beta1.PodGroupSchedulingConstraints{
			Topology: []schedulingv1beta1.TopologyConstraint{{Key: "rack"}}}
	}
	never := r.Rare(12)
	for range least + max(0, r.Range(-2, 2)) {
		if !w.alike {
			size = int64(r.Range(1, 3))
		}
		p := w.newPod("m", size)
		*p.Spec.Priority = ownPriority
		setGroup(p, w.own)
		if never {
			policy := v1.PreemptNever
			p.Spec.PreemptionPolicy = &policy
		}
		w.members = append(w.members, p)
	}
	if r.Rare(30) {
		*w.members[0].Spec.Priority = ownPriority - 1
	}
}

func setGroup(p *v1.Pod, g *schedulingv1beta1.PodGroup) {
	p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &g.Name}
}

func (w *scene) node(i int) *v1.Node {
	name := fmt.Sprintf("node-%d", i)
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name),
		Labels: map[string]string{v1.LabelHostname: name, "rack": gen.Pick(w.r, "a", "b")}}}
	n.Status.Allocatable = v1.ResourceList{
		v1.ResourceCPU:    *apiresource.NewQuantity(int64(w.r.Range(1, 5)), apiresource.DecimalSI),
		v1.ResourceMemory: apiresource.MustParse("64Gi"), v1.ResourcePods: apiresource.MustParse("110"),
	}
	return n
}

func (w *scene) group(name string, priority int32) *schedulingv1beta1.PodGroup {
	g := &schedulingv1beta1.PodGroup{}
	g.Namespace, g.Name, g.UID = "default", name, types.UID("group-"+name)
	g.Spec.Priority = &priority
	if w.r.Rare(4) {
		g.Spec.SchedulingPolicy.Basic = &schedulingv1beta1.BasicSchedulingPolicy{}
	} else {
		g.Spec.SchedulingPolicy.Gang = &schedulingv1beta1.GangSchedulingPolicy{MinCount: 1}
	}
	switch w.r.Intn(3) {
	case 0:
		g.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{Single: &schedulingv1beta1.SingleDisruptionMode{}}
	case 1:
		g.Spec.DisruptionMode = &schedulingv1beta1.DisruptionMode{All: &schedulingv1beta1.AllDisruptionMode{}}
	}
	return g
}

// apart reports whether the members are placed one by one: a topology constraint keeps a basic group together.
func (w *scene) apart() bool { return w.own.Spec.SchedulingPolicy.Basic != nil && !w.topology }

// groupOf returns the group of a pod, nil for none.
func (w *scene) groupOf(p *v1.Pod) *schedulingv1beta1.PodGroup {
	if p.Spec.SchedulingGroup == nil {
		return nil
	}
	for _, g := range append(w.groups, w.own) {
		if g.Name == *p.Spec.SchedulingGroup.PodGroupName {
			return g
		}
	}
	panic("no group " + *p.Spec.SchedulingGroup.PodGroupName)
}

func (w *scene) newPod(prefix string, cpu int64) *v1.Pod {
	w.serial++
	name := fmt.Sprintf("%s%d", prefix, w.serial)
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name),
		CreationTimestamp: metav1.Unix(int64(w.serial), 0), Labels: map[string]string{"app": gen.Pick(w.r, "a", "b")}}}
	p.Spec.SchedulerName = v1.DefaultSchedulerName
	priority := int32(w.r.Range(0, 4))
	p.Spec.Priority = &priority
	p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
		v1.ResourceCPU: *apiresource.NewQuantity(cpu, apiresource.DecimalSI)}}}}
	return p
}

// String prints the scene for a report of a difference.
func (w *scene) String() string {
	var b strings.Builder
	for _, n := range w.nodes {
		fmt.Fprintf(&b, "node %s cpu %v %v\n", n.Name, n.Status.Allocatable.Cpu(), n.Labels["rack"])
	}
	for _, g := range append(w.groups, w.own) {
		s := g.Spec
		fmt.Fprintf(&b, "group %s priority %d basic %v gang %v mode %v topology %v\n", g.Name, *s.Priority,
			s.SchedulingPolicy.Basic != nil, s.SchedulingPolicy.Gang, s.DisruptionMode, s.SchedulingConstraints != nil)
	}
	for _, p := range append(w.bound, w.members...) {
		group := ""
		if g := w.groupOf(p); g != nil {
			group = g.Name
		}
		fmt.Fprintf(&b, "pod %s on %q cpu %v priority %d group %q start %v app %s never %v of %s daemon %v\n", p.Name,
			p.Spec.NodeName, p.Spec.Containers[0].Resources.Requests.Cpu(), *p.Spec.Priority, group, p.Status.StartTime,
			p.Labels["app"], p.Spec.PreemptionPolicy != nil, p.Spec.SchedulerName, len(p.OwnerReferences) > 0)
	}
	if w.budget != nil {
		fmt.Fprintf(&b, "budget of app a allows %d\n", w.budget.Status.DisruptionsAllowed)
	}
	return b.String()
}
