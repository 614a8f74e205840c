// SPDX-License-Identifier: Apache-2.0

package tape

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/host/framework"
	"github.com/kumiki-scheduler/kumiki/record"
)

// hostedWorld is a random history of a scheduler with plugins of kube-scheduler's framework, which is recorded.
type hostedWorld struct {
	t       testing.TB
	rng     *rand.Rand
	plugins app.Plugins
	drawn   []*drawn
	config  config.Resolved
	path    string
	now     record.Time
	nodes   map[string]*v1.Node
	pods    map[string]*v1.Pod // name -> as the API server has it
	groups  []*cluster.Gang    // native pod groups
	number  int                // of the last pod or node

	// Of one process.
	engine   *engine.Engine
	host     *framework.Host
	intake   *convert.Intake
	recorder *Recorder
	posted   []engine.Event // by plugins, or outcomes of calls
	steps    int            // of all processes
	answers  int            // bytes
	placed   int
}

// hostedPoints are the extension points at which profiles enable plugins, besides queueSort.
var hostedPoints = []config.Point{config.PreEnqueue, config.PreFilter, config.Filter, config.PostFilter,
	config.PreScore, config.Score, config.Reserve, config.Permit, config.PreBind, config.Bind, config.PostBind,
	config.PlacementGenerate, config.PlacementScore}

// hostedConfig draws a configuration: each plugin runs at random points, and some sort the queue.
func hostedConfig(rng *rand.Rand, names []string) string {
	var points strings.Builder
	for _, at := range hostedPoints {
		var enabled []string
		for _, name := range names {
			if rng.IntN(3) > 0 {
				enabled = append(enabled, fmt.Sprintf("{name: %s}", name))
			}
		}
		if at == config.Bind && len(enabled) > 0 { // they are asked before it
			fmt.Fprintf(&points, "    bind: {disabled: [{name: DefaultBinder}], enabled: [%s, {name: DefaultBinder}]}\n",
				strings.Join(enabled, ", "))
		} else if len(enabled) > 0 {
			fmt.Fprintf(&points, "    %s: {enabled: [%s]}\n", at, strings.Join(enabled, ", "))
		}
	}
	if rng.IntN(2) == 0 {
		fmt.Fprintf(&points, "    queueSort: {disabled: [{name: PrioritySort}], enabled: [{name: %s}]}\n", names[0])
	}
	return `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  pluginConfig: [{name: Kumiki, args: {gangs: {annotation: "On"}}}]
  plugins:
` + points.String()
}

func newHostedWorld(t testing.TB, path string, seed uint64) *hostedWorld {
	t.Helper()
	w := &hostedWorld{t: t, rng: rand.New(rand.NewPCG(seed, 1)), path: path, now: record.Second,
		nodes: map[string]*v1.Node{}, pods: map[string]*v1.Pod{}}
	var regs []framework.Registration
	var names []string
	for i := range 1 + w.rng.IntN(3) {
		names = append(names, fmt.Sprintf("Drawn%d", i))
		regs = append(regs, drawnPlugin(names[i], w.rng))
		w.drawn = append(w.drawn, regs[i].Type.(*drawn))
	}
	var err error
	if w.plugins, err = (app.Plugins{}).WithFramework(regs...); err != nil {
		t.Fatal(err)
	}
	text := hostedConfig(w.rng, names)
	if w.config, err = w.plugins.ParseConfig([]byte(text)); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return w
}

