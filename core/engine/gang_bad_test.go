// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/record"
)

// badWorld is an API server with gangs that people got wrong.
type badWorld struct {
	t      *rapid.T
	engine *engine.Engine
	intake *convert.Intake
	now    record.Time
	rv     int
	pods   map[string]*v1.Pod // name -> the API server's version
	said   map[string]string  // name -> the reason that the pod was last notified of
	groups map[cluster.ObjectKey]*cluster.Gang
	rules  convert.GangRules
}

var (
	badSources = []cluster.GangSource{cluster.GangOfGroup, cluster.GangOfSigs, cluster.GangOfVolcano}
	badGangs   = []string{"g", "h"}
)

var badProfiles = []string{"default-scheduler", "second"}

func newBadWorld(t *rapid.T) *badWorld {
	w := &badWorld{t: t, pods: map[string]*v1.Pod{}, said: map[string]string{}, groups: map[cluster.ObjectKey]*cluster.Gang{}, now: 1000 * record.Second}
	w.rules = convert.GangRules{Group: true, Annotation: true, Sigs: true, Volcano: true, Pfnet: "pf.example/gang"}
	w.start()
	return w
}

// start begins a scheduler that knows nothing, and lists what there is in any order: kinds that are installed late
// come behind pods.
func (w *badWorld) start() {
	var profiles []engine.Profile
	for _, name := range badProfiles {
		profiles = append(profiles, engine.DefaultProfile(name))
	}
	w.engine = engine.New(engine.Config{Seed: 7, Profiles: profiles, Less: basic.PrioritySort{},
		InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: noFlush})
	w.intake = convert.NewIntake()
	w.intake.DeclareGangs(w.rules)
	w.send(engine.Tick{Now: w.now})
	for i := range 3 {
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)}}
		n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("3"), v1.ResourcePods: apiresource.MustParse("10")}
		w.send(engine.NodeSet{Node: w.intake.Node(n)})
	}
	var list []engine.Event
	for _, source := range badSources {
		for _, name := range badGangs {
			if g := w.groups[(cluster.GangKey{Source: source, Namespace: "default", Name: name}).Object()]; g != nil {
				list = append(list, engine.ObjectSet{Object: g})
			}
		}
	}
	for _, name := range sortedKeys(w.pods) {
		list = append(list, w.shown(w.pods[name]))
	}
	for _, ev := range rapid.Permutation(list).Draw(w.t, "listed") {
		w.send(ev)
	}
	w.send(engine.Synced{})
}

// send feeds an event; binds are carried out at once, or fail for a while.
func (w *badWorld) send(ev engine.Event) {
	var then []engine.Event
	for _, f := range recordedStep(w.engine, ev) {
		switch f := f.(type) {
		case engine.Trouble:
			if strings.Contains(f.What, "panic") {
				w.t.Fatalf("%s on %s: %s", f.What, f.Object, f.Details)
			}
		case engine.WriteEvent:
			if f.Reason == "FailedScheduling" {
				w.said[f.Pod.Name] = f.Note
			}
		case engine.Bind:
			p := w.pods[f.Pod.Name]
			if p == nil || string(p.UID) != f.Pod.UID {
				then = append(then, engine.BindDone{Pod: f.Pod, Node: f.Node, Outcome: engine.PodVanished})
				continue
			}
			if p.Spec.NodeName != "" && p.Spec.NodeName != f.Node {
				then = append(then, engine.BindDone{Pod: f.Pod, Node: p.Spec.NodeName, Outcome: engine.BoundElsewhere})
				continue
			}
			if rapid.IntRange(0, 3).Draw(w.t, "the bind fails") == 0 {
				then = append(then, engine.BindDone{Pod: f.Pod, Node: f.Node, Outcome: engine.BindFailed, Message: "not now"})
				continue
			}
			p.Spec.NodeName = f.Node
			if f.Gang != nil {
				p.Annotations = mapWith(p.Annotations, convert.GangBoundAnnotation, f.Gang.Name, convert.GangDecisionAnnotation, fmt.Sprint(f.Gang.Decision),
					convert.GangQuorumAnnotation, fmt.Sprint(f.Gang.Quorum))
			}
			then = append(then, engine.BindDone{Pod: f.Pod, Node: f.Node, Outcome: engine.Bound}, w.shown(p))
		case engine.Evict:
			for _, v := range f.Victims {
				delete(w.pods, v.Name)
				then = append(then, engine.PodGone{Pod: v})
			}
			then = append(then, engine.EvictDone{For: f.For, Decision: f.Decision})
		}
	}
	if stale := engine.Stale(w.engine); stale != "" {
		w.t.Fatalf("after %T %+v: %s", ev, ev, stale)
	}
	for _, ev := range then {
		w.send(ev)
	}
}

func mapWith(m map[string]string, pairs ...string) map[string]string {
	out := map[string]string{}
	for k, v := range m {
		out[k] = v
	}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i]] = pairs[i+1]
	}
	return out
}

