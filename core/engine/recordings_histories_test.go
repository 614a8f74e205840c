// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"errors"
	"fmt"
	"hash/fnv"
	"slices"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/place"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
)

// extender is foreign code that rejects nodes, scores them and chooses victims by a hash of the question and of the
// number of questions before it.
type extender struct {
	setup foreignSetup
	asked int
}

func (x *extender) hash(words ...string) int {
	h := fnv.New32a()
	fmt.Fprint(h, x.asked/4, words)
	return int(h.Sum32() >> 4)
}

func (x *extender) Takes(*cluster.Pod) bool    { return x.setup.Takes }
func (x *extender) Preempts(*cluster.Pod) bool { return x.setup.Preempts }
func (x *extender) Binder(*cluster.Pod) string { return x.setup.Binder }

func (x *extender) Filter(p *cluster.Pod, nodes []string) (map[string]place.ForeignRejection, error) {
	x.asked++
	if x.hash(p.Name)%13 == 0 {
		return nil, errors.New("no answer")
	}
	rejected := map[string]place.ForeignRejection{}
	for _, node := range nodes {
		if h := x.hash(p.Name, node); h%4 == 0 {
			rejected[node] = place.ForeignRejection{By: "extender", Reason: "not there", Unresolvable: h%8 == 0}
		}
	}
	return rejected, nil
}

func (x *extender) Score(p *cluster.Pod, nodes []string) []place.ForeignScore {
	x.asked++
	scores := place.ForeignScore{By: "extender"}
	for _, node := range nodes {
		scores.Added = append(scores.Added, int64(x.hash(p.Name, node)%300))
	}
	return []place.ForeignScore{scores}
}

func (x *extender) Preempt(p *cluster.Pod, of []place.ForeignVictims, _ func(string) ([]record.PodRef, bool)) ([]place.ForeignVictims, error) {
	x.asked++
	if x.hash(p.Name)%7 == 0 {
		return nil, errors.New("no answer")
	}
	return slices.DeleteFunc(slices.Clone(of), func(v place.ForeignVictims) bool { return x.hash(p.Name, v.Node)%3 == 0 }), nil
}

// extended is a world whose profile has an extender.
type extended struct {
	*world
	setup foreignSetup
}

func (w *extended) fresh() *engine.Engine {
	p := locked()
	p.Foreign = &extender{setup: w.setup}
	return engine.New(engine.Config{
		Seed: 7, Profiles: []engine.Profile{p}, Less: basic.PrioritySort{},
		InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: noFlush,
	})
}

// extenderHistory is a history of gangs and single pods with an extender.
func extenderHistory(t *rapid.T) {
	w := newWorld(t)
	w.stage.world = &extended{w, foreignSetup{Takes: true, Binder: rapid.SampledFrom([]string{"", "", "http://extender"}).Draw(t, "binder")}}
	w.restart()
	w.gangsCome(t)
	w.settle()
	w.checkReplay()
}

// extendedArena is an arena whose profile has an extender that takes part in preemption.
type extendedArena struct {
	*arena
	takes bool
}

func (a extendedArena) fresh() *engine.Engine {
	p := locked()
	p.Preemption, p.Foreign = &a.how, &extender{setup: foreignSetup{Takes: a.takes, Preempts: true}}
	return engine.New(engine.Config{
		Seed: 1, Profiles: []engine.Profile{p}, Less: basic.PrioritySort{},
		InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: noFlush,
	})
}

// extenderEviction is a history of evictions with an extender that takes part in preemption.
func extenderEviction(t *rapid.T) {
	a := newArena(t, preempt.Config{Sync: rapid.IntRange(0, 4).Draw(t, "sync") == 0})
	a.stage.world = extendedArena{a, a.how.Sync}
	a.start()
	for range rapid.IntRange(20, 80).Draw(t, "moves") {
		a.do(rapid.SampledFrom([]string{"pod", "pod", "watch", "watch", "watch", "watch", "cycle", "cycle", "cycle", "bind", "bind", "answer", "answer",
			"work", "work", "end", "tick", "tick", "delete", "node", "restart"}).Draw(t, "move"))
	}
	a.settle()
	a.checkReplay()
}