// start starts a scheduler, which lists the cluster.
func (w *hostedWorld) start() {
	w.t.Helper()
	w.posted = nil
	cfg, host, err := w.plugins.Hosted(w.config, framework.Env{
		Post: func(ev engine.Event) { w.posted = append(w.posted, ev) },
		Report: func(p framework.Problem) {
			if p.Kind == framework.Modified {
				w.t.Error(p.Err)
			}
		},
		Limits: config.Hosted{Check: true}})
	if err != nil {
		w.t.Fatal(err)
	}
	cfg.UnschedulableTimeout = record.Time(time.Minute)
	w.engine, w.host, w.intake = engine.New(cfg), host, convert.NewIntake()
	w.intake.DeclareGangs(app.GangRules(w.config))
	w.intake.KeepFull()
	w.recorder, err = Start(w.path, w.config, time.Minute, Options{MaxBytes: 20_000 + w.rng.Int64N(60_000),
		Segments: 1000, State: w.engine.State})
	if err == nil {
		err = w.recorder.Describe(w.engine)
	}
	if err != nil {
		w.t.Fatal(err)
	}
	w.step(engine.Tick{Now: w.now})
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		w.step(engine.NodeSet{Node: w.intake.Node(w.nodes[name])})
	}
	for _, group := range w.groups {
		w.step(engine.ObjectSet{Object: group})
	}
	for _, name := range slices.Sorted(maps.Keys(w.pods)) {
		w.step(engine.PodSet{Pod: w.intake.Pod(w.pods[name])})
	}
	w.step(engine.Synced{})
}

// stop ends the process.
func (w *hostedWorld) stop() {
	w.t.Helper()
	if err := errors.Join(w.recorder.Close(), w.recorder.Whole()); err != nil {
		w.t.Fatal(err)
	}
}

// step gives an event to the engine, and does what it asks for now or later.
func (w *hostedWorld) step(ev engine.Event) {
	effects := slices.Clone(w.engine.Step(ev))
	w.recorder.Observe(ev, effects)
	for !w.recorder.out.mayRotate() && w.recorder.Whole() == nil {
		time.Sleep(50 * time.Microsecond)
	}
	w.steps++
	if after := w.host.Observe(ev); after != nil {
		after()
	}
	for _, effect := range effects {
		switch f := effect.(type) {
		case engine.Heard:
			w.answers += len(f.Hosted)
		case engine.Prepare:
			w.posted = append(w.posted, engine.WritesDone{Pod: f.Pod, Decision: f.Decision})
		case engine.Bind:
			w.posted = append(w.posted, w.bind(f))
		case engine.Evict:
			w.posted = append(w.posted, engine.EvictDone{For: f.For, Decision: f.Decision})
			for _, victim := range f.Victims {
				w.remove(victim.Name)
			}
		case engine.Condition:
			if p := w.pods[f.Pod.Name]; p != nil && string(p.UID) == f.Pod.UID && f.Nominate != "" {
				w.update(p, func(p *v1.Pod) { p.Status.NominatedNodeName = f.Nominate })
			}
		}
	}
}

// bind binds a pod, by a plugin if one does.
func (w *hostedWorld) bind(f engine.Bind) engine.BindDone {
	done := engine.BindDone{Pod: f.Pod, Node: f.Node}
	err := framework.ErrNative
	if f.Via == framework.Via {
		_, err = w.host.Bind(context.Background(), f.Pod, f.Node)
	}
	if err != nil && !errors.Is(err, framework.ErrNative) {
		return done.Failed(err)
	}
	p := w.pods[f.Pod.Name]
	if p == nil || string(p.UID) != f.Pod.UID {
		done.Outcome, done.Message = engine.PodVanished, "it is gone"
		return done
	}
	w.placed++
	w.update(p, func(p *v1.Pod) { p.Spec.NodeName = f.Node })
	return done
}

// update changes a pod; the watch shows it.
func (w *hostedWorld) update(p *v1.Pod, how func(*v1.Pod)) {
	p = p.DeepCopy()
	how(p)
	w.pods[p.Name] = p
	w.posted = append(w.posted, engine.PodSet{Pod: w.intake.Pod(p)})
}

func (w *hostedWorld) remove(name string) {
	if p := w.pods[name]; p != nil {
		delete(w.pods, name)
		w.posted = append(w.posted, engine.PodGone{Pod: record.PodRef{Namespace: p.Namespace, Name: p.Name,
			UID: string(p.UID)}})
	}
}

// any returns a random name, empty if there is none.
func anyOf[V any](rng *rand.Rand, m map[string]V) string {
	names := slices.Sorted(maps.Keys(m))
	if len(names) == 0 {
		return ""
	}
	return names[rng.IntN(len(names))]
}

