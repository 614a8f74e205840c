// SPDX-License-Identifier: Apache-2.0

package podgc

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/cache"
	clocktesting "k8s.io/utils/clock/testing"
)

var epoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// cluster is an API server and the caches of a collector that watches it.
type cluster struct {
	*Collector
	t           *testing.T
	api         *fake.Clientset
	clock       *clocktesting.FakePassiveClock
	pods, nodes cache.Indexer
}

func newCluster(t *testing.T, threshold int) *cluster {
	t.Helper()
	indexer := func() cache.Indexer { return cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{}) }
	w := &cluster{t: t, api: fake.NewClientset(), clock: clocktesting.NewFakePassiveClock(epoch), pods: indexer(),
		nodes: indexer()}
	w.Collector = &Collector{client: w.api, pods: corelisters.NewPodLister(w.pods),
		nodes: corelisters.NewNodeLister(w.nodes), threshold: threshold, clock: w.clock,
		missing: map[string]time.Time{}}
	return w
}

// node adds a node to the API server and to the cache.
func (w *cluster) node(n *v1.Node) {
	w.t.Helper()
	if _, err := w.api.CoreV1().Nodes().Create(w.t.Context(), n, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.cached(w.nodes, n)
}

// pod adds a pod to the API server and to the cache.
func (w *cluster) pod(p *v1.Pod) {
	w.t.Helper()
	if _, err := w.api.CoreV1().Pods(p.Namespace).Create(w.t.Context(), p, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.cached(w.pods, p)
}

func (w *cluster) cached(in cache.Indexer, object runtime.Object) {
	w.t.Helper()
	if err := in.Add(object); err != nil {
		w.t.Fatal(err)
	}
}

// pass advances the clock, makes one pass, and returns its writes: "fail a", "delete a". The cache follows.
func (w *cluster) pass(after time.Duration) []string {
	w.t.Helper()
	w.clock.SetTime(w.clock.Now().Add(after))
	w.api.ClearActions()
	w.collect(w.t.Context())
	var writes []string
	for _, action := range w.api.Actions() {
		switch a := action.(type) {
		case clienttesting.PatchAction:
			if a.GetSubresource() != "status" {
				w.t.Errorf("patch of %q, want only status", a.GetSubresource())
			}
			writes = append(writes, "fail "+a.GetName())
		case clienttesting.DeleteAction:
			if grace := a.GetDeleteOptions().GracePeriodSeconds; grace == nil || *grace != 0 {
				w.t.Errorf("pod %s is deleted with the grace period %v, want 0", a.GetName(), grace)
			}
			writes = append(writes, "delete "+a.GetName())
			w.forget(a.GetName())
		}
	}
	return writes
}

func (w *cluster) forget(name string) {
	w.t.Helper()
	if err := w.pods.Delete(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}}); err != nil {
		w.t.Fatal(err)
	}
}

func pod(name, node string, edit ...func(*v1.Pod)) *v1.Pod {
	p := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, CreationTimestamp: metav1.NewTime(epoch)},
		Spec:       v1.PodSpec{NodeName: node},
		Status:     v1.PodStatus{Phase: v1.PodRunning},
	}
	for _, e := range edit {
		e(p)
	}
	return p
}

func phase(phase v1.PodPhase) func(*v1.Pod) { return func(p *v1.Pod) { p.Status.Phase = phase } }

func evictedByKubelet(p *v1.Pod) { p.Status.Phase, p.Status.Reason = v1.PodFailed, "Evicted" }

func createdAt(second int) func(*v1.Pod) {
	return func(p *v1.Pod) { p.CreationTimestamp = metav1.NewTime(epoch.Add(time.Duration(second) * time.Second)) }
}

func terminating(p *v1.Pod) {
	now := metav1.NewTime(epoch)
	p.DeletionTimestamp, p.Finalizers = &now, []string{"example.com/keep"}
}

func node(name string, ready v1.ConditionStatus, taints ...string) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: ready}}
	for _, key := range taints {
		n.Spec.Taints = append(n.Spec.Taints, v1.Taint{Key: key, Effect: v1.TaintEffectNoExecute})
	}
	return n
}

