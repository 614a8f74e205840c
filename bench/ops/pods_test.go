// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
)

var podScenarios = []scenario{
	{"pods that are waited for", waitedPods},
	{"pods from a template", templatePods},
	{"pods that are never bound", stuckPods},
	{"pods with volumes", volumePods},
	{"pods at a rate", pacedPods},
	{"pod sets", podSets},
	{"steady state", steadyPods},
	{"steady state without a scheduler", steadyNothing},
	{"barrier until scheduled", barrierScheduled},
	{"barrier until attempted", barrierAttempted},
	{"sleep", sleeps},
	{"metrics", metrics},
}

// gated is a pod that no scheduler may bind.
const gated = `
metadata: {generateName: gated-, labels: {kind: gated}}
spec:
  schedulingGates: [{name: example.com/wait}]
  containers: [{name: pause, image: pause}]
`

// Catches: a wait that ends before the last pod is bound, or counts pods of the namespace that are not the operation's; a
// pod too many; another pod than upstream's default; pods whose time is not known to the watch.
func waitedPods(t *testing.T, g *ground) {
	g.scheduler(t, "waited", "")
	env := g.env()
	g.run(t, env, &workload.CreatePods{Count: 35, Namespace: "waited"}, &workload.CreatePods{Count: 2, Namespace: "waited"})
	pods := g.pods(t, "waited")
	wantNames(t, "pods", names(pods), append(serials("pod-", 0, 35), serials("pod-", 1, 2)...))
	for _, p := range pods {
		if p.Spec.NodeName == "" {
			t.Errorf("pod %s is not bound, and the operation has ended", p.Name)
		}
		needs := p.Spec.Containers[0].Resources
		if needs.Requests.Cpu().String() != "100m" || needs.Requests.Memory().String() != "500Mi" || len(p.Spec.Volumes) != 0 {
			t.Errorf("pod %s asks for %v and has %d volumes", p.Name, needs.Requests, len(p.Spec.Volumes))
		}
	}
	seen := env.Watch.Pods([]string{"waited"}, nil)
	if len(seen) != 37 {
		t.Fatalf("the watch knows %d pods, want 37", len(seen))
	}
	for _, p := range seen {
		if p.Asked.IsZero() || p.Latency() < 0 || math.IsInf(p.Latency(), 0) || p.Node != "somewhere" || p.Attempted.After(p.Bound) {
			t.Errorf("the watch knows of a bound pod: %+v", p)
		}
	}
	if seen[0].Op != 0 || seen[36].Op != 1 {
		t.Errorf("the first pod is of operation %d and the last of %d, want 0 and 1", seen[0].Op, seen[36].Op)
	}
}

// Catches: SkipWait that waits; the default of the case preferred to the template of the operation; the index of a pod
// that depends on which creator took it; a namespace for operations without one that is not namespace-N.
func templatePods(t *testing.T, g *ground) {
	p := plan(&workload.Sleep{}, &workload.Sleep{},
		&workload.CreatePods{Count: 3, SkipWait: true, Template: manifest(strings.Replace(gated, "kind: gated", `index: "{{.Index}}/{{.Count}}"`, 1))})
	p.Ops[2].(*workload.CreatePods).Template.Text = strings.Replace(p.Ops[2].(*workload.CreatePods).Template.Text, "/", "of", 1)
	p.DefaultPod = manifest(strings.Replace(gated, "kind: gated", "kind: default", 1))
	p.Ops = append(p.Ops, &workload.CreatePods{Count: 1, SkipWait: true, Namespace: "templates"})
	if _, err := Run(t.Context(), g.env(), p); err != nil {
		t.Fatal(err)
	}
	for i, pod := range g.pods(t, "namespace-2") {
		if want := fmt.Sprintf("%dof3", i); pod.Labels["index"] != want || pod.Name != serials("gated-", 2, 3)[i] {
			t.Errorf("pod %d is %s with index %q, want %q", i, pod.Name, pod.Labels["index"], want)
		}
	}
	if n := len(g.pods(t, "namespace-2")); n != 3 {
		t.Errorf("%d pods, want 3", n)
	}
	if pods := g.pods(t, "templates"); len(pods) != 1 || pods[0].Labels["kind"] != "default" {
		t.Errorf("an operation without a template makes %d pods, want one like the default of the case", len(pods))
	}
}