// extenderGangEviction is a history of evictions of and for gangs with an extender that takes part in preemption.
func extenderGangEviction(t *rapid.T) {
	a := newGangArena(t, preempt.Config{Sync: rapid.IntRange(0, 4).Draw(t, "sync") == 0}, 1_000_000*record.Second)
	a.stage.world = extendedArena{a, false}
	a.start()
	for range rapid.IntRange(20, 80).Draw(t, "moves") {
		if rapid.IntRange(0, 5).Draw(t, "gang") == 0 {
			a.anyGang()
			continue
		}
		a.do(rapid.SampledFrom([]string{"pod", "watch", "watch", "watch", "watch", "watch", "cycle", "cycle", "cycle", "bind", "bind", "bind", "answer", "answer",
			"work", "work", "end", "tick", "delete", "node", "restart"}).Draw(t, "move"))
	}
	a.settle()
	a.checkReplay()
}

// restarts is a history with a restart of the scheduler every twelve moves.
func restarts(t *rapid.T) {
	w := newWorld(t)
	w.gangs = &gangWorld{sizes: map[string]int{}, whole: map[string]bool{}}
	w.setNode("n0")
	w.setNode("n1")
	for i := range rapid.IntRange(20, 60).Draw(t, "moves") {
		switch {
		case i%12 == 11:
			w.do("restart")
		case i%6 == 0:
			w.createGang()
		default:
			w.happen()
		}
	}
	w.settle()
	w.checkRest()
	w.checkReplay()
}

// largeCluster simulates a cluster of some hundred nodes in zones. Pods of many kinds are placed, evict each other
// and end. Each effect is carried out at once.
type largeCluster struct {
	t      *rapid.T
	engine *engine.Engine
	intake *convert.Intake
	now    record.Time
	pods   map[string]*v1.Pod // UID -> its newest version
	made   int
}

// largeClusterHistory is a history of a large cluster, under one of the search strategies.
func largeClusterHistory(t *rapid.T) {
	p := engine.DefaultProfile("default-scheduler")
	p.Preemption = &preempt.Config{VictimTimeout: 300 * record.Second}
	p.Search = rapid.SampledFrom([]place.Search{{}, {}, {}, {Strategy: place.FixedWindow}, {Strategy: place.FixedWindow, Percentage: 60},
		{Strategy: place.RandomSubset, Subset: 20}, {Strategy: place.PowerOfTwo}}).Draw(t, "search")
	classBytes := rapid.SampledFrom([]int{0, 0, 1, 1 << 16}).Draw(t, "class bytes")
	w := &largeCluster{t: t, intake: convert.NewIntake(), now: 1000 * record.Second, pods: map[string]*v1.Pod{}, engine: engine.New(engine.Config{
		Seed: 7, Profiles: []engine.Profile{p}, Less: basic.PrioritySort{}, ClassBytes: classBytes,
		InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second,
	})}
	w.send(engine.Tick{Now: w.now})
	nodes := rapid.IntRange(70, 300).Draw(t, "nodes")
	for i := range nodes {
		w.setNode(i)
	}
	w.send(engine.Synced{})
	for range 12 {
		for range rapid.IntRange(5, 30).Draw(t, "pods") {
			w.create()
		}
		for n := 0; w.engine.Ready() && n < 100; n++ {
			w.send(engine.Cycle{})
		}
		for range rapid.IntRange(0, 5).Draw(t, "ends") {
			w.end()
		}
		if rapid.Bool().Draw(t, "node changes") {
			w.setNode(rapid.IntRange(0, nodes-1).Draw(t, "node"))
		}
		w.now += rapid.SampledFrom([]record.Time{1, 5, 30}).Draw(t, "seconds") * record.Second
		w.send(engine.Tick{Now: w.now})
	}
}

// send gives the engine an event and carries out the effects.
func (w *largeCluster) send(ev engine.Event) {
	for _, f := range slices.Clone(recordedStep(w.engine, ev)) {
		switch f := f.(type) {
		case engine.Bind:
			p := w.pods[f.Pod.UID]
			if p == nil {
				w.send(engine.BindDone{Pod: f.Pod, Node: f.Node, Outcome: engine.PodVanished})
				continue
			}
			p.Spec.NodeName, p.Status.StartTime = f.Node, &metav1.Time{Time: metav1.Unix(int64(w.now/record.Second), 0).Time}
			w.send(engine.BindDone{Pod: f.Pod, Node: f.Node, Outcome: engine.Bound})
			w.send(engine.PodSet{Pod: w.intake.Pod(p.DeepCopy())})
		case engine.Evict:
			for _, v := range f.Victims {
				if w.pods[v.UID] != nil {
					delete(w.pods, v.UID)
					w.send(engine.PodGone{Pod: v})
				}
			}
			w.send(engine.EvictDone{For: f.For, Decision: f.Decision})
		}
	}
}