func (w *badWorld) shown(p *v1.Pod) engine.PodSet {
	w.rv++
	p.ResourceVersion = fmt.Sprint(w.rv)
	return engine.PodSet{Pod: w.intake.Pod(p.DeepCopy())}
}

// create makes a pod that says anything of its gang.
func (w *badWorld) create(name string) {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: rapid.SampledFrom([]string{"default", "default", "other"}).Draw(w.t, "namespace"), Name: name,
		UID: types.UID(fmt.Sprintf("%s-%d", name, w.rv)), Labels: map[string]string{}, Annotations: map[string]string{}}}
	w.joinAny(p)
	p.Spec.SchedulerName = rapid.SampledFrom([]string{"default-scheduler", "default-scheduler", "default-scheduler", "second", "nobody"}).Draw(w.t, "scheduler")
	cpu := rapid.SampledFrom([]string{"1", "1", "2", "9"}).Draw(w.t, "cpu")
	p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: apiresource.MustParse(cpu)}}}}
	if rapid.Bool().Draw(w.t, "owned") {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{Kind: "Job", Name: "j", Controller: &yes}}
	}
	w.pods[name] = p
	w.send(w.shown(p))
}

// joinAny lets a pod say anything of its gang.
func (w *badWorld) joinAny(p *v1.Pod) {
	gangs := rapid.SampledFrom([]string{"g", "g", "h"})
	sizes := rapid.SampledFrom([]string{"", "1", "2", "3", "3", "0", "-4", "x", "999999", "200"})
	for _, source := range rapid.SliceOfN(rapid.IntRange(0, 4), 0, 2).Draw(w.t, "sources") {
		g := gangs.Draw(w.t, "gang")
		switch source {
		case 0:
			p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: &g}
		case 1:
			p.Annotations["pod_group"], p.Annotations["pod_group_size"] = g, sizes.Draw(w.t, "size")
			p.Annotations["pod_group_min_size"] = rapid.SampledFrom([]string{"", "", "2", "0"}).Draw(w.t, "least")
		case 2:
			p.Labels["scheduling.x-k8s.io/pod-group"] = g
		case 3:
			p.Annotations["scheduling.k8s.io/group-name"] = g
		case 4:
			p.Annotations["pf.example/gang-name"], p.Annotations["pf.example/gang-size"] = g, sizes.Draw(w.t, "size")
		}
	}
}

// declare sets or deletes an object that declares a gang.
func (w *badWorld) declare() {
	source := rapid.SampledFrom(badSources).Draw(w.t, "source")
	g := &cluster.Gang{Key: cluster.GangKey{Source: source, Namespace: "default", Name: rapid.SampledFrom(badGangs).Draw(w.t, "gang")}}
	at := g.Key.Object()
	g.Namespace, g.Name, g.UID = at.Namespace, at.Name, types.UID(at.Name)
	switch rapid.IntRange(0, 5).Draw(w.t, "object") {
	case 0:
		delete(w.groups, at)
		w.send(engine.ObjectGone{Kind: cluster.KindGang, Key: at})
		return
	case 1:
		g.Bad = "spec.minMember must be above 0, it is -1"
	case 2:
		g.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}
		g.MinCount = 2
	case 3:
		g.MinCount = 100_000
	default:
		g.MinCount = rapid.IntRange(1, 3).Draw(w.t, "minCount")
	}
	w.groups[at] = g
	w.send(engine.ObjectSet{Object: g})
}

// anyPod draws a pod that satisfies ok; nil if there is none.
func (w *badWorld) anyPod(ok func(*v1.Pod) bool) *v1.Pod {
	names := slices.DeleteFunc(sortedKeys(w.pods), func(name string) bool { return !ok(w.pods[name]) })
	if len(names) == 0 {
		return nil
	}
	return w.pods[rapid.SampledFrom(names).Draw(w.t, "which")]
}

// befall lets something happen to a pod that is there: somebody else binds it, it is deleted but stays for a while,
// people say something else of its gang.
func (w *badWorld) befall() {
	switch rapid.IntRange(0, 2).Draw(w.t, "what") {
	case 0:
		if p := w.anyPod(pending); p != nil {
			p.Spec.NodeName = "n0"
			w.send(w.shown(p))
		}
	case 1:
		if p := w.anyPod(func(p *v1.Pod) bool { return p.DeletionTimestamp == nil }); p != nil {
			p.DeletionTimestamp = &metav1.Time{Time: time.Unix(5000, 0)}
			w.send(w.shown(p))
		}
	case 2:
		if p := w.anyPod(func(*v1.Pod) bool { return true }); p != nil {
			p.Labels, p.Annotations = map[string]string{}, map[string]string{}
			w.joinAny(p)
			w.send(w.shown(p))
		}
	}
}

