// SPDX-License-Identifier: Apache-2.0

package preempt_test

import (
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins"
	"github.com/kumiki-scheduler/kumiki/core/plugins/resources"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
)

// world is a cluster, with a search for nodes and one for victims that are kept from question to question.
type world struct {
	store  *cluster.Store
	intake *cluster.Intake
	placer *place.Placer
	finder preempt.Finder
	noms   promised
	serial int
}

// promised: node name -> pods nominated there.
type promised map[string][]*cluster.Pod

func (p promised) NominatedOn(node string) []*cluster.Pod { return p[node] }

func (p promised) NominatedNodes() (nodes []string) {
	for name := range p {
		nodes = append(nodes, name)
	}
	slices.Sort(nodes)
	return nodes
}

type noMeter struct{}

func (noMeter) Plugin(plugin.Point, string) {}

func newWorld() *world {
	w := &world{store: cluster.NewStore(), intake: cluster.NewIntake(), noms: promised{}}
	w.placer = place.New(filters(), noMeter{}, place.DefaultClassBytes)
	return w
}

// slots makes each node take one pod, whatever it asks for.
func (w *world) slots() {
	prof := filters()
	for i, f := range prof.Filters {
		if f.Name() == resources.NodeResourcesFitName {
			prof.Filters[i] = resources.NodeSlots{}
		}
	}
	w.placer = place.New(prof, noMeter{}, place.DefaultClassBytes)
}

func filters() place.Profile {
	var prof place.Profile
	for _, enabled := range plugins.DefaultProfile() {
		reg, _ := plugins.Lookup(enabled.Name)
		pl, err := reg.New(nil)
		if err != nil {
			panic(err)
		}
		if f, ok := pl.(plugin.Filter); ok {
			prof.Filters = append(prof.Filters, f)
		}
	}
	return prof
}

func (w *world) change(f func()) {
	w.store.Begin()
	f()
	w.store.Commit()
}

// node sets a node of so many cores and pods in a zone.
func (w *world) node(name string, cores, pods int64, zone string) {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"zone": zone, v1.LabelHostname: name}}}
	n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: *apiresource.NewQuantity(cores, apiresource.DecimalSI),
		v1.ResourceMemory: *apiresource.NewQuantity(16<<30, apiresource.BinarySI), v1.ResourcePods: *apiresource.NewQuantity(pods, apiresource.DecimalSI)}
	w.change(func() { w.store.SetNode(w.intake.Node(n)) })
}

// bare is a pod that asks for cores.
func bare(name string, priority int32, cores int64) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)}}
	p.Spec.Priority = &priority
	p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
		v1.ResourceCPU: *apiresource.NewQuantity(cores, apiresource.DecimalSI)}}}}
	return p
}

// started is when a pod began, in seconds.
func started(p *v1.Pod, at int64) *v1.Pod {
	p.Status.StartTime = &metav1.Time{Time: metav1.Unix(at, 0).Time}
	return p
}

// on binds a pod.
func (w *world) on(node string, p *v1.Pod) {
	p.Spec.NodeName = node
	w.change(func() { w.store.SetPod(w.intake.Pod(p)) })
}

func (w *world) budget(name string, allowed int32, labels map[string]string) {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"}}
	b.Spec.Selector = &metav1.LabelSelector{MatchLabels: labels}
	b.Status.DisruptionsAllowed = allowed
	w.change(func() { w.store.SetObject(b) })
}

// ask searches for a node, and where there is none for victims; ok is false where there is one.
func (w *world) ask(f *preempt.Finder, pod *v1.Pod, more func(*preempt.Question)) (a preempt.Answer, ok bool) {
	p, s := w.intake.Pod(pod), w.store.Snapshot()
	out := w.placer.Place(s, p, w.noms, func(int) int { return 0 })
	if out.Node != cluster.NoNode || out.Err != nil {
		return a, false
	}
	q := preempt.Question{Pod: p, Nominated: p.Nominated, Relief: w.placer.Relief(s, out), Draw: func(int) int { return 0 }}
	if more != nil {
		more(&q)
	}
	return f.Find(s, q), true
}