// happen lets one random thing happen, and then what follows from it, not all of it at once.
func (w *hostedWorld) happen() {
	switch n := w.rng.IntN(100); {
	case n < 40 && len(w.pods) < 40:
		w.addPods()
	case n < 48:
		w.remove(anyOf(w.rng, w.pods))
	case n < 53:
		if p := w.pods[anyOf(w.rng, w.pods)]; p != nil {
			w.update(p, func(p *v1.Pod) { p.Labels = map[string]string{"v": fmt.Sprint(w.rng.IntN(3))} })
		}
	case n < 62 && len(w.nodes) < 8:
		w.addNode()
	case n < 66 && len(w.nodes) > 2:
		name := anyOf(w.rng, w.nodes)
		delete(w.nodes, name)
		w.step(engine.NodeGone{Name: name})
	case n < 80:
		w.drawn[w.rng.IntN(len(w.drawn))].act()
	default:
		w.now += record.Time(1+w.rng.IntN(12)) * record.Second
		w.step(engine.Tick{Now: w.now})
	}
	for range w.rng.IntN(12) {
		switch {
		case len(w.posted) > 0 && (w.rng.IntN(3) > 0 || !w.engine.Ready()):
			ev := w.posted[0]
			w.posted = w.posted[1:]
			w.step(ev)
		case w.engine.Ready():
			w.step(engine.Cycle{})
		}
	}
}

func (w *hostedWorld) addNode() {
	w.number++
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", w.number)},
		Status: v1.NodeStatus{Allocatable: v1.ResourceList{"cpu": resource.MustParse(fmt.Sprint(1 + w.rng.IntN(8))),
			"memory": resource.MustParse("16Gi"), "pods": resource.MustParse("10")}}}
	w.nodes[n.Name] = n
	w.step(engine.NodeSet{Node: w.intake.Node(n)})
}

// addPods adds a pod, or a gang.
func (w *hostedWorld) addPods() {
	w.number++
	members, priority := 1, int32(w.rng.IntN(3)*10)
	if w.rng.IntN(6) == 0 {
		members = 2 + w.rng.IntN(3)
	}
	native := members > 1 && w.rng.IntN(2) == 0
	if native {
		w.addGroup(members)
	}
	for i := range members {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("p%d-%d", w.number, i),
			UID: types.UID(fmt.Sprintf("u%d-%d", w.number, i))}}
		switch {
		case native:
			p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: new(fmt.Sprintf("g%d", w.number))}
		case members > 1:
			p.Annotations = map[string]string{"pod_group": fmt.Sprintf("g%d", w.number),
				"pod_group_size": fmt.Sprint(members)}
		}
		p.Spec.SchedulerName, p.Spec.Priority = v1.DefaultSchedulerName, &priority
		p.Spec.Containers = []v1.Container{{Name: "main", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
			"cpu": resource.MustParse(fmt.Sprint(1 + w.rng.IntN(3)))}}}}
		w.pods[p.Name] = p
		w.step(engine.PodSet{Pod: w.intake.Pod(p)})
	}
}

// addGroup adds a native pod group, of which at least one pod may be left over.
func (w *hostedWorld) addGroup(members int) {
	key := cluster.GangKey{Source: cluster.GangOfGroup, Namespace: "default", Name: fmt.Sprintf("g%d", w.number)}
	g := &cluster.Gang{Key: key, MinCount: members - w.rng.IntN(2)}
	g.Namespace, g.Name, g.UID = key.Namespace, key.Object().Name, types.UID(key.Name)
	w.groups = append(w.groups, g)
	w.step(engine.ObjectSet{Object: g})
}

// run lets so many things happen, with restarts.
func (w *hostedWorld) run(things int) {
	w.t.Helper()
	w.start()
	for range 3 {
		w.addNode()
	}
	for i := range things {
		if i > 0 && w.rng.IntN(things/2+1) == 0 {
			w.stop()
			w.start()
		}
		w.happen()
	}
	w.stop()
}
