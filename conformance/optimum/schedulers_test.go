// SPDX-License-Identifier: Apache-2.0

package optimum

import (
	"cmp"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/conformance/standalone"
	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube/gangapi"
	"github.com/kumiki-scheduler/kumiki/record"
)

// rounds is how often each scheduler tries the pods that it has not placed: what was bound later can make a pod with a
// topology constraint fit.
const rounds = 4

// order is how old pods are that have one priority: a negative number makes a the older one; nil leaves them as drawn.
type order func(a, b *v1.Pod) int

// ours returns the nodes of the pods that kumiki places: pod -> node. It breaks ties by numbers that the seed draws.
func ours(t testing.TB, w *scene, resolved config.Resolved, by order, seed int64) map[string]string {
	cfg, err := app.EngineConfig(resolved)
	if err != nil {
		t.Fatal(err)
	}
	cfg.Seed = uint64(seed)
	o := &kumiki{engine: engine.New(cfg), intake: convert.NewIntake(), pods: map[string]*v1.Pod{},
		nodes: map[string]string{}}
	o.intake.DeclareGangs(convert.GangRules{Group: true})
	now := 1_000_000 * record.Second
	o.step(engine.Tick{Now: now})
	for _, g := range w.groups {
		o.step(engine.ObjectSet{Object: gang(t, g)})
	}
	for _, n := range w.nodes {
		o.step(engine.NodeSet{Node: o.intake.Node(n)})
	}
	o.step(engine.Synced{})
	pods := slices.Clone(w.pods)
	if by != nil {
		slices.SortStableFunc(pods, by)
	}
	for i, p := range pods {
		p = p.DeepCopy()
		p.CreationTimestamp = metav1.Unix(int64(1000+i), 0)
		o.pods[string(p.UID)] = p
		o.step(engine.PodSet{Pod: o.intake.PendingPod(p)})
	}
	for range rounds {
		for o.engine.Ready() {
			o.step(engine.Cycle{})
		}
		now += 600 * record.Second
		o.step(engine.Tick{Now: now})
	}
	return o.nodes
}

// smallestFirst compares what pods request.
func smallestFirst(a, b *v1.Pod) int { return cmp.Compare(sizeOf(a), sizeOf(b)) }

// sizeOf returns the CPUs and the GiB of a pod.
func sizeOf(p *v1.Pod) int64 {
	r := p.Spec.Containers[0].Resources.Requests
	return r.Cpu().Value() + r.Memory().Value()>>30
}

// kumiki is kumiki's engine, whose binds succeed at once.
type kumiki struct {
	engine *engine.Engine
	intake *convert.Intake
	pods   map[string]*v1.Pod // UID -> pod
	nodes  map[string]string  // pod -> node
}

func (o *kumiki) step(ev engine.Event) {
	var binds []engine.Bind
	for _, f := range o.engine.Step(ev) {
		if b, is := f.(engine.Bind); is {
			binds = append(binds, b)
		}
	}
	for _, b := range binds {
		p := o.pods[b.Pod.UID].DeepCopy()
		p.Spec.NodeName = b.Node
		o.nodes[p.Name] = b.Node
		o.step(engine.BindDone{Pod: b.Pod, Node: b.Node})
		o.step(engine.PodSet{Pod: o.intake.Pod(p)})
	}
}

// gang is a pod group as kumiki reads it from the API server.
func gang(t testing.TB, g *schedulingv1beta1.PodGroup) *cluster.Gang {
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(g)
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{Object: fields}
	o.SetGroupVersionKind(schedulingv1beta1.SchemeGroupVersion.WithKind("PodGroup"))
	made := gangapi.PodGroup(o)
	if made.Bad != "" {
		t.Fatalf("group %s: %s", g.Name, made.Bad)
	}
	return made
}

// theirs returns the nodes of the pods that upstream places: pod -> node.
func theirs(t testing.TB, w *scene, seed int64) map[string]string {
	u, err := standalone.New(seed, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range w.nodes {
		u.Set(n)
	}
	for _, g := range w.groups {
		u.Set(g)
	}
	for _, p := range w.pods {
		u.Create(p)
	}
	nodes := map[string]string{} // pod -> node
	for range rounds {
		placed, err := u.Settle()
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range placed {
			nodes[p.Name] = p.Spec.NodeName
		}
		u.Retry()
	}
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	return nodes
}