// Catches: a run that hangs where a scheduler does not bind; pods that are left out because they have no latency,
// which makes a scheduler that drops pods look fast. A run that is kept alive by the pods of a churn, for which no
// operation waits; an error without the scheduler's reason for the pods.
func stuckPods(t *testing.T, g *ground) {
	g.scheduler(t, "stuck", "kind=no")
	env := g.env()
	env.Patience = 300 * time.Millisecond
	g.scheduler(t, "alive", "")
	alive := &workload.Churn{Namespace: "alive", Interval: 50 * time.Millisecond,
		Templates: []workload.Template{*manifest("{apiVersion: v1, kind: Pod, metadata: {generateName: alive-}, spec: {containers: [{name: pause, image: pause}]}}")}}
	_, err := Run(t.Context(), env, plan(&workload.CreatePods{Count: 7, Namespace: "stuck", SkipWait: true}, alive,
		&workload.Barrier{Namespaces: []string{"stuck"}, Stage: workload.Scheduled}))
	var unfinished *Unfinished
	if !errors.As(err, &unfinished) || unfinished.Left != 7 || unfinished.Of != 7 || len(unfinished.Names) != named ||
		!strings.HasPrefix(unfinished.Names[0], "stuck/pod-0-") || unfinished.Why != "not for me" {
		t.Fatalf("the error is %v", err)
	}
	for _, p := range env.Watch.Pods([]string{"stuck"}, nil) {
		if !math.IsInf(p.Latency(), 1) {
			t.Errorf("pod %s was never bound and has a latency of %v s", p.Name, p.Latency())
		}
	}
}

