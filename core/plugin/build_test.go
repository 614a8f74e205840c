// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// list makes a resource list from name, quantity, name, quantity ...
func list(pairs ...string) v1.ResourceList {
	if len(pairs) == 0 {
		return nil
	}
	l := v1.ResourceList{}
	for i := 0; i < len(pairs); i += 2 {
		l[v1.ResourceName(pairs[i])] = apiresource.MustParse(pairs[i+1])
	}
	return l
}

type podOption func(*v1.Pod)

// pod makes a pending pod without containers.
func pod(name string, options ...podOption) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns", UID: types.UID("uid-" + name)}}
	for _, o := range options {
		o(p)
	}
	return p
}

// asks adds a container with these requests.
func asks(pairs ...string) podOption {
	return func(p *v1.Pod) {
		name := fmt.Sprintf("c%d", len(p.Spec.Containers))
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: name, Resources: v1.ResourceRequirements{Requests: list(pairs...)}})
	}
}

func initAsks(pairs ...string) podOption {
	return func(p *v1.Pod) {
		name := fmt.Sprintf("i%d", len(p.Spec.InitContainers))
		p.Spec.InitContainers = append(p.Spec.InitContainers, v1.Container{Name: name, Resources: v1.ResourceRequirements{Requests: list(pairs...)}})
	}
}

func overhead(pairs ...string) podOption {
	return func(p *v1.Pod) { p.Spec.Overhead = list(pairs...) }
}

func hostPort(ip string, protocol v1.Protocol, port int32) podOption {
	return func(p *v1.Pod) {
		p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: fmt.Sprintf("p%d", port),
			Ports: []v1.ContainerPort{{HostIP: ip, Protocol: protocol, HostPort: port}}})
	}
}

func image(name string) podOption {
	return func(p *v1.Pod) { p.Spec.Containers = append(p.Spec.Containers, v1.Container{Name: name, Image: name}) }
}

func tolerate(key string, op v1.TolerationOperator, value string, effect v1.TaintEffect) podOption {
	return func(p *v1.Pod) {
		p.Spec.Tolerations = append(p.Spec.Tolerations, v1.Toleration{Key: key, Operator: op, Value: value, Effect: effect})
	}
}

func selector(pairs ...string) podOption {
	return func(p *v1.Pod) {
		p.Spec.NodeSelector = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			p.Spec.NodeSelector[pairs[i]] = pairs[i+1]
		}
	}
}

func affinityOf(p *v1.Pod) *v1.NodeAffinity {
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &v1.Affinity{NodeAffinity: &v1.NodeAffinity{}}
	}
	return p.Spec.Affinity.NodeAffinity
}

func required(terms ...v1.NodeSelectorTerm) podOption {
	return func(p *v1.Pod) {
		affinityOf(p).RequiredDuringSchedulingIgnoredDuringExecution = &v1.NodeSelector{NodeSelectorTerms: terms}
	}
}

func preferred(weight int32, term v1.NodeSelectorTerm) podOption {
	return func(p *v1.Pod) {
		a := affinityOf(p)
		a.PreferredDuringSchedulingIgnoredDuringExecution = append(a.PreferredDuringSchedulingIgnoredDuringExecution,
			v1.PreferredSchedulingTerm{Weight: weight, Preference: term})
	}
}

func onNode(name string) podOption    { return func(p *v1.Pod) { p.Spec.NodeName = name } }
func nominated(name string) podOption { return func(p *v1.Pod) { p.Status.NominatedNodeName = name } }

func expr(key string, op v1.NodeSelectorOperator, values ...string) v1.NodeSelectorRequirement {
	return v1.NodeSelectorRequirement{Key: key, Operator: op, Values: values}
}

// term makes a node selector term of match expressions.
func term(exprs ...v1.NodeSelectorRequirement) v1.NodeSelectorTerm {
	return v1.NodeSelectorTerm{MatchExpressions: exprs}
}

// fields makes a node selector term of match fields.
func fields(exprs ...v1.NodeSelectorRequirement) v1.NodeSelectorTerm {
	return v1.NodeSelectorTerm{MatchFields: exprs}
}

type nodeOption func(*v1.Node)

// node makes a node that offers nothing but room for 110 pods.
func node(name string, options ...nodeOption) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1.NodeStatus{Allocatable: list("pods", "110")}}
	for _, o := range options {
		o(n)
	}
	return n
}

