// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

var objectScenarios = []scenario{
	{"delete pods at once", deletesAtOnce},
	{"delete pods at a rate", deletesAtRate},
	{"delete pods in the background", deletesBeside},
	{"churn that creates", churnCreates},
	{"churn that creates and deletes", churnRecreates},
	{"churn that fails", churnFails},
	{"create any object", createsAny},
	{"create objects of a new kind", createsNewKind},
	{"create objects in the wrong place", createsNowhere},
	{"update objects", updatesAny},
	{"update objects at a rate", updatesAtRate},
	{"update subresources", updatesSubresources},
}

// configMaps are the names of those in a namespace.
func (g *ground) configMaps(t *testing.T, namespace string) []string {
	t.Helper()
	list, err := g.client.CoreV1().ConfigMaps(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return names(list.Items)
}

// kept and gone are pods that a selector tells apart. They have no node, so that no kubelet has to end them.
func keptAndGone(namespace string) []workload.Op {
	return []workload.Op{
		&workload.CreatePods{Count: 2, SkipWait: true, Namespace: namespace, Template: manifest(strings.NewReplacer("gated-", "kept-", "kind: gated", "kind: kept").Replace(gated))},
		&workload.CreatePods{Count: 3, SkipWait: true, Namespace: namespace, Template: manifest(gated)},
	}
}

// Catches: a selector that is dropped, so that all pods of the namespace go; pods of another namespace that go as well.
func deletesAtOnce(t *testing.T, g *ground) {
	ops := append(keptAndGone("delete-other"), keptAndGone("delete")...)
	g.run(t, g.env(), append(ops, &workload.DeletePods{Namespace: "delete", Labels: map[string]string{"kind": "gated"}})...)
	wantNames(t, "pods that are left", names(g.pods(t, "delete")), serials("kept-", 2, 2))
	if n := len(g.pods(t, "delete-other")); n != 5 {
		t.Errorf("%d pods are left in the other namespace, want all 5", n)
	}
	g.run(t, g.env(), &workload.DeletePods{Namespace: "delete"})
	wantNames(t, "pods that are left without a selector", names(g.pods(t, "delete")), nil)
}

// Catches: a rate that is not kept, or counted from the end of the delete before, which makes it lower than it says; an
// operation that does not wait for its deletes; a pod that is gone already taken for a failure.
func deletesAtRate(t *testing.T, g *ground) {
	g.run(t, g.env(), keptAndGone("delete-rate")...)
	clock := newHands()
	env := g.env()
	env.Clock, env.Watch = clock, NewWatch(clock)
	r := g.start(t, env, &workload.DeletePods{Namespace: "delete-rate", PerSecond: 4})
	left := func(n int) func() bool { return func() bool { return len(g.pods(t, "delete-rate")) == n } }
	due := func(d time.Duration) func() bool {
		return func() bool { return len(clock.pending()) == 1 && clock.pending()[0] == d }
	}
	eventually(t, "a timer for the first delete", due(250*time.Millisecond))
	if !left(5)() {
		t.Fatal("a pod is deleted before its turn")
	}
	clock.move(250 * time.Millisecond)
	eventually(t, "one delete", left(4))
	eventually(t, "a timer for the second delete", due(250*time.Millisecond))
	// The third is not late because the second was.
	clock.move(400 * time.Millisecond)
	eventually(t, "another delete", left(3))
	eventually(t, "a timer for the third delete", due(100*time.Millisecond))
	if !r.running() {
		t.Fatalf("the operation has ended and pods are left: %v", r.err)
	}
	last := g.pods(t, "delete-rate")[2].Name
	if err := g.client.CoreV1().Pods("delete-rate").Delete(t.Context(), last, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	clock.move(time.Second)
	r.over(t)
	wantNames(t, "pods that are left", names(g.pods(t, "delete-rate")), nil)
}

// Catches: SkipWait that waits; deletes that go on when the plan has ended.
func deletesBeside(t *testing.T, g *ground) {
	clock := newHands()
	env := g.env()
	env.Clock, env.Watch = clock, NewWatch(clock)
	ops := append(keptAndGone("delete-beside"), &workload.DeletePods{Namespace: "delete-beside", PerSecond: 1, SkipWait: true},
		&workload.Sleep{Duration: 90 * time.Second})
	r := g.start(t, env, ops...)
	eventually(t, "the sleep beside the first delete", func() bool { return len(clock.pending()) == 2 })
	clock.move(2 * time.Second)
	eventually(t, "two deletes", func() bool { return len(g.pods(t, "delete-beside")) == 3 })
	eventually(t, "a timer for the third", func() bool { return len(clock.pending()) == 2 && clock.pending()[0] == time.Second })
	if !r.running() {
		t.Fatalf("the plan has ended before its sleep: %v", r.err)
	}
	g.endWithout(t, clock, r, func() int { return len(g.pods(t, "delete-beside")) })
}

// endWithout ends a plan that was given up, and makes sure that its background work does nothing more.
func (g *ground) endWithout(t *testing.T, clock *hands, r *going, count func() int) {
	t.Helper()
	before := count()
	r.stop()
	<-r.ended
	clock.move(time.Hour)
	time.Sleep(50 * time.Millisecond) // for what goes on and should not
	if after := count(); after != before {
		t.Errorf("%d objects when the plan ended, %d later", before, after)
	}
}

const churned = "apiVersion: v1\nkind: ConfigMap\nmetadata: {generateName: churned-, labels: {round: \"{{.Index}}\"}}"

// Catches: a churn that is waited for; a template that is left out of a round; a round too many; objects of the cluster
// that are looked for in the namespace; a churn without Number that ends by itself.
func churnCreates(t *testing.T, g *ground) {
	clock := newHands()
	env := g.env()
	env.Clock, env.Watch = clock, NewWatch(clock)
	r := g.start(t, env,
		&workload.Churn{Number: 2, Interval: time.Second, Namespace: "churn", Templates: []workload.Template{
			*manifest(churned), *manifest("apiVersion: v1\nkind: Node\nmetadata: {generateName: churned-}"),
			*manifest("apiVersion: v1\nkind: Pod\n" + strings.TrimPrefix(gated, "\n"))}},
		&workload.Churn{Interval: time.Minute, Templates: []workload.Template{*manifest(churned)}},
		&workload.Sleep{Duration: 10 * time.Hour})
	eventually(t, "both churns and the sleep", func() bool { return len(clock.pending()) == 3 })
	if n := len(g.configMaps(t, "churn")); n != 0 {
		t.Fatalf("%d objects before the first interval is over", n)
	}
	clock.move(time.Second)
	eventually(t, "one round", func() bool {
		return len(g.configMaps(t, "churn")) == 1 && len(g.nodes(t, "churned-")) == 1 && len(g.pods(t, "churn")) == 1
	})
	eventually(t, "a timer for the second round", func() bool { return len(clock.pending()) == 3 })
	clock.move(9 * time.Second)
	eventually(t, "the second round, and no timer for a third", func() bool { return len(g.pods(t, "churn")) == 2 && len(clock.pending()) == 2 })
	wantNames(t, "objects of two rounds", g.configMaps(t, "churn"), serials("churned-", 0, 2))
	clock.move(5 * time.Minute)
	eventually(t, "five rounds of the endless churn", func() bool { return len(g.configMaps(t, "namespace-1")) == 5 })
	pods := env.Watch.Pods([]string{"churn"}, nil)
	if len(pods) != 2 || pods[0].Op != 0 || pods[0].Asked.IsZero() {
		t.Errorf("the watch knows of the pods of the churn: %+v", pods)
	}
	g.endWithout(t, clock, r, func() int { return len(g.configMaps(t, "namespace-1")) })
}

// Catches: objects that are deleted in the round after they were created, instead of Number rounds later; one that somebody
// else has deleted taken for a failure; a churn that goes on when the plan has ended.
func churnRecreates(t *testing.T, g *ground) {
	clock := newHands()
	env := g.env()
	env.Clock, env.Watch = clock, NewWatch(clock)
	r := g.start(t, env,
		&workload.Churn{Recreate: true, Number: 2, Interval: time.Second, Namespace: "recreate", Templates: []workload.Template{*manifest(churned)}},
		&workload.Sleep{Duration: 10 * time.Hour})
	round := func(n int, want ...string) {
		t.Helper()
		eventually(t, fmt.Sprintf("a timer for round %d", n), func() bool { return len(clock.pending()) == 2 })
		clock.move(time.Second)
		eventually(t, fmt.Sprintf("%v after round %d", want, n), func() bool {
			return strings.Join(g.configMaps(t, "recreate"), " ") == strings.Join(want, " ")
		})
	}
	made := serials("churned-", 0, 6)
	round(0, made[0])
	round(1, made[0], made[1])
	if err := g.client.CoreV1().ConfigMaps("recreate").Delete(t.Context(), made[0], metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	round(2, made[1])
	round(3)
	round(4, made[4])
	round(5, made[4], made[5])
	eventually(t, "a timer for round 6", func() bool { return len(clock.pending()) == 2 })
	g.endWithout(t, clock, r, func() int { return len(g.configMaps(t, "recreate")) })
}

// Catches: a churn that fails in silence (as in scheduler_perf): what is measured then is a workload without a churn.
func churnFails(t *testing.T, g *ground) {
	_, err := Run(t.Context(), g.env(), plan(
		&workload.Churn{Interval: time.Millisecond, Namespace: "churn-fails", Templates: []workload.Template{
			*manifest("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: always-the-same}")}},
		&workload.Sleep{Duration: time.Hour}))
	if err == nil || !strings.HasPrefix(err.Error(), "op 0 (churn): create ConfigMap churn-fails/always-the-same: ") {
		t.Errorf("the error is %v", err)
	}
}

// Catches: one object instead of Count; the index not given to the template; a namespace that is not made; a field that
// the API server does not know accepted.
func createsAny(t *testing.T, g *ground) {
	g.run(t, g.env(),
		&workload.CreateAny{Namespace: "any", Count: 3, Template: *manifest("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: \"any-{{.Index}}-of-{{.Count}}\"}")},
		&workload.CreateAny{Count: 1, Template: *manifest("apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: any-class}\nvalue: 17")})
	wantNames(t, "objects", g.configMaps(t, "any"), []string{"any-0-of-3", "any-1-of-3", "any-2-of-3"})
	class, err := g.client.SchedulingV1().PriorityClasses().Get(t.Context(), "any-class", metav1.GetOptions{})
	if err != nil || class.Value != 17 {
		t.Errorf("the class has value %d, error %v, want 17", class.Value, err)
	}
	_, err = Run(t.Context(), g.env(), plan(&workload.CreateAny{Namespace: "any", Count: 1,
		Template: *manifest("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: typing-error}\ndatta: {}")}))
	if err == nil || !strings.Contains(err.Error(), "op 0 (createAny): create ConfigMap any/typing-error: ") || !strings.Contains(err.Error(), "datta") {
		t.Errorf("an unknown field gives %v", err)
	}
}

// Catches: a kind that was created a moment ago and is not served yet taken for one that does not exist.
func createsNewKind(t *testing.T, g *ground) {
	g.run(t, g.env(),
		&workload.CreateAny{Count: 1, Template: *manifest(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: racks.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {plural: racks, singular: rack, kind: Rack, listKind: RackList}
  versions:
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`)},
		&workload.CreateAny{Namespace: "new-kind", Count: 2, Template: *manifest("apiVersion: example.com/v1\nkind: Rack\nmetadata: {generateName: rack-}")})
	racks := g.dynamic.Resource(schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "racks"}).Namespace("new-kind")
	list, err := racks.List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	wantNames(t, "objects", names(list.Items), serials("rack-", 1, 2))
}

// Catches: objects that are created in another namespace than the workload says.
func createsNowhere(t *testing.T, g *ground) {
	for want, op := range map[string]*workload.CreateAny{
		"ConfigMap misplaced needs a namespace": {Count: 1, Template: *manifest("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: misplaced}")},
		"Node misplaced is of no namespace":     {Count: 1, Namespace: "any", Template: *manifest("apiVersion: v1\nkind: Node\nmetadata: {name: misplaced}")},
	} {
		if _, err := Run(t.Context(), g.env(), plan(op)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
}

// Catches: an update that drops the status (the object does not take it), or that empties the status of an object whose
// template has none; the index not given to the template; the object of another index changed.
func updatesAny(t *testing.T, g *ground) {
	g.scheduler(t, "update", "kind=never")
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: \"pod-{{.Index}}\"}\nspec: {containers: [{name: pause, image: pause}]}"
	g.run(t, g.env(),
		&workload.CreateNodes{Count: 3, Template: manifest("metadata: {name: \"updated-{{.Index}}\"}\nstatus: {allocatable: {cpu: 1}}")},
		&workload.CreatePods{Count: 2, SkipWait: true, Namespace: "update", Template: manifest(pod)},
		&workload.Barrier{Namespaces: []string{"update"}, Stage: workload.Attempted},
		&workload.UpdateAny{Count: 2, Template: *manifest("apiVersion: v1\nkind: Node\nmetadata: {name: \"updated-{{.Index}}\"}\nspec: {unschedulable: true}\nstatus: {allocatable: {cpu: \"{{AddInt .Index 5}}\"}}")},
		&workload.UpdateAny{Count: 2, Namespace: "update", Template: *manifest(strings.Replace(pod, "\"}", "\", labels: {seen: \"{{.Index}}\"}}", 1))})
	for i, n := range g.nodes(t, "updated-") {
		wantCPU, wantCordon := []int64{5, 6, 1}[i], i < 2
		if n.Spec.Unschedulable != wantCordon || n.Status.Allocatable.Cpu().Value() != wantCPU {
			t.Errorf("node %s: unschedulable %v, %d cores, want %v, %d", n.Name, n.Spec.Unschedulable, n.Status.Allocatable.Cpu().Value(), wantCordon, wantCPU)
		}
	}
	for i, p := range g.pods(t, "update") {
		if p.Labels["seen"] != fmt.Sprint(i) || !conditioned(&p) {
			t.Errorf("pod %s has labels %v and conditions %v, want those of its index and the scheduler's", p.Name, p.Labels, p.Status.Conditions)
		}
	}
}

// Catches: a rate that is not kept; an error without the object.
func updatesAtRate(t *testing.T, g *ground) {
	g.run(t, g.env(), &workload.CreateNodes{Count: 2, Template: manifest("metadata: {name: \"paced-{{.Index}}\"}")})
	clock := newHands()
	env := g.env()
	env.Clock, env.Watch = clock, NewWatch(clock)
	r := g.start(t, env, &workload.UpdateAny{Count: 3, PerSecond: 10,
		Template: *manifest("apiVersion: v1\nkind: Node\nmetadata: {name: \"paced-{{.Index}}\"}\nspec: {unschedulable: true}")})
	cordoned := func() (n int) {
		for _, node := range g.nodes(t, "paced-") {
			if node.Spec.Unschedulable {
				n++
			}
		}
		return n
	}
	for want := range 2 {
		eventually(t, "a timer for an update", func() bool { return len(clock.pending()) == 1 && clock.pending()[0] == 100*time.Millisecond })
		if got := cordoned(); got != want {
			t.Fatalf("%d nodes are updated, want %d", got, want)
		}
		clock.move(100 * time.Millisecond)
	}
	eventually(t, "a timer for the update that fails", func() bool { return len(clock.pending()) == 1 })
	clock.move(100 * time.Millisecond)
	<-r.ended
	if r.err == nil || !strings.HasPrefix(r.err.Error(), "op 0 (updateAny): update Node paced-2: ") || cordoned() != 2 {
		t.Errorf("%d nodes are updated, error %v", cordoned(), r.err)
	}
}

// Catches: a subresource that is left out, so that the object is updated and what was meant is dropped; an update of both.
func updatesSubresources(t *testing.T, g *ground) {
	g.scheduler(t, "resize", "")
	pod := "apiVersion: v1\nkind: Pod\nmetadata: {name: resized}\nspec:\n  nodeName: NODE\n  containers: [{name: pause, image: pause, resources: {requests: {cpu: CPU}}}]"
	g.run(t, g.env(),
		&workload.CreatePods{Count: 1, Namespace: "resize", Template: manifest(strings.NewReplacer("  nodeName: NODE\n", "", "CPU", "2").Replace(pod))},
		&workload.UpdateAny{Count: 1, Namespace: "resize", Subresources: []string{"resize"},
			Template: *manifest(strings.NewReplacer("NODE", "somewhere", "CPU", "1").Replace(pod))},
		&workload.CreateNodes{Count: 1, Template: manifest("metadata: {name: substatus}")},
		&workload.UpdateAny{Count: 1, Subresources: []string{"status"},
			Template: *manifest("apiVersion: v1\nkind: Node\nmetadata: {name: substatus}\nspec: {unschedulable: true}\nstatus: {phase: Running}")})
	p := g.pods(t, "resize")[0]
	if got := p.Spec.Containers[0].Resources.Requests.Cpu().String(); got != "1" {
		t.Errorf("the pod asks for %s cores, want 1", got)
	}
	if n := g.nodes(t, "substatus")[0]; n.Spec.Unschedulable || n.Status.Phase != corev1.NodeRunning {
		t.Errorf("the node is %s, unschedulable %v, want the status alone changed", n.Status.Phase, n.Spec.Unschedulable)
	}
	_, err := Run(t.Context(), g.env(), plan(&workload.UpdateAny{Count: 1, Subresources: []string{"nothing"},
		Template: *manifest("apiVersion: v1\nkind: Node\nmetadata: {name: substatus}")}))
	if err == nil || !strings.Contains(err.Error(), "update nothing of Node substatus") {
		t.Errorf("an unknown subresource gives %v", err)
	}
}