// Catches: a volume and a claim that do not point at each other, or that the API server still takes for unbound; two pods
// with one claim; a claim that is not called as templates of other pods call it; a volume handle that all volumes share, which attach limits count as one.
func volumePods(t *testing.T, g *ground) {
	g.scheduler(t, "volumes", "")
	g.run(t, g.env(), &workload.CreatePods{
		Count: 3, Namespace: "volumes",
		Volume: manifest("spec: {accessModes: [ReadOnlyMany], capacity: {storage: 1Gi}, csi: {driver: a.example.com}}"),
		Claim: manifest(`metadata: {annotations: {pv.kubernetes.io/bind-completed: "true"}}
spec: {accessModes: [ReadOnlyMany], storageClassName: "", resources: {requests: {storage: 1Gi}}}`),
	})
	pods := g.pods(t, "volumes")
	if len(pods) != 3 {
		t.Fatalf("%d pods, want 3", len(pods))
	}
	handles := map[string]bool{} // volume handle -> seen
	for i, p := range pods {
		if len(p.Spec.Volumes) != 1 || p.Spec.Volumes[0].PersistentVolumeClaim == nil {
			t.Fatalf("pod %s has volumes %v, want a claim", p.Name, p.Spec.Volumes)
		}
		claim, err := g.client.CoreV1().PersistentVolumeClaims("volumes").Get(t.Context(), p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if want := fmt.Sprintf("pvc-%d", i); claim.Name != want {
			t.Errorf("the claim of pod %d is %s, want %s, which other pods name", i, claim.Name, want)
		}
		volume, err := g.client.CoreV1().PersistentVolumes().Get(t.Context(), claim.Spec.VolumeName, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if claim.Status.Phase != corev1.ClaimBound || volume.Status.Phase != corev1.VolumeBound {
			t.Errorf("claim %s is %s and its volume %s, want both Bound", claim.Name, claim.Status.Phase, volume.Status.Phase)
		}
		if ref := volume.Spec.ClaimRef; ref.Namespace != "volumes" || ref.Name != claim.Name || ref.UID != claim.UID {
			t.Errorf("volume %s is that of %s/%s (%s), want claim %s (%s)", volume.Name, ref.Namespace, ref.Name, ref.UID, claim.Name, claim.UID)
		}
		handles[volume.Spec.CSI.VolumeHandle] = true
	}
	if len(handles) != 3 || handles[""] {
		t.Errorf("the handles are %v, want 3 different ones", handles)
	}
}

// Catches: coordinated omission: pods that are asked for late have to be counted from when they were due, not from when the
// program came round to them; a pod that is made before its time.
func pacedPods(t *testing.T, g *ground) {
	clock := newHands()
	env := g.env()
	env.Clock, env.Watch, env.Rate, env.Creators = clock, NewWatch(clock), 10, 1
	began := clock.Now()
	r := g.start(t, env, &workload.CreatePods{Count: 4, Namespace: "paced", SkipWait: true})
	eventually(t, "the first pod, and the next one due in 100 ms", func() bool {
		return len(g.pods(t, "paced")) == 1 && len(clock.pending()) == 1 && clock.pending()[0] == 100*time.Millisecond
	})
	clock.move(time.Second)
	r.over(t)
	for i, p := range env.Watch.Pods([]string{"paced"}, nil) {
		if due := began.Add(time.Duration(i) * 100 * time.Millisecond); !p.Asked.Equal(due) {
			t.Errorf("pod %d counts from %s, want %s", i, p.Asked, due)
		}
	}
	if n := len(g.pods(t, "paced")); n != 4 {
		t.Errorf("%d pods, want 4", n)
	}
}

// Catches: all sets in one namespace; a set more or fewer; the namespace of the inner operation preferred to the set's.
func podSets(t *testing.T, g *ground) {
	g.scheduler(t, metav1.NamespaceAll, "kind=set")
	inner := workload.CreatePods{Count: 2, Namespace: "elsewhere", Template: manifest(strings.NewReplacer("kind: gated", "kind: set",
		"  schedulingGates: [{name: example.com/wait}]\n", "").Replace(gated))}
	g.run(t, g.env(), &workload.CreatePodSets{Count: 3, NamespacePrefix: "sets", Pods: inner})
	for namespace, want := range map[string]int{"sets-0": 2, "sets-1": 2, "sets-2": 2, "sets-3": 0, "elsewhere": 0} {
		if got := len(g.pods(t, namespace)); got != want {
			t.Errorf("%d pods in %s, want %d", got, namespace, want)
		}
	}
}

// Catches: pods that are deleted before they are bound, or not replaced; more or fewer pods at once than Count; a state
// that goes on when its time is over.
func steadyPods(t *testing.T, g *ground) {
	g.scheduler(t, "steady", "")
	clock := newHands()
	env := g.env()
	env.Clock, env.Watch = clock, NewWatch(clock)
	r := g.start(t, env, &workload.CreatePods{Count: 3, Namespace: "steady", Steady: time.Minute})
	eventually(t, "twelve pods that were bound and replaced", func() bool {
		if n := len(g.pods(t, "steady")); n > 3 {
			t.Fatalf("%d pods at once, want 3 at most", n)
		}
		return len(env.Watch.Pods([]string{"steady"}, nil)) >= 15
	})
	if !r.running() {
		t.Fatalf("the operation has ended before its time: %v", r.err)
	}
	clock.move(time.Minute)
	r.over(t)
	asked := len(env.Watch.Pods([]string{"steady"}, nil))
	pods := g.pods(t, "steady")
	if len(pods) != 3 {
		t.Errorf("%d pods are left, want 3", len(pods))
	}
	for i, p := range env.Watch.Pods([]string{"steady"}, nil) {
		if !p.Gone.IsZero() && p.Bound.IsZero() {
			t.Errorf("pod %d, %s, was deleted and never bound", i, p.Name)
		}
	}
	// The run is over: the next pod is not created.
	for _, p := range pods {
		eventually(t, "pods bound after the end", func() bool {
			now, err := g.client.CoreV1().Pods("steady").Get(t.Context(), p.Name, metav1.GetOptions{})
			return err == nil && now.Spec.NodeName != ""
		})
	}
	if now := len(env.Watch.Pods([]string{"steady"}, nil)); now != asked {
		t.Errorf("%d pods after the end, there were %d", now, asked)
	}
}

// Catches: a steady state in which no pod was bound taken for a measurement.
func steadyNothing(t *testing.T, g *ground) {
	_, err := Run(t.Context(), g.env(), plan(&workload.CreatePods{Count: 1, Namespace: "steady-nothing", Steady: 50 * time.Millisecond}))
	if err == nil || !strings.Contains(err.Error(), "no pod was scheduled") {
		t.Errorf("the error is %v", err)
	}
}

// Catches: a barrier that takes an attempt for a node; that waits for pods of other namespaces or without its labels; that
// lets a namespace pass that no operation made, most often a name that is spelled wrong.
func barrierScheduled(t *testing.T, g *ground) {
	g.scheduler(t, "barrier-a", "kind=good")
	good := strings.NewReplacer("kind: gated", "kind: good", "  schedulingGates: [{name: example.com/wait}]\n", "").Replace(gated)
	bad := strings.Replace(good, "kind: good", "kind: bad", 1)
	pods := []workload.Op{
		&workload.CreatePods{Count: 4, SkipWait: true, Namespace: "barrier-a", Template: manifest(good)},
		&workload.CreatePods{Count: 2, SkipWait: true, Namespace: "barrier-a", Template: manifest(strings.Replace(bad, "gated-", "bad-", 1))},
		&workload.CreatePods{Count: 2, SkipWait: true, Namespace: "barrier-b", Template: manifest(gated)},
	}
	g.run(t, g.env(), append(pods, &workload.Barrier{
		Namespaces: []string{"barrier-a"}, Labels: map[string]string{"kind": "good"}, Stage: workload.Scheduled,
	})...)
	for _, p := range g.pods(t, "barrier-a") {
		if p.Labels["kind"] == "good" && p.Spec.NodeName == "" {
			t.Errorf("pod %s has no node, and the barrier has let the plan pass", p.Name)
		}
	}
	for what, op := range map[string]*workload.Barrier{
		"pods without a node": {Namespaces: []string{"barrier-c"}, Stage: workload.Scheduled},
		"all namespaces":      {Stage: workload.Scheduled},
	} {
		env := g.env()
		env.Patience = 300 * time.Millisecond
		waits := []workload.Op{&workload.CreatePods{Count: 1, SkipWait: true, Namespace: "barrier-c", Template: manifest(gated)}, op}
		if what == "all namespaces" {
			waits[0] = &workload.CreatePods{Count: 1, SkipWait: true, Namespace: "barrier-d", Template: manifest(gated)}
		}
		var unfinished *Unfinished
		if _, err := Run(t.Context(), env, plan(waits...)); !errors.As(err, &unfinished) || unfinished.Left != 1 {
			t.Errorf("%s: the barrier ends with %v, want one pod that is missing", what, err)
		}
	}
	if _, err := Run(t.Context(), g.env(), plan(&workload.Barrier{Namespaces: []string{"nowhere"}, Stage: workload.Scheduled})); err == nil ||
		!strings.Contains(err.Error(), "nowhere") {
		t.Errorf("a barrier for a namespace that was not made gives %v", err)
	}
}

// Catches: a barrier for attempts that waits for nodes, or that passes pods that no scheduler has tried.
func barrierAttempted(t *testing.T, g *ground) {
	const plain = "metadata: {generateName: plain-}\nspec: {containers: [{name: pause, image: pause}]}"
	make := &workload.CreatePods{Count: 3, SkipWait: true, Namespace: "attempts", Template: manifest(plain)}
	barrier := &workload.Barrier{Stage: workload.Attempted}
	env := g.env()
	env.Patience = 300 * time.Millisecond
	var unfinished *Unfinished
	if _, err := Run(t.Context(), env, plan(make, barrier)); !errors.As(err, &unfinished) || unfinished.Left != 3 {
		t.Fatalf("without attempts the barrier ends with %v, want 3 pods that are missing", err)
	}
	g.scheduler(t, "attempts", "kind=never")
	make.Template = manifest(strings.Replace(plain, "plain-", "second-", 1))
	env = g.env()
	g.run(t, env, make, barrier)
	for _, p := range env.Watch.Pods([]string{"attempts"}, nil) {
		if p.Op == 0 && (p.Attempted.IsZero() || !p.Bound.IsZero()) {
			t.Errorf("pod %s: attempted %s, bound %s", p.Name, p.Attempted, p.Bound)
		}
	}
}

// Catches: a sleep that is shorter or longer than it says, or that keeps a run that is given up.
func sleeps(t *testing.T, g *ground) {
	clock := newHands()
	env := g.env()
	env.Clock, env.Watch = clock, NewWatch(clock)
	r := g.start(t, env, &workload.Sleep{Duration: time.Hour})
	eventually(t, "a timer of an hour", func() bool { return len(clock.pending()) == 1 && clock.pending()[0] == time.Hour })
	clock.move(time.Hour - time.Nanosecond)
	if len(clock.pending()) != 1 || !r.running() {
		t.Fatal("the sleep was over before its time")
	}
	clock.move(time.Nanosecond)
	r.over(t)

	ctx, giveUp := context.WithCancel(t.Context())
	giveUp()
	if _, err := Run(ctx, g.env(), plan(&workload.Sleep{Duration: time.Hour})); !errors.Is(err, context.Canceled) {
		t.Errorf("a run that is given up ends with %v", err)
	}
}

// Catches: a collection that begins after the pods or ends before they are bound; selectors that do not reach the
// collector; windows of a collection inside another, whose figures mean nothing; one that is never ended.
func metrics(t *testing.T, g *ground) {
	g.scheduler(t, "metrics", "")
	var calls []string
	env := g.env()
	env.Collect = func(ctx context.Context, c Collection) (func(context.Context) error, error) {
		calls = append(calls, fmt.Sprintf("start %d %s %v %v, %d pods", c.Op, c.Name, c.Namespaces, c.Labels, len(g.pods(t, "metrics"))))
		return func(context.Context) error {
			bound := 0
			for _, p := range g.pods(t, "metrics") {
				if p.Spec.NodeName != "" {
					bound++
				}
			}
			calls = append(calls, fmt.Sprintf("stop, %d bound", bound))
			return nil
		}, nil
	}
	out := g.run(t, env,
		&workload.CreatePods{Count: 3, Namespace: "metrics", CollectMetrics: true},
		&workload.StartCollectingMetrics{Name: "second", Namespaces: []string{"metrics"}, Labels: map[string]string{"a": "b"}},
		&workload.CreatePods{Count: 2, Namespace: "metrics"},
		&workload.StopCollectingMetrics{})
	wantNames(t, "collections", calls, []string{"start 0 metrics [metrics] map[], 0 pods", "stop, 3 bound",
		"start 1 second [metrics] map[a:b], 3 pods", "stop, 5 bound"})
	if len(out.Windows) != 2 || out.Windows[1].Name != "second" || !out.Windows[0].To.Before(out.Windows[1].From) {
		t.Errorf("the windows are %+v", out.Windows)
	}
	for _, p := range env.Watch.Pods([]string{"metrics"}, nil) {
		if w := out.Windows[p.Op/2]; p.Asked.Before(w.From) || p.Bound.After(w.To) {
			t.Errorf("pod %s was asked for at %s and bound at %s, not in the window %s to %s", p.Name, p.Asked, p.Bound, w.From, w.To)
		}
	}
	begin, end := &workload.StartCollectingMetrics{Namespaces: []string{"metrics"}}, &workload.StopCollectingMetrics{}
	for want, ops := range map[string][]workload.Op{
		"already": {begin, begin}, "no metrics are being collected": {end}, "still being collected": {begin},
		"op 1 (createPods): metrics": {begin, &workload.CreatePods{Namespace: "metrics", CollectMetrics: true}},
	} {
		if _, err := Run(t.Context(), g.env(), plan(ops...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want one with %q", err, want)
		}
	}
}