// TestPodsOfANodeThatIsGone: the pods of a deleted node are marked Failed with the condition that their owners read,
// and deleted, but only after the node has been missing for the quarantine.
func TestPodsOfANodeThatIsGone(t *testing.T) {
	w := newCluster(t, 100)
	w.node(node("here", v1.ConditionTrue))
	w.pod(pod("stays", "here"))
	w.pod(pod("orphan", "gone"))
	w.pod(pod("ended", "gone", phase(v1.PodSucceeded)))
	for _, after := range []time.Duration{0, period, 19 * time.Second} {
		if writes := w.pass(after); len(writes) > 0 {
			t.Fatalf("%v after the node is missing: %v", w.clock.Now().Sub(epoch), writes)
		}
	}
	var marked *v1.Pod
	w.api.PrependReactor("delete", "pods", func(a clienttesting.Action) (bool, runtime.Object, error) {
		if a.(clienttesting.DeleteAction).GetName() == "orphan" {
			object, err := w.api.Tracker().Get(v1.SchemeGroupVersion.WithResource("pods"), "default", "orphan")
			if err != nil {
				t.Error(err)
				return false, nil, nil
			}
			marked = object.(*v1.Pod)
		}
		return false, nil, nil
	})
	got := w.pass(time.Second)
	slices.Sort(got)
	if want := []string{"delete ended", "delete orphan", "fail orphan"}; !slices.Equal(got, want) {
		t.Fatalf("after 40 s: %v, want %v", got, want)
	}
	if marked == nil || marked.Status.Phase != v1.PodFailed || len(marked.Status.Conditions) != 1 {
		t.Fatalf("the pod before its deletion: %+v", marked)
	}
	c := marked.Status.Conditions[0]
	if c.Type != v1.DisruptionTarget || c.Status != v1.ConditionTrue || c.Reason != "DeletionByPodGC" ||
		c.Message != "PodGC: node no longer exists" {
		t.Errorf("condition %+v", c)
	}
	if writes := w.pass(period); len(writes) > 0 {
		t.Errorf("a pass later: %v", writes)
	}
}

// TestANodeThatTheCacheLacksIsAskedFor: the API server decides. A node that it has, and one about which it gives no
// answer, keep their pods; the second is asked for again after another quarantine.
func TestANodeThatTheCacheLacksIsAskedFor(t *testing.T) {
	w := newCluster(t, 100)
	w.node(node("late", v1.ConditionTrue))
	if err := w.nodes.Delete(node("late", v1.ConditionTrue)); err != nil {
		t.Fatal(err)
	}
	w.pod(pod("a", "late"))
	w.pod(pod("b", "unknown"))
	w.node(node("back", v1.ConditionTrue))
	w.pod(pod("c", "back"))
	broken := true
	w.api.PrependReactor("get", "nodes", func(a clienttesting.Action) (bool, runtime.Object, error) {
		return broken && a.(clienttesting.GetAction).GetName() == "unknown", nil, errors.New("no answer")
	})
	for _, after := range []time.Duration{0, quarantine} {
		if writes := w.pass(after); len(writes) > 0 {
			t.Fatalf("writes without knowledge: %v", writes)
		}
	}
	broken = false
	for _, after := range []time.Duration{period, period} {
		if writes := w.pass(after); len(writes) > 0 {
			t.Fatalf("the second quarantine has not ended: %v", writes)
		}
	}
	if got, want := w.pass(period), []string{"fail b", "delete b"}; !slices.Equal(got, want) {
		t.Errorf("after the second quarantine: %v, want %v", got, want)
	}
}

// TestANodeThatComesBackKeepsItsPods: the cache has it again, so no request is made.
func TestANodeThatComesBackKeepsItsPods(t *testing.T) {
	w := newCluster(t, 100)
	w.pod(pod("a", "n"))
	w.pass(0)
	w.node(node("n", v1.ConditionTrue))
	w.pass(quarantine)
	if requests := w.api.Actions(); len(requests) > 0 {
		t.Errorf("the node is back: %v", requests)
	}
}

