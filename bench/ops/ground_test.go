// SPDX-License-Identifier: Apache-2.0

package ops

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kumiki-scheduler/kumiki/bench/workload"
	"github.com/kumiki-scheduler/kumiki/internal/testcluster"
)

// ground is the cluster of all scenarios: an API server and nothing that changes what an operation did, as it is when a
// scheduler is measured.
type ground struct {
	client  *kubernetes.Clientset
	dynamic *dynamic.DynamicClient
}

// TestOperations carries out every operation against a real API server and reads there what it did.
func TestOperations(t *testing.T) {
	cluster := testcluster.Start(t, testcluster.Options{
		Nodes: -1, NoHeartbeats: true, FeatureGates: "GenericWorkload=true", RuntimeConfig: "scheduling.k8s.io/v1beta1=true",
		Args: ClusterArgs(),
	})
	for _, role := range []testcluster.Role{testcluster.Controllers, testcluster.Nodes} {
		if err := cluster.Kill(role); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", cluster.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	g := &ground{client: kubernetes.NewForConfigOrDie(cfg), dynamic: dynamic.NewForConfigOrDie(cfg)}
	// The node of the scenarios' scheduler.
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "somewhere"}, Status: baseNode().Status}
	if _, err := g.client.CoreV1().Nodes().Create(t.Context(), node, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, scenarios := range [][]scenario{nodeScenarios, podScenarios, objectScenarios, claimScenarios} {
		for _, s := range scenarios {
			t.Run(s.name, func(t *testing.T) { s.tell(t, g) })
		}
	}
}

// scenario is one test on the common ground. Each uses namespaces and names of its own.
type scenario struct {
	name string
	tell func(t *testing.T, g *ground)
}

// env is what scenarios run plans with.
func (g *ground) env() Env {
	return Env{Client: g.client, Dynamic: g.dynamic, Watch: NewWatch(nil), Patience: 20 * time.Second}
}

func plan(ops ...workload.Op) workload.Plan { return workload.Plan{Name: "test/plan", Ops: ops} }

// run runs a plan that must end well.
func (g *ground) run(t *testing.T, env Env, ops ...workload.Op) Outcome {
	t.Helper()
	out, err := Run(t.Context(), env, plan(ops...))
	if err != nil {
		t.Fatal(err)
	}
	if len(out.Steps) != len(ops) {
		t.Fatalf("%d steps for %d operations", len(out.Steps), len(ops))
	}
	return out
}

// manifest is a template of a test.
func manifest(text string) *workload.Template {
	return &workload.Template{Path: "test.yaml", Text: text}
}

// pods are those of a namespace, by name.
func (g *ground) pods(t *testing.T, namespace string) []corev1.Pod {
	t.Helper()
	list, err := g.client.CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return list.Items
}

// names are those of some objects, sorted.
func names[T any, P interface {
	*T
	metav1.Object
}](list []T) []string {
	var out []string
	for i := range list {
		out = append(out, P(&list[i]).GetName())
	}
	slices.Sort(out)
	return out
}

// serials are the names that objects 0 to n-1 of an operation get.
func serials(prefix string, op, n int) []string {
	var out []string
	for i := range n {
		out = append(out, fmt.Sprintf("%s%d-%05d", prefix, op, i))
	}
	return out
}

func wantNames(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

// scheduler binds, until the test ends, the pods of a namespace as soon as they have no gates: those that have the labels,
// to the node somewhere; to the others it gives the condition of a pod that fits nowhere.
func (g *ground) scheduler(t *testing.T, namespace, selector string) {
	t.Helper()
	binds, err := labels.Parse(selector)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	var working sync.WaitGroup
	t.Cleanup(func() {
		stop()
		working.Wait()
	})
	working.Go(func() {
		for ctx.Err() == nil {
			list, err := g.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName="})
			if err != nil {
				continue
			}
			for i := range list.Items {
				g.decide(ctx, &list.Items[i], binds)
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
}

// decide does not care whether it succeeds: the pod may be gone, and else it is looked at again.
func (g *ground) decide(ctx context.Context, p *corev1.Pod, binds labels.Selector) {
	pods := g.client.CoreV1().Pods(p.Namespace)
	refused := slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodScheduled })
	switch {
	case len(p.Spec.SchedulingGates) > 0 || p.DeletionTimestamp != nil:
	case binds.Matches(labels.Set(p.Labels)):
		_ = pods.Bind(ctx, &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID},
			Target:     corev1.ObjectReference{Kind: "Node", Name: "somewhere"},
		}, metav1.CreateOptions{})
	case !refused:
		p.Status.Conditions = append(p.Status.Conditions, corev1.PodCondition{
			Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable, Message: "not for me",
		})
		_, _ = pods.UpdateStatus(ctx, p, metav1.UpdateOptions{})
	}
}

// eventually waits until is reports true about the objects of the API server.
func eventually(t *testing.T, what string, is func() bool) {
	t.Helper()
	for range 1000 {
		if is() {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("not seen in time: %s", what)
}

// hands is a clock that a test moves.
type hands struct {
	mu     sync.Mutex
	now    time.Time
	timers []timer
}

type timer struct {
	at   time.Time
	ring chan time.Time
}

func newHands() *hands { return &hands{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)} }

// Now is where the hands stand.
func (h *hands) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

// After rings when the hands were moved so far.
func (h *hands) After(d time.Duration) <-chan time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	ring := make(chan time.Time, 1)
	h.timers = append(h.timers, timer{h.now.Add(d), ring})
	return ring
}

// move moves the hands on.
func (h *hands) move(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
	h.timers = slices.DeleteFunc(h.timers, func(x timer) bool {
		if x.at.After(h.now) {
			return false
		}
		x.ring <- h.now
		return true
	})
}

// pending tells for how long the timers that have not rung still run, shortest first.
func (h *hands) pending() []time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	var out []time.Duration
	for _, x := range h.timers {
		out = append(out, x.at.Sub(h.now))
	}
	slices.Sort(out)
	return out
}

// going is a plan that runs beside the test.
type going struct {
	stop  context.CancelFunc
	ended chan struct{}
	out   Outcome
	err   error
}

func (g *ground) start(t *testing.T, env Env, ops ...workload.Op) *going {
	ctx, stop := context.WithCancel(t.Context())
	r := &going{stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(r.ended)
		r.out, r.err = Run(ctx, env, plan(ops...))
	}()
	t.Cleanup(func() {
		stop()
		<-r.ended
	})
	return r
}

// over waits until the plan has ended, and fails if it ended badly.
func (r *going) over(t *testing.T) {
	t.Helper()
	<-r.ended
	if r.err != nil {
		t.Fatal(r.err)
	}
}

func (r *going) running() bool {
	select {
	case <-r.ended:
		return false
	default:
		return true
	}
}
