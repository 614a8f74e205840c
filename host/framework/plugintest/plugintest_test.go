// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/host/framework"
)

// pairs lets pods with the label pair run in twos: Permit makes the first wait for 30 seconds, and the second allows it.
// A pod with the label bad makes a call fail as it says. It annotates pods that are bound, through the client.
type pairs struct {
	handle   fwk.Handle
	list     func() int       // pods that its informer has
	now      func() time.Time // nil for no clock
	released time.Time        // of the last Unreserve
}

func (*pairs) Name() string { return "Pairs" }

func newPairs(_ context.Context, _ runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
	pods := h.SharedInformerFactory().Core().V1().Pods()
	pods.Informer()
	count := func() int { return len(pods.Informer().GetStore().List()) }
	if err := pods.Informer().AddIndexers(cache.Indexers{"none": func(any) ([]string, error) { return nil, nil }}); err != nil {
		return nil, err
	}
	return &pairs{handle: h, list: count}, nil
}

func (p *pairs) Filter(_ context.Context, _ fwk.CycleState, pod *v1.Pod, n fwk.NodeInfo) *fwk.Status {
	switch {
	case pod.Labels["bad"] == "filter":
		panic("Filter is broken")
	case n.Node().Labels["closed"] != "":
		return fwk.NewStatus(fwk.Unschedulable, "node is closed")
	}
	return nil
}

func (p *pairs) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.UpdateNodeLabel}}}, nil
}

func (p *pairs) Permit(_ context.Context, _ fwk.CycleState, pod *v1.Pod, _ string) (*fwk.Status, time.Duration) {
	pair := pod.Labels["pair"]
	if pair == "" {
		return nil, 0
	}
	status := fwk.NewStatus(fwk.Wait)
	p.handle.IterateOverWaitingPods(func(w fwk.WaitingPod) {
		if w.GetPod().Labels["pair"] == pair {
			w.Allow("Pairs")
			status = nil
		}
	})
	return status, 30 * time.Second
}

func (*pairs) Reserve(context.Context, fwk.CycleState, *v1.Pod, string) *fwk.Status { return nil }

func (p *pairs) Unreserve(context.Context, fwk.CycleState, *v1.Pod, string) {
	if p.now != nil {
		p.released = p.now()
	}
}

func (p *pairs) Bind(ctx context.Context, _ fwk.CycleState, pod *v1.Pod, node string) *fwk.Status {
	switch pod.Labels["bad"] {
	case "bind":
		return nil // it did not bind
	case "":
		return fwk.NewStatus(fwk.Skip)
	}
	err := p.handle.ClientSet().CoreV1().Pods(pod.Namespace).Bind(ctx, &v1.Binding{ObjectMeta: metav1.ObjectMeta{
		Namespace: pod.Namespace, Name: pod.Name}, Target: v1.ObjectReference{Kind: "Node", Name: node}}, metav1.CreateOptions{})
	return fwk.AsStatus(err)
}

func (p *pairs) PostBind(ctx context.Context, _ fwk.CycleState, pod *v1.Pod, node string) {
	pods := p.handle.ClientSet().CoreV1().Pods(pod.Namespace)
	bound, err := pods.Get(ctx, pod.Name, metav1.GetOptions{})
	if err != nil {
		panic(err)
	}
	bound.Annotations = map[string]string{"seen-on": node}
	if _, err := pods.Update(ctx, bound, metav1.UpdateOptions{}); err != nil {
		panic(err)
	}
	p.handle.EventRecorder().Eventf(bound, nil, v1.EventTypeNormal, "Seen", "Seeing", "pod is on %s", node)
}

const pairsConfig = `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
- schedulerName: default-scheduler
  plugins:
    multiPoint: {enabled: [{name: Pairs}]}
    bind: {disabled: [{name: DefaultBinder}, {name: Pairs}], enabled: [{name: Pairs}, {name: DefaultBinder}]}
`

func startPairs(t *testing.T) *Cluster {
	t.Helper()
	return Start(t, Options{Plugins: []framework.Registration{{Name: "Pairs", Factory: newPairs}}, Config: pairsConfig})
}

const manifests = `
apiVersion: v1
kind: Node
metadata: {name: a, labels: {closed: "yes"}}
---
apiVersion: v1
kind: Node
metadata: {name: b}
---
apiVersion: v1
kind: Pod
metadata: {name: one, labels: {pair: x}}
spec: {containers: [{name: main, resources: {requests: {cpu: 1}}}]}
`