// TestBadDeclarationsHoldNothing: pods that come over minutes and say anything of their gangs, and objects that say
// anything, change and go at any time, also while pods are being bound. Others bind pods, pods end slowly, people
// edit what pods say, and the scheduler starts anew, with lists in any order. After every event what the queue
// keeps of a gang is what asking anew gives. At rest nothing is on its way, no node is promised to anybody whose
// hold has ended, each pod that waits was notified why, all that is assumed is bound, and a pod in no gang for
// which there is capacity is placed. And the liveness property holds. Catches a gate without a reason, a hold that
// outlives its gang, and a gang that is remembered after its last pod.
func TestBadDeclarationsHoldNothing(t *testing.T) { rapid.Check(t, badDeclarations) }

func badDeclarations(t *rapid.T) {
	w := newBadWorld(t)
	for range rapid.IntRange(1, 40).Draw(t, "moves") {
		switch rapid.IntRange(0, 12).Draw(t, "move") {
		case 10, 11:
			w.befall()
		case 12:
			w.start()
		case 0, 1, 2, 3:
			name := fmt.Sprintf("p%d", rapid.IntRange(0, 11).Draw(t, "pod"))
			if w.pods[name] == nil {
				w.create(name)
			}
		case 4, 5:
			w.declare()
		case 6:
			if names := sortedKeys(w.pods); len(names) > 0 {
				name := rapid.SampledFrom(names).Draw(t, "gone")
				ref := w.ref(name)
				delete(w.pods, name)
				w.send(engine.PodGone{Pod: ref})
			}
		case 7:
			w.pass(rapid.SampledFrom([]record.Time{1, 6, 40, 400}).Draw(t, "seconds") * record.Second)
		default:
			w.send(engine.Cycle{})
		}
	}
	w.rest()
	w.checkBad()
	if why := unlive(w.engine, neverRefused); why != "" {
		t.Fatal(why)
	}
	for _, name := range sortedKeys(w.pods) {
		ref := w.ref(name)
		delete(w.pods, name)
		w.send(engine.PodGone{Pod: ref})
	}
	for _, source := range badSources {
		for _, name := range badGangs {
			w.send(engine.ObjectGone{Kind: cluster.KindGang, Key: cluster.GangKey{Source: source, Namespace: "default", Name: name}.Object()})
		}
	}
	w.rest()
	if n := engine.GangsRemembered(w.engine); n != 0 {
		t.Fatalf("%d gangs are remembered, and no pod is there", n)
	}
}

func (w *badWorld) ref(name string) record.PodRef {
	p := w.pods[name]
	return record.PodRef{Namespace: p.Namespace, Name: name, UID: string(p.UID)}
}

func (w *badWorld) pass(d record.Time) {
	w.now += d
	w.send(engine.Tick{Now: w.now})
}

// rest lets time go by until nothing happens any more, binds fail seldom and holds have ended.
func (w *badWorld) rest() {
	for range 60 {
		w.pass(15 * record.Second)
		for range 40 {
			if !w.engine.Ready() {
				break
			}
			w.send(engine.Cycle{})
		}
	}
}

func (w *badWorld) checkBad() {
	report := inspect(w.engine).QueueReport()
	waits := map[string]record.SubQueue{}
	for _, e := range report.Entries {
		waits[e.Pod.UID] = e.Where
		for _, uid := range e.Members {
			waits[uid] = e.Where
		}
	}
	s := w.engine.Snapshot()
	bound := 0
	for name, p := range w.pods {
		if p.Spec.NodeName != "" {
			bound++
			continue
		}
		mine := slices.Contains(badProfiles, p.Spec.SchedulerName) && p.DeletionTimestamp == nil
		switch where := waits[string(p.UID)]; {
		case mine && where == "":
			w.t.Fatalf("pod %s waits nowhere", name)
		case mine && (where == record.Gated || where == record.Unschedulable) && w.said[name] == "":
			w.t.Fatalf("pod %s waits in %s and was never told why", name, where)
		}
		if strings.Contains(w.said[name], "%!") {
			w.t.Fatalf("pod %s was told: %s", name, w.said[name])
		}
		kept, holds := engine.KeptIn(w.engine, w.intake.Pod(p.DeepCopy()))
		if kept != "" && holds == 0 {
			w.t.Fatalf("pod %s is kept in gang %s, of which no pod has a place", name, kept)
		}
		fit, _ := inspect(w.engine).ExplainPod(p.Namespace, p.Name)
		if mine && kept == "" && w.intake.Pod(p.DeepCopy()).Gang == nil && fit.Fit != nil && fit.Fit.Feasible > 0 {
			w.t.Fatalf("pod %s is in no gang, and waits although %v would take it", name, fit.Fit.FeasibleExamples)
		}
	}
	if s.PodCount() != bound {
		w.t.Fatalf("%d pods hold room, %d are bound", s.PodCount(), bound)
	}
}
