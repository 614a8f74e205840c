// SPDX-License-Identifier: Apache-2.0

package scenario

import (
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/sim"
)

// kumiki is the production engine with the default profile.
func kumiki() []sim.Scheduler {
	p := engine.DefaultProfile(v1.DefaultSchedulerName)
	p.Preemption = &preempt.Config{}
	return []sim.Scheduler{{Name: "kumiki", Make: func() sim.Stepper {
		return engine.New(engine.Config{
			Profiles: []engine.Profile{p}, Less: basic.PrioritySort{}, InitialBackoff: record.Second,
			MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second,
		})
	}}}
}

// result runs a scenario.
func result(t *testing.T, text string) sim.Result {
	t.Helper()
	f, err := Read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	run, err := f.Start(1, kumiki())
	if err != nil {
		t.Fatal(err)
	}
	return run.Finish(nil)
}

// holds checks assertions on a result.
func holds(t *testing.T, r sim.Result, assertions ...string) {
	t.Helper()
	for _, text := range assertions {
		a, err := ParseAssertion(text)
		if err == nil {
			err = a.Check(&r)
		}
		if err != nil {
			t.Error(err)
		}
	}
}

const web = `
until: 2h
nodes: [{name: n, count: 4, zones: 2, capacity: {cpu: 4, memory: 8Gi, pods: 110}}]
workloads: [{name: web, kind: replicaSet, size: 8, requests: {cpu: 1}}]
`

// TestEvents runs each event on a ReplicaSet of eight pods on four nodes of 4 cores in two zones.
func TestEvents(t *testing.T) {
	for _, c := range []struct {
		event string
		want  []string
	}{
		{"failNodes: {labels: {topology.kubernetes.io/zone: zone-0}}", []string{"nodes.end == 2", "pods.lost == 4", "pods.running == 8"}},
		{"removeNodes: {count: 1}", []string{"nodes.end == 3", "pods.lost == 2", "pods.running == 8"}},
		{"drainNodes: {count: 3}", []string{"nodes.end == 4", "pods.drained == 6", "pods.running == 4", "pods.pending == 4"}},
		{"addNodes: {group: n, count: 3}", []string{"nodes.end == 7", "pods.running == 8"}},
		{"scale: {workload: web, size: 16}", []string{"pods.running == 16", "utilisation.end.cpu == 100%"}},
		{"scale: {workload: web, size: 3}", []string{"pods.running == 3"}},
		{"failCalls: {for: 20m}", []string{"pods.running == 8", "failedBinds > 0", "timeToBind.max > 19m"}},
		{"freezeWatch: {for: 20m}", []string{"pods.running == 8", "timeToBind.max > 19m", "failedBinds == 0"}},
		{"taintNodes: {taint: {key: full, effect: NoSchedule}, for: 20m}", []string{"pods.running == 8", "timeToBind.max > 19m"}},
	} {
		at := "events:\n- {at: 10m, " + c.event + "}\n"
		text := web + at
		if strings.Contains(strings.Join(c.want, ""), "19m") { // it happens before the pods are created
			text = strings.Replace(web, "size: 8", "size: 8, first: 1m", 1) + strings.Replace(at, "10m", "30s", 1)
		}
		r := result(t, text)
		t.Log(c.event, r.Reason, r.Seconds)
		holds(t, r, c.want...)
	}
}

// TestBudgetOfScenario: a budget slows a drain; without it, all pods go at once.
func TestBudgetOfScenario(t *testing.T) {
	drain := web + "events:\n- {at: 10m, drainNodes: {count: 2}}\n"
	holds(t, result(t, drain), "pods.drained == 4", "pods.running == 8")
	holds(t, result(t, drain+"budgets: [{name: b, labels: {workload: web}, maxUnavailable: 0}]\n"), "pods.drained == 0")
}

// TestModelOfScenario: values of the model reach the run.
func TestModelOfScenario(t *testing.T) {
	holds(t, result(t, web+"model: {call: 2s, watch: 3s, decision: 10ms, inFlight: 1}\n"), "timeToBind.max > 18s", "timeToBind.max < 20s")
	holds(t, result(t, web+"model: {failedBinds: 50%}\n"), "failedBinds > 0", "pods.running == 8")
}