func (w *largeCluster) setNode(i int) {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%03d", i), Labels: map[string]string{
		"topology.kubernetes.io/zone": fmt.Sprintf("z%d", i%3), "kubernetes.io/hostname": fmt.Sprintf("n%03d", i), "tier": fmt.Sprintf("t%d", i%5)}}}
	switch rapid.IntRange(0, 9).Draw(w.t, "kind") {
	case 0:
		n.Spec.Taints = []v1.Taint{{Key: "dedicated", Value: "x", Effect: v1.TaintEffectNoSchedule}}
	case 1:
		n.Spec.Taints = []v1.Taint{{Key: "soft", Effect: v1.TaintEffectPreferNoSchedule}}
	case 2:
		n.Spec.Unschedulable = rapid.Bool().Draw(w.t, "cordoned")
	case 3:
		n.Status.Images = []v1.ContainerImage{{Names: []string{"registry/app:1"}, SizeBytes: 500 << 20}}
	}
	n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: *apiresource.NewQuantity(int64(rapid.IntRange(1, 4).Draw(w.t, "cores")), apiresource.DecimalSI),
		v1.ResourceMemory: apiresource.MustParse("8Gi"), v1.ResourcePods: apiresource.MustParse("8")}
	w.send(engine.NodeSet{Node: w.intake.Node(n)})
}

// create makes a pod of one of a dozen kinds.
func (w *largeCluster) create() {
	w.made++
	kind := rapid.IntRange(0, 11).Draw(w.t, "kind")
	app := fmt.Sprint("app", kind)
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(app, "-", w.made), Namespace: "default", UID: types.UID(fmt.Sprint("uid-", w.made)), Labels: map[string]string{"app": app}}}
	priority := int32(rapid.SampledFrom([]int{0, 0, 0, 5}).Draw(w.t, "priority"))
	p.Spec.SchedulerName, p.Spec.Priority = "default-scheduler", &priority
	c := v1.Container{Name: "c", Image: "registry/app:1", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
		v1.ResourceCPU: *apiresource.NewMilliQuantity(int64(rapid.SampledFrom([]int{100, 500, 1000, 2500}).Draw(w.t, "cpu")), apiresource.DecimalSI), v1.ResourceMemory: apiresource.MustParse("500Mi")}}}
	own := &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	host, zone := v1.PodAffinityTerm{LabelSelector: own, TopologyKey: "kubernetes.io/hostname"}, v1.PodAffinityTerm{LabelSelector: own, TopologyKey: "topology.kubernetes.io/zone"}
	spread := v1.TopologySpreadConstraint{MaxSkew: 1, TopologyKey: zone.TopologyKey, WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: own}
	tier := v1.NodeSelectorTerm{MatchExpressions: []v1.NodeSelectorRequirement{{Key: "tier", Operator: v1.NodeSelectorOpIn, Values: []string{"t0", "t3"}}}}
	switch kind {
	case 0:
		p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{spread}
	case 1:
		spread.TopologyKey, spread.WhenUnsatisfiable = host.TopologyKey, v1.ScheduleAnyway
		p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{spread}
	case 2:
		p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{host}}}
	case 3:
		p.Spec.Affinity = &v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{zone}}}
	case 4:
		p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.WeightedPodAffinityTerm{{Weight: 10, PodAffinityTerm: zone}}}}
	case 5:
		p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{RequiredDuringSchedulingIgnoredDuringExecution: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{tier}}}}
	case 6:
		p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.PreferredSchedulingTerm{{Weight: 5, Preference: tier}}}}
	case 7:
		p.Spec.Tolerations = []v1.Toleration{{Key: "dedicated", Operator: v1.TolerationOpExists}}
	case 8:
		c.Ports = []v1.ContainerPort{{HostPort: 80}}
	case 9:
		p.Spec.NodeSelector = map[string]string{"tier": "t1"}
	}
	p.Spec.Containers = []v1.Container{c}
	w.pods[string(p.UID)] = p
	w.send(engine.PodSet{Pod: w.intake.Pod(p.DeepCopy())})
}

// end ends one of the pods.
func (w *largeCluster) end() {
	if uids := sortedKeys(w.pods); len(uids) > 0 {
		p := w.pods[rapid.SampledFrom(uids).Draw(w.t, "ends")]
		delete(w.pods, string(p.UID))
		w.send(engine.PodGone{Pod: record.PodRef{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}})
	}
}
