// SPDX-License-Identifier: Apache-2.0

package preempt

import (
	"fmt"
	"strings"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/conformance/gen"
)

// scene is one cluster and the pod that finds no node.
type scene struct {
	nodes     []*v1.Node
	bound     []*v1.Pod
	nominated []*v1.Pod
	budgets   []*policyv1.PodDisruptionBudget
	pod       *v1.Pod

	r      *gen.Rand
	simple bool // amounts alone matter
	alike  bool // few priorities and starts, so that losses are equal
	serial int
	ports  map[string]bool // node and port -> taken: upstream's books keep a port that is taken twice once
}

func draw(r *gen.Rand) *scene {
	w := &scene{r: r, simple: r.Chance(30), alike: r.Chance(30), ports: map[string]bool{}}
	for i := range r.Range(1, 7) {
		w.nodes = append(w.nodes, w.node(i))
	}
	unborn := r.Chance(20)
	for _, n := range w.nodes {
		for range r.Range(0, 6) {
			p := w.newPod("b", n.Name)
			p.Spec.NodeName = n.Name
			// A pod that has not started counts from the moment at which upstream lists it as a victim.
			if !r.Rare(12) && !(unborn && r.Chance(70)) {
				p.Status.StartTime = &metav1.Time{Time: metav1.Unix(int64(r.Range(1, 9)), 0).Time}
				if w.alike {
					p.Status.StartTime.Time = metav1.Unix(5, 0).Time
				}
			}
			w.end(p)
			w.bound = append(w.bound, p)
		}
	}
	for range r.Range(-3, 3) {
		p := w.newPod("n", "")
		p.Status.NominatedNodeName = gen.Pick(r, w.nodes...).Name
		w.nominated = append(w.nominated, p)
	}
	for i := range r.Range(0, 3) {
		w.budgets = append(w.budgets, w.budget(i))
	}
	w.pod = w.newPod("preemptor", "")
	w.fatten()
	return w
}

// fatten makes the pod so large that few nodes have capacity for it.
func (w *scene) fatten() {
	r := w.r
	*w.pod.Spec.Priority = int32(gen.Pick(r, r.Range(0, 6), 5, 1000))
	w.pod.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = *apiresource.NewMilliQuantity(int64(r.Range(1, 8))*500, apiresource.DecimalSI)
	if r.Rare(10) {
		never := v1.PreemptNever
		w.pod.Spec.PreemptionPolicy = &never
	}
	if r.Rare(4) {
		w.pod.Status.NominatedNodeName = gen.Pick(r, w.nodes...).Name
	} else if r.Rare(20) {
		w.pod.Status.NominatedNodeName = "gone"
	}
}

func (w *scene) node(i int) *v1.Node {
	r := w.r
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%d", i), Labels: map[string]string{
		v1.LabelHostname: fmt.Sprintf("node-%d", i), v1.LabelTopologyZone: gen.Pick(r, "a", "b", "c")}}}
	n.Status.Allocatable = v1.ResourceList{
		v1.ResourceCPU:    *apiresource.NewMilliQuantity(int64(r.Range(1, 9))*500, apiresource.DecimalSI),
		v1.ResourceMemory: *apiresource.NewQuantity(int64(r.Range(4, 16))<<28, apiresource.BinarySI),
		v1.ResourcePods:   *apiresource.NewQuantity(int64(r.Range(3, 8)), apiresource.DecimalSI),
	}
	if r.Rare(4) {
		n.Status.Allocatable["example.com/gpu"] = *apiresource.NewQuantity(int64(r.Range(0, 3)), apiresource.DecimalSI)
	}
	if w.simple {
		return n
	}
	switch r.Intn(14) {
	case 0:
		n.Spec.Unschedulable = true
	case 1:
		n.Spec.Taints = []v1.Taint{{Key: "only", Value: "x", Effect: v1.TaintEffectNoSchedule}}
	case 2:
		delete(n.Labels, v1.LabelTopologyZone)
	}
	return n
}

// newPod draws a pod; on is the node whose ports it may take.
func (w *scene) newPod(prefix, on string) *v1.Pod {
	r := w.r
	w.serial++
	name := fmt.Sprintf("%s%d", prefix, w.serial)
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: gen.Pick(r, "default", "default", "other"), UID: types.UID(name)}}
	p.Spec.SchedulerName = "default-scheduler"
	priority := gen.Pick[int32](r, -10, -10, 0, 0, 1, 1, 2, 3, 4, 100)
	if w.alike {
		priority = gen.Pick[int32](r, 0, 0, 0, 1)
	}
	p.Spec.Priority = &priority
	requests := v1.ResourceList{}
	if !r.Rare(8) {
		requests[v1.ResourceCPU] = *apiresource.NewMilliQuantity(int64(r.Range(0, 4))*500, apiresource.DecimalSI)
	}
	if r.Rare(2) {
		requests[v1.ResourceMemory] = *apiresource.NewQuantity(int64(r.Range(1, 6))<<28, apiresource.BinarySI)
	}
	if r.Rare(10) {
		requests["example.com/gpu"] = *apiresource.NewQuantity(1, apiresource.DecimalSI)
	}
	p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: requests}}}
	if !r.Rare(3) {
		p.Labels = map[string]string{"app": gen.Pick(r, "a", "b", "c")}
		if r.Rare(4) {
			p.Labels["tier"] = "web"
		}
	}
	if !w.simple {
		w.wants(p, on)
	}
	return p
}