// told is an answer in words.
func (w *world) told(a preempt.Answer) string {
	if a.Verdict != preempt.Evict {
		return a.Message
	}
	return w.named(a.Best)
}

func (w *world) named(c preempt.Candidate) string {
	var names []string
	for _, p := range c.Victims {
		names = append(names, p.Name)
	}
	return fmt.Sprint(w.store.Snapshot().NodeName(c.Node), " ", names, " ", c.Loss.Violations)
}

// drawPod draws a pod with whatever makes filters reject.
func (w *world) drawPod(t *rapid.T, plain bool) *v1.Pod {
	w.serial++
	p := bare(fmt.Sprint("p", w.serial), int32(rapid.IntRange(0, 3).Draw(t, "priority")), int64(rapid.IntRange(0, 3).Draw(t, "cores")))
	if at := rapid.IntRange(0, 6).Draw(t, "start"); at > 0 {
		started(p, int64(at))
	}
	if app := rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "app"); app != "" {
		p.Labels = map[string]string{"app": app}
	}
	if plain {
		return p
	}
	about := &metav1.LabelSelector{MatchLabels: map[string]string{"app": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "about")}}
	key := rapid.SampledFrom([]string{"zone", v1.LabelHostname}).Draw(t, "key")
	switch rapid.IntRange(0, 11).Draw(t, "special") {
	case 0:
		p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: int32(80 + rapid.IntRange(0, 1).Draw(t, "port"))}}
	case 1:
		p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: key, WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: about}}
	case 2:
		p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
			{LabelSelector: about, TopologyKey: key}}}}
	case 3:
		p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
			{LabelSelector: about, TopologyKey: key}}}}
	case 4:
		p.Spec.NodeSelector = map[string]string{"zone": rapid.SampledFrom([]string{"z0", "z9"}).Draw(t, "selected")}
	case 5:
		p.Spec.Containers[0].Resources.Requests["example.com/gpu"] = apiresource.MustParse("1")
	case 6:
		p.Spec.Containers[0].Resources.Requests[v1.ResourceMemory] = apiresource.MustParse("6Gi")
	}
	return p
}

// stir makes one thing happen to the cluster.
func (w *world) stir(t *rapid.T, plain bool) {
	name := fmt.Sprint("n", rapid.IntRange(0, 5).Draw(t, "node"))
	switch rapid.SampledFrom([]string{"node", "pod", "pod", "pod", "pod", "gone", "start", "budget", "nominate", "going"}).Draw(t, "what") {
	case "node":
		w.node(name, int64(rapid.IntRange(1, 6).Draw(t, "cores")), int64(rapid.IntRange(2, 6).Draw(t, "pods")), fmt.Sprint("z", rapid.IntRange(0, 2).Draw(t, "zone")))
	case "pod":
		w.on(name, w.drawPod(t, plain))
	case "gone":
		if p := w.anyPod(t); p != nil {
			w.change(func() { w.store.DeletePod(p.UID) })
		}
	case "start", "going":
		if p := w.anyPod(t); p != nil {
			q := *p
			q.Start = 1e9 * 60
			w.change(func() { w.store.SetPod(&q) })
		}
	case "budget":
		w.budget(fmt.Sprint("b", rapid.IntRange(0, 1).Draw(t, "which")), int32(rapid.IntRange(0, 2).Draw(t, "allowed")),
			map[string]string{"app": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "app")})
	case "nominate":
		if rapid.Bool().Draw(t, "off") {
			delete(w.noms, name)
		} else {
			w.noms[name] = []*cluster.Pod{w.intake.Pod(w.drawPod(t, plain))}
		}
	}
}

func (w *world) anyPod(t *rapid.T) *cluster.Pod {
	var pods []*cluster.Pod
	s := w.store.Snapshot()
	for n := range cluster.NodeIdx(s.Rows()) {
		s.EachPod(n, func(p *cluster.Pod, _ bool) { pods = append(pods, p) })
	}
	if len(pods) == 0 {
		return nil
	}
	return pods[rapid.IntRange(0, len(pods)-1).Draw(t, "which pod")]
}