// TestWhatIsDeletedInOnePass has one row for each rule that needs no quarantine.
func TestWhatIsDeletedInOnePass(t *testing.T) {
	const out = v1.TaintNodeOutOfService
	for _, c := range []struct {
		name      string
		threshold int
		nodes     []*v1.Node
		pods      []*v1.Pod
		want      []string
	}{
		{"pods that run or wait stay", 1, []*v1.Node{node("n", v1.ConditionTrue)},
			[]*v1.Pod{pod("runs", "n"), pod("waits", "", phase(v1.PodPending)),
				pod("lost", "n", phase(v1.PodUnknown))}, nil},
		{"a pod that was deleted before it was scheduled goes", 1, nil,
			[]*v1.Pod{pod("a", "", phase(v1.PodPending), terminating)}, []string{"fail a", "delete a"}},
		{"a terminating pod waits for its kubelet", 1, []*v1.Node{node("n", v1.ConditionTrue)},
			[]*v1.Pod{pod("a", "n", terminating)}, nil},
		{"a node out of service has no kubelet", 1, []*v1.Node{node("n", v1.ConditionUnknown, out)},
			[]*v1.Pod{pod("a", "n", terminating), pod("b", "n")}, []string{"fail a", "delete a"}},
		{"a node that is ready has one", 1, []*v1.Node{node("n", v1.ConditionTrue, out)},
			[]*v1.Pod{pod("a", "n", terminating)}, nil},
		{"a node that is only not ready may come back", 1, []*v1.Node{node("n", v1.ConditionFalse, "other")},
			[]*v1.Pod{pod("a", "n", terminating)}, nil},
		{"terminated pods up to the threshold stay", 2, []*v1.Node{node("n", v1.ConditionTrue)},
			[]*v1.Pod{pod("a", "n", phase(v1.PodFailed)), pod("b", "n", phase(v1.PodSucceeded)), pod("c", "n")}, nil},
		{"above the threshold, evicted pods go first, then the oldest, then by name", 1,
			[]*v1.Node{node("n", v1.ConditionTrue)},
			[]*v1.Pod{
				pod("young", "n", phase(v1.PodSucceeded), createdAt(9)),
				pod("old", "n", phase(v1.PodFailed), createdAt(1)),
				pod("second", "n", phase(v1.PodFailed), createdAt(5)),
				pod("first", "n", phase(v1.PodFailed), createdAt(5)),
				pod("evicted", "n", evictedByKubelet, createdAt(20)),
			}, []string{"delete evicted", "delete first", "delete old", "delete second"}},
		{"the last of them by name", 2, []*v1.Node{node("n", v1.ConditionTrue)},
			[]*v1.Pod{pod("c", "n", phase(v1.PodFailed)), pod("a", "n", phase(v1.PodFailed)),
				pod("b", "n", phase(v1.PodFailed))}, []string{"delete a"}},
		{"the oldest pods above the threshold go", 1, []*v1.Node{node("n", v1.ConditionTrue)},
			[]*v1.Pod{pod("a-young", "n", phase(v1.PodFailed), createdAt(2)),
				pod("old", "n", phase(v1.PodFailed), createdAt(1))}, []string{"delete old"}},
		{"evicted before old", 1, []*v1.Node{node("n", v1.ConditionTrue)},
			[]*v1.Pod{pod("old", "n", phase(v1.PodFailed), createdAt(1)),
				pod("evicted", "n", evictedByKubelet, createdAt(9))}, []string{"delete evicted"}},
		{"a threshold of 0 keeps all", 0, []*v1.Node{node("n", v1.ConditionTrue)},
			[]*v1.Pod{pod("a", "n", phase(v1.PodFailed))}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newCluster(t, c.threshold)
			for _, n := range c.nodes {
				w.node(n)
			}
			for _, p := range c.pods {
				w.pod(p)
			}
			got := w.pass(0)
			if len(got) > 2 {
				slices.Sort(got) // deletions run side by side
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("writes %v, want %v", got, c.want)
			}
		})
	}
}

// TestAPodThatCannotBeMarkedStays: the phase is what its owner counts, so the pod is not deleted without it, and the
// next pass tries again.
func TestAPodThatCannotBeMarkedStays(t *testing.T) {
	w := newCluster(t, 100)
	w.pod(pod("a", "", terminating))
	broken := true
	w.api.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
		return broken, nil, errors.New("no write")
	})
	if got := w.pass(0); !slices.Equal(got, []string{"fail a"}) {
		t.Errorf("writes %v, want an attempt to mark the pod alone", got)
	}
	broken = false
	if got := w.pass(period); !slices.Equal(got, []string{"fail a", "delete a"}) {
		t.Errorf("writes of the next pass: %v", got)
	}
}

// TestManyPodsGoInOnePass.
func TestManyPodsGoInOnePass(t *testing.T) {
	w := newCluster(t, 10)
	w.node(node("n", v1.ConditionTrue))
	for i := range 300 {
		w.pod(pod(fmt.Sprintf("p%03d", i), "n", phase(v1.PodSucceeded)))
	}
	if got := w.pass(0); len(got) != 290 {
		t.Errorf("%d deletions, want 290", len(got))
	}
}