// wants gives a pod something besides amounts that filters look at.
func (w *scene) wants(p *v1.Pod, on string) {
	r := w.r
	term := v1.PodAffinityTerm{TopologyKey: gen.Pick(r, v1.LabelHostname, v1.LabelTopologyZone), LabelSelector: w.selector()}
	switch r.Intn(16) {
	case 0, 1:
		port := int32(r.Range(80, 82))
		if key := fmt.Sprint(on, port); on == "" || !w.ports[key] {
			w.ports[key] = true
			p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: port, ContainerPort: port, Protocol: v1.ProtocolTCP}}
		}
	case 2, 3:
		p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term}}}
	case 4:
		p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{term}}}
	case 5, 6:
		p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: int32(r.Range(1, 2)), TopologyKey: term.TopologyKey,
			WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: term.LabelSelector}}
	case 7:
		p.Spec.NodeSelector = map[string]string{v1.LabelTopologyZone: gen.Pick(r, "a", "b")}
	case 8:
		p.Spec.Tolerations = []v1.Toleration{{Key: "only", Operator: v1.TolerationOpExists}}
	case 9:
		p.Spec.Volumes = []v1.Volume{{Name: "d", VolumeSource: v1.VolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{
			PDName: gen.Pick(r, "d1", "d2"), ReadOnly: r.Rare(3)}}}}
	}
}

func (w *scene) selector() *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{"app": gen.Pick(w.r, "a", "b", "c")}}
}

// end makes some pods go, for one reason or another.
func (w *scene) end(p *v1.Pod) {
	if !w.r.Rare(12) {
		return
	}
	p.DeletionTimestamp = &metav1.Time{Time: metav1.Unix(100, 0).Time}
	switch w.r.Intn(4) {
	case 0, 1:
		p.Status.Conditions = []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler}}
	case 2:
		p.Status.Conditions = []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: "DeletionByTaintManager"}}
	}
}

func (w *scene) budget(i int) *policyv1.PodDisruptionBudget {
	r := w.r
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("budget-", i), Namespace: gen.Pick(r, "default", "default", "other")}}
	switch r.Intn(12) {
	case 0: // no selector
	case 1:
		b.Spec.Selector = &metav1.LabelSelector{}
	case 2:
		b.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app", Operator: "Resembles"}}}
	case 3:
		b.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: metav1.LabelSelectorOpDoesNotExist}}}
	default:
		b.Spec.Selector = w.selector()
	}
	b.Status.DisruptionsAllowed = int32(max(0, r.Range(-1, 2)))
	if r.Rare(3) && len(w.bound) > 0 {
		b.Status.DisruptedPods = map[string]metav1.Time{gen.Pick(r, w.bound...).Name: {}}
	}
	return b
}

// String prints the scene for a report of a difference.
func (w *scene) String() string {
	var b strings.Builder
	for _, n := range w.nodes {
		fmt.Fprintf(&b, "node %s %v %v %v %v\n", n.Name, n.Status.Allocatable, n.Labels, n.Spec.Taints, n.Spec.Unschedulable)
	}
	for _, list := range [][]*v1.Pod{w.bound, w.nominated, {w.pod}} {
		for _, p := range list {
			fmt.Fprintf(&b, "pod %s/%s on %q nominated %q priority %d start %v going %v labels %v requests %v ports %v affinity %v spread %v select %v disks %v\n",
				p.Namespace, p.Name, p.Spec.NodeName, p.Status.NominatedNodeName, *p.Spec.Priority, p.Status.StartTime, p.DeletionTimestamp != nil,
				p.Labels, p.Spec.Containers[0].Resources.Requests, p.Spec.Containers[0].Ports, p.Spec.Affinity, p.Spec.TopologySpreadConstraints,
				p.Spec.NodeSelector, p.Spec.Volumes)
		}
	}
	for _, o := range w.budgets {
		fmt.Fprintf(&b, "budget %s/%s %v allowed %d granted %v\n", o.Namespace, o.Name, o.Spec.Selector, o.Status.DisruptionsAllowed, o.Status.DisruptedPods)
	}
	return b.String()
}