// TestPermitInVirtualTime: a pod waits for Permit until another allows it, or until the time is over.
func TestPermitInVirtualTime(t *testing.T) {
	c := startPairs(t)
	c.Apply(manifests)
	one := c.Pod("one")
	if one.Node != "" || one.Assumed != "b" || !slices.Equal(one.WaitsFor, []string{"Pairs"}) {
		t.Fatalf("the first of a pair: %+v", one)
	}
	began, plugin := c.Now(), c.Plugin("Pairs").(*pairs)
	plugin.now = c.Now
	c.Advance(29 * time.Second)
	if got := c.Pod("one"); got.Assumed != "b" {
		t.Errorf("after 29 seconds: %+v", got)
	}
	c.Advance(11 * time.Second)
	if got := c.Pod("one"); !strings.Contains(got.Message, "timeout after waiting 30s at plugin Pairs") {
		t.Errorf("after 30 seconds: %+v", got)
	}
	if got := c.Now().Sub(began); got != 40*time.Second {
		t.Errorf("the clock moved by %s", got)
	}
	if got := plugin.released.Sub(began); got != 30*time.Second {
		t.Errorf("the time of Permit was over after %s", got)
	}
	c.Advance(time.Minute)
	if got := c.Pod("one"); got.Decision.Number != 1 {
		t.Errorf("one is tried again without an event: %+v", got)
	}
	c.Apply(strings.ReplaceAll(manifests[:strings.LastIndex(manifests, "---")], "name: b", "name: b, labels: {new: x}"))
	if got := c.Pod("one"); got.Assumed != "b" {
		t.Errorf("one is not tried again after an event of the plugin: %+v", got)
	}
	c.Apply(strings.ReplaceAll(manifests[strings.LastIndex(manifests, "---"):], "one", "two"))
	for _, name := range []string{"one", "default/two"} {
		if got := c.Pod(name); got.Node != "b" || got.Message != "" || len(got.WaitsFor) > 0 {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestObjectsAndEvents: the scheduler and the informers of plugins follow objects, and what plugins write is seen.
func TestObjectsAndEvents(t *testing.T) {
	c := startPairs(t)
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{"closed": "yes"}}}
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	c.Set(node, pod)
	if got := c.Pod("p"); !strings.Contains(got.Message, "1 node is closed") {
		t.Errorf("on a closed node: %+v", got)
	}
	if n := c.Plugin("Pairs").(*pairs).list(); n != 1 {
		t.Errorf("the informer has %d pods", n)
	}
	node.Labels = nil
	c.Set(node)
	c.Advance(time.Minute)
	if got := c.Pod("p"); got.Node != "n" || got.Decision.Winner == nil || got.Decision.Winner.Node != "n" {
		t.Errorf("on an open node: %+v", got)
	}
	stored, err := c.Client().CoreV1().Pods("default").Get(t.Context(), "p", metav1.GetOptions{})
	if err != nil || stored.Annotations["seen-on"] != "n" {
		t.Errorf("the plugin's annotation: %v, %v", stored.Annotations, err)
	}
	var reasons []string
	for _, e := range c.Events() {
		reasons = append(reasons, fmt.Sprint(e.Object, " ", e.Reason))
	}
	for _, want := range []string{"default/p FailedScheduling", "default/p Scheduled", "default/p Seen"} {
		if !slices.Contains(reasons, want) {
			t.Errorf("events %v, want %s", reasons, want)
		}
	}
	infos, err := c.Handle().SnapshotSharedLister().NodeInfos().List()
	if err != nil || len(infos) != 1 || len(infos[0].GetPods()) > 1 {
		t.Errorf("the lister of the Handle: %v, %v", infos, err)
	}
	c.Delete(pod)
	if got := c.Pod("p"); !got.Gone {
		t.Errorf("deleted: %+v", got)
	}
	if n := c.Plugin("Pairs").(*pairs).list(); n != 0 {
		t.Errorf("the informer has %d pods", n)
	}
}

// TestBindsAndProblems: a bind of a plugin is read back, and misbehaviour is reported.
func TestBindsAndProblems(t *testing.T) {
	c := startPairs(t)
	for _, bad := range []string{"bind", "no", "filter"} {
		c.Set(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: bad, Labels: map[string]string{"bad": bad}}})
	}
	c.Set(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	c.Advance(10 * time.Second)
	if got := c.Pod("bind"); got.Node != "" || !strings.Contains(got.Message, `and it is on ""`) {
		t.Errorf("a bind that was not made: %+v", got)
	}
	if got := c.Pod("no"); got.Node != "n" {
		t.Errorf("a bind by the plugin: %+v", got)
	}
	problems := c.Problems()
	if len(problems) == 0 || problems[0].Plugin != "Pairs" || !strings.Contains(problems[0].Err.Error(), "Filter is broken") {
		t.Errorf("problems %v", problems)
	}
}

// TestEvictions: victims are deleted at once, and the pod runs.
func TestEvictions(t *testing.T) {
	c := startPairs(t)
	high, cpu := int32(10), "{containers: [{name: main, resources: {requests: {cpu: 3}}}]}"
	c.Apply("apiVersion: v1\nkind: Node\nmetadata: {name: node}\n---\napiVersion: v1\nkind: Pod\nmetadata: {name: low}\nspec: " +
		cpu)
	objects, err := parse("apiVersion: v1\nkind: Pod\nmetadata: {name: high}\nspec: " + cpu)
	if err != nil {
		t.Fatal(err)
	}
	objects[0].(*v1.Pod).Spec.Priority = &high
	c.Set(objects...)
	c.Advance(time.Minute)
	if low, got := c.Pod("low"), c.Pod("high"); !low.Gone || got.Node != "node" {
		t.Errorf("low %+v, high %+v", low, got)
	}
}

// TestBadManifests names the document.
func TestBadManifests(t *testing.T) {
	for text, wrong := range map[string]string{ // order: each is parsed
		"apiVersion: v1\nkind: Pod\n---\napiVersion: v1\nkind: Pood\n": "document 2",
		"apiVersion: v1\nkind: [":                                      "document 1",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%q: %v, want %s", text, err, wrong)
		}
	}
	bad := framework.Registration{Name: "Pairs", Factory: func(context.Context, runtime.Object, fwk.Handle) (fwk.Plugin, error) {
		return nil, fmt.Errorf("no licence")
	}}
	if _, err := start(t, Options{Plugins: []framework.Registration{bad}}); err == nil || !strings.Contains(err.Error(), "no licence") {
		t.Errorf("a factory that fails: %v", err)
	}
}
