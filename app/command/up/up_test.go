// SPDX-License-Identifier: Apache-2.0

package up

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// TestDemoScales: the demonstration fits the nodes it is made for. The mutant is a decoder that reads numbers as
// floats, which scale then does not find.
func TestDemoScales(t *testing.T) {
	for n, want := range map[int]wanted{
		100: {{"Deployment", "demo", "web"}: 240, {"Deployment", "demo", "cache"}: 80, {"Job", "demo", "report"}: 60,
			{"Job", "demo", "train"}:       20,
			{"DaemonSet", "demo", "agent"}: -1, {"Pod", "demo", "huge-pages"}: 1, {"Pod", "demo", "too-big"}: 1,
			{"Pod", "demo", "gated"}: 1},
		5: {{"Deployment", "demo", "web"}: 12, {"Deployment", "demo", "cache"}: 4, {"Job", "demo", "report"}: 3,
			{"Job", "demo", "train"}:       1,
			{"DaemonSet", "demo", "agent"}: -1, {"Pod", "demo", "huge-pages"}: 1, {"Pod", "demo", "too-big"}: 1,
			{"Pod", "demo", "gated"}: 1},
	} {
		objects, err := demoObjects(n)
		if err != nil {
			t.Fatal(err)
		}
		if objects[0].GetKind() != "Namespace" {
			t.Errorf("the namespace must come first, got %s", objects[0].GetKind())
		}
		got := wantedOf(objects)
		for key, pods := range want {
			if got[key] != pods {
				t.Errorf("%d nodes: %v makes %d pods, want %d", n, key, got[key], pods)
			}
		}
		if len(got) != len(want) {
			t.Errorf("%d nodes: got %v", n, got)
		}
	}
}

// TestDecode: documents, lists, comments and mistakes.
func TestDecode(t *testing.T) {
	objects, err := decode(strings.NewReader("# nothing\n---\napiVersion: v1\nkind: List\nitems:\n- {apiVersion: " +
		"v1, kind: Pod, metadata: {name: a}}\n---\n{apiVersion: v1, kind: Pod, metadata: {name: b}}\n"))
	if err != nil || len(objects) != 2 || objects[0].GetName() != "a" || objects[1].GetName() != "b" {
		t.Errorf("got %v, %v", objects, err)
	}
	for _, text := range []string{"kind: Pod\n", "apiVersion: v1\n", "{"} {
		if _, err := decode(strings.NewReader(text)); err == nil {
			t.Errorf("%q was read", text)
		}
	}
}

// TestNodeSpec: the shapes add up.
func TestNodeSpec(t *testing.T) {
	for n, want := range map[int]string{1: "count: 1", 5: "count: 3", 100: "count: 80"} {
		if got := nodeSpec(n); !strings.Contains(got, want) || strings.Contains(got, "gpu") != (n >= MinNodes) {
			t.Errorf("%d nodes: %s", n, got)
		}
	}
}

// scenario is a tracker with a clock that moves by hand.
type scenario struct {
	*tracker
	at time.Time
}

func newScenario() *scenario {
	s := &scenario{at: time.Unix(1000, 0)}
	s.tracker = newTracker(func() time.Time { return s.at })
	return s
}

// after lets time pass and shows a pod.
func (s *scenario) after(d time.Duration, name, node string, phase v1.PodPhase, change ...func(*v1.Pod)) {
	s.at = s.at.Add(d)
	controller := true
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "demo", Name: name, UID: types.UID(name),
		Labels:          map[string]string{"pod-template-hash": "77"},
		OwnerReferences: []metav1.OwnerReference{{Kind: "ReplicaSet", Name: "web-77", Controller: &controller}}}}
	p.Spec.NodeName, p.Status.Phase = node, phase
	for _, c := range change {
		c(p)
	}
	s.see(p)
}

func unschedulable(p *v1.Pod) {
	p.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse}}
}

// TestTracker follows three pods of a deployment until they have settled.
func TestTracker(t *testing.T) {
	s := newScenario()
	want := wanted{{"Deployment", "demo", "web"}: 3}
	s.after(0, "a", "", v1.PodPending)
	s.after(0, "b", "", v1.PodPending)
	s.after(10*time.Millisecond, "a", "n1", v1.PodPending)
	if sum := s.summary(); sum.settled || want.reached(sum) || sum.bound != 1 || sum.waiting != 1 {
		t.Errorf("half way: %+v", sum)
	}
	s.after(10*time.Millisecond, "b", "n2", v1.PodRunning)
	s.after(0, "a", "n1", v1.PodRunning)
	s.after(0, "c", "", v1.PodPending)
	if sum := s.summary(); sum.settled {
		t.Errorf("a pod without an answer counts as settled: %+v", sum)
	}
	s.after(time.Second, "c", "", v1.PodPending, unschedulable)
	s.at = s.at.Add(5 * time.Second)
	sum := s.summary()
	if !sum.settled || !want.reached(sum) || sum.quiet != 5*time.Second || len(sum.pending) != 1 ||
		sum.pending[0].name != "c" {
		t.Errorf("settled: %+v", sum)
	}
	if sum.p50 != 10*time.Millisecond || sum.p99 != 20*time.Millisecond || sum.perSecond != 100 {
		t.Errorf("latency %s %s, %f pods/s", sum.p50, sum.p99, sum.perSecond)
	}
	if row := sum.workloads[0]; row.workload != (workload{"Deployment", "demo", "web"}) || row.pods != 3 ||
		row.running != 2 || row.nodes != 2 {
		t.Errorf("row: %+v", row)
	}
	// A pod that the kubelet refuses is a failure, and one that is deleted while it waits is forgotten.
	s.after(0, "b", "n2", v1.PodFailed)
	s.lose(&v1.Pod{ObjectMeta: metav1.ObjectMeta{UID: "c"}})
	if sum := s.summary(); sum.failed != 1 || len(sum.failures) != 1 || sum.waiting != 0 {
		t.Errorf("in the end: %+v", sum)
	}
}

// TestQuantile: nearest rank.
func TestQuantile(t *testing.T) {
	var values []time.Duration
	for i := range 200 {
		values = append(values, time.Duration(i+1))
	}
	if quantile(nil, 99) != 0 || quantile(values[:1], 99) != 1 || quantile(values, 50) != 100 ||
		quantile(values, 99) != 198 {
		t.Error("quantiles are off")
	}
}