// TestCaptureContinues: a recording has a running pod, a pending one that arrives later and ends, and a node that goes.
// The pod is placed anew, and arrives and ends at its times.
func TestCaptureContinues(t *testing.T) {
	in := convert.NewIntake()
	node := func(name string) engine.Event {
		n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
		n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("4"), v1.ResourcePods: apiresource.MustParse("110")}
		return engine.NodeSet{Node: in.Node(n)}
	}
	pod := func(name, node string) engine.PodSet {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name)}}
		p.Spec.NodeName, p.Spec.SchedulerName = node, v1.DefaultSchedulerName
		p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("2")}}}}
		return engine.PodSet{Pod: in.Pod(p)}
	}
	began := record.Time(1_700_000_000) * record.Second
	c := &Capture{}
	for _, ev := range []engine.Event{engine.Tick{Now: began}, node("n0"), node("n1"), pod("old", "n0"), engine.Synced{},
		engine.Tick{Now: began + 60*record.Second}, pod("new", ""), engine.Cycle{},
		pod("new", "n1"), // as it was bound then, which is decided anew
		engine.Tick{Now: began + 120*record.Second}, engine.NodeGone{Name: "n0"},
		engine.Tick{Now: began + 180*record.Second}, engine.PodGone{Pod: pod("new", "").Pod.Ref()}} {
		c.Add(ev)
	}
	if c.Began != began || c.Length() != 3*time.Minute {
		t.Errorf("began %d, length %v", c.Began, c.Length())
	}
	run, err := (&File{Traces: []Trace{c}, Until: time.Hour}).Start(1, kumiki())
	if err != nil {
		t.Fatal(err)
	}
	r := run.Finish(nil)
	holds(t, r, "pods.created == 2", "binds == 1", "timeToBind.max < 1s", "nodes.end == 1", "pods.running == 0")
	if r.Seconds < 180 || r.Reason != sim.Finished {
		t.Errorf("ended after %v s, because %s", r.Seconds, r.Reason)
	}
}

// TestCapturedPodsEndAfterTheirBind: in the recording, a client creates a pod, and deletes it 10 ms after its bind,
// which came after 20 ms. Here binds take 5 s; the pod is bound all the same, and deleted 10 ms later. One that was never
// bound is deleted at its time.
func TestCapturedPodsEndAfterTheirBind(t *testing.T) {
	in, ms := convert.NewIntake(), record.Time(time.Millisecond)
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	n.Status.Allocatable = v1.ResourceList{v1.ResourcePods: apiresource.MustParse("110")}
	pod := func(name, node string) engine.PodSet {
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("uid-" + name)}}
		p.Spec.NodeName, p.Spec.SchedulerName = node, v1.DefaultSchedulerName
		return engine.PodSet{Pod: in.Pod(p)}
	}
	began := record.Time(1_700_000_000) * record.Second
	c := &Capture{}
	for _, ev := range []engine.Event{engine.Tick{Now: began}, engine.NodeSet{Node: in.Node(n)}, engine.Synced{},
		engine.Tick{Now: began + record.Second}, pod("a", ""), pod("b", ""),
		engine.Tick{Now: began + record.Second + 20*ms}, pod("a", "n"),
		engine.Tick{Now: began + record.Second + 30*ms}, engine.PodGone{Pod: pod("a", "").Pod.Ref()},
		engine.PodGone{Pod: pod("b", "").Pod.Ref()}} {
		c.Add(ev)
	}
	call := sim.Always(5 * time.Second)
	r, err := (&File{Traces: []Trace{c}, Until: time.Hour, Model: Model{Call: &call}}).Start(1, kumiki())
	if err != nil {
		t.Fatal(err)
	}
	holds(t, r.Finish(nil), "pods.created == 2", "pods.bound == 1", "timeToBind.max >= 5s", "timeToBind.max < 6s",
		"pods.running == 0", "pods.pending == 0")
}

// TestArrivalsAtTheirCreation: a pod that was first seen after 10 s arrives at the time at which it was created.
func TestArrivalsAtTheirCreation(t *testing.T) {
	in := convert.NewIntake()
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}
	n.Status.Allocatable = v1.ResourceList{v1.ResourcePods: apiresource.MustParse("110")}
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "default", UID: "a"}}
	p.Spec.SchedulerName = v1.DefaultSchedulerName
	began := record.Time(1_700_000_000) * record.Second
	c := &Capture{Arrive: func(_ *cluster.Pod, seen record.Time) record.Time { return seen - 3*record.Second }}
	for _, ev := range []engine.Event{engine.Tick{Now: began}, engine.NodeSet{Node: in.Node(n)}, engine.Synced{},
		engine.Tick{Now: began + 10*record.Second}, engine.PodSet{Pod: in.Pod(p)}} {
		c.Add(ev)
	}
	sight := sim.Always(2 * time.Second)
	r, err := (&File{Traces: []Trace{c}, Until: time.Hour, Model: Model{Sight: &sight}}).Start(1, kumiki())
	if err != nil {
		t.Fatal(err)
	}
	r.World.Run(sim.Limits{Until: 7*time.Second + 1})
	got := r.World.Pod("a")
	if got == nil || got.Created != 7*time.Second || got.Record.Created != began+7*record.Second {
		t.Fatalf("after 7 s: %+v, want a pod created then", got)
	}
	holds(t, r.Finish(nil), "timeToBind.max > 2s", "timeToBind.max < 2.1s")
}