func offers(pairs ...string) nodeOption {
	return func(n *v1.Node) {
		for name, q := range list(pairs...) { // order: each name is set alone
			n.Status.Allocatable[name] = q
		}
	}
}

func label(pairs ...string) nodeOption {
	return func(n *v1.Node) {
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		for i := 0; i < len(pairs); i += 2 {
			n.Labels[pairs[i]] = pairs[i+1]
		}
	}
}

func taint(key, value string, effect v1.TaintEffect) nodeOption {
	return func(n *v1.Node) {
		n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: key, Value: value, Effect: effect})
	}
}

func cordon(n *v1.Node) { n.Spec.Unschedulable = true }

func holds(image string, mebibytes int64) nodeOption {
	return func(n *v1.Node) {
		n.Status.Images = append(n.Status.Images, v1.ContainerImage{Names: []string{image}, SizeBytes: mebibytes << 20})
	}
}

// world is a store with its intake.
type world struct {
	store  *cluster.Store
	intake *cluster.Intake
}

func newWorld() *world { return &world{cluster.NewStore(), cluster.NewIntake()} }

// with enters nodes, pods that are bound, and other objects.
func (w *world) with(objects ...any) *world {
	for _, o := range objects {
		switch o := o.(type) {
		case *v1.Node:
			w.store.SetNode(w.intake.Node(o))
		case *v1.Pod:
			w.store.SetPod(w.intake.Pod(o))
		case cluster.Object:
			w.store.SetObject(o)
		default:
			panic(fmt.Sprintf("world with %T", o))
		}
	}
	return w
}

// says is what a filter makes of a pod and a node, in words. It asks both forms and fails when they differ.
func (w *world) says(t *testing.T, f Filter, p *v1.Pod, nodeName string) (reasons []string, unresolvable bool) {
	t.Helper()
	s := w.store.Snapshot()
	plan := f.PrepareFilter(s, w.intake.PendingPod(p))
	if plan.Reject != "" {
		return []string{plan.Reject}, true
	}
	if plan.Filter == nil {
		return nil, false
	}
	n, ok := s.Find(nodeName)
	if !ok {
		t.Fatalf("no node %q", nodeName)
	}
	code := plan.Filter.Plain(s, s.View(n))
	out := make([]Verdict, s.Rows())
	plan.Filter.Column(s, 0, cluster.NodeIdx(s.Rows()), TagOf(6), out)
	want := Fits
	if code != Fit {
		want = TagOf(6).With(code)
	}
	if out[n] != want {
		t.Errorf("%s on %s: the plain form says %x, the column form %x", f.Name(), nodeName, want, out[n])
	}
	if code == Fit {
		return nil, false
	}
	return plan.Filter.Reasons(code), code&Unresolvable != 0
}

// scores is the raw score of a pod on a node; ok is false when the plugin does not score the pod. It asks both forms
// and fails when they differ.
func (w *world) scores(t *testing.T, sc Scorer, p *v1.Pod, nodeName string) (score int64, ok bool) {
	t.Helper()
	s := w.store.Snapshot()
	prepared := sc.PrepareScore(s, w.intake.PendingPod(p))
	if prepared == nil {
		return 0, false
	}
	n, found := s.Find(nodeName)
	if !found {
		t.Fatalf("no node %q", nodeName)
	}
	score = prepared.Plain(s, s.View(n))
	out := make([]int64, s.Rows())
	prepared.Column(s, 0, cluster.NodeIdx(s.Rows()), out)
	if out[n] != score {
		t.Errorf("%s on %s: the plain form scores %d, the column form %d", sc.Name(), nodeName, score, out[n])
	}
	return score, true
}

// wakes tells what the plugin's registrations that match the change make of it; asked is false when none matches.
func wakes(pl Waker, p *cluster.Pod, ch Change) (hint Hint, asked bool) {
	for _, w := range pl.Wakes() {
		if !w.Event.Matches(ch.Event) {
			continue
		}
		asked = true
		if w.Hint == nil || w.Hint(p, ch) == QueueHint {
			return QueueHint, true
		}
	}
	return SkipHint, asked
}

func must[P any](p P, err error) P {
	if err != nil {
		panic(err)
	}
	return p
}
