// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/internal/fault"
)

// faultyChanges: the cluster changes while binds are in flight.
func faultyChanges() []Case {
	return []Case{
		{ID: "F19", What: "ten nodes change ten times a second between usable and not", Run: flapping},
		{ID: "F20", What: "a node is cordoned while pods are on their way to it", Own: true, Run: faulty(2, cordoned)},
		{ID: "F21", What: "pods are deleted while their binds are on their way", Own: true, Run: faulty(1, deletedInBind)},
		{ID: "F22", What: "pods are deleted and made again under the same name while their binds fail", Own: true, Run: faulty(2, madeAgain)},
		{ID: "F23", What: "a pod's labels change while its bind is on its way, then it is resized in place", Own: true, Run: faulty(1, relabelled)},
		{ID: "F24", What: "PriorityClass, PodDisruptionBudget and Namespace are deleted while pods of them are on their way", Own: true, Run: faulty(2, ownersDeleted)},
		{ID: "F25", What: "a victim refuses to die", Run: refusesToDie},
		{ID: "F31", What: "2,000 pods at once, then all deleted at once", Limit: 200 * time.Second, Run: massDelete},
	}
}

func (g *Ground) cordon(ctx context.Context, node string, is bool) error {
	return g.PatchNode(ctx, node, fmt.Sprintf(`{"spec":{"unschedulable":%t}}`, is), "")
}

// flapping: two nodes are steady and have capacity for all pods.
func flapping(ctx context.Context, g *Ground) error {
	const flaps = 10
	if err := g.Nodes(ctx, flaps); err != nil {
		return err
	}
	if err := g.CreateNodes(ctx, g.Node("steady-a"), g.Node("steady-b")); err != nil {
		return err
	}
	flapping, stop := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() {
		for usable := false; flapping.Err() == nil; usable = !usable {
			ready := map[bool]string{true: "True", false: "False"}[usable]
			err := inParallel(flaps, func(i int) error {
				return errors.Join(g.cordon(flapping, fmt.Sprint(i), !usable),
					g.PatchNode(flapping, fmt.Sprint(i), `{"status":{"conditions":[{"type":"Ready","status":"`+ready+`"}]}}`, "status"))
			})
			if err != nil && flapping.Err() == nil {
				ended <- err
				return
			}
			pause(flapping, 50*time.Millisecond)
		}
		ended <- nil
	}()
	var err error
	for i := 0; i < 10 && err == nil; i++ {
		prefix := fmt.Sprint("wave", i, "-")
		if err = g.burst(ctx, prefix, 6); err == nil {
			err = within(ctx, unaffected, func(ctx context.Context) error { return g.WantsAll(ctx, prefix, 6, "*") })
		}
		pause(ctx, 500*time.Millisecond)
	}
	if err == nil {
		_, err = g.Healthy(ctx)
	}
	stop()
	return errors.Join(err, <-ended)
}

// cordoned: once the scheduler can know of it, no more pods are placed there.
func cordoned(ctx context.Context, g *Ground, _ *Scheduler, proxy *fault.Proxy) error {
	slow := proxy.On(g.binding(fault.Slow(500 * time.Millisecond)))
	if err := g.during(ctx, "p", 30, func() error { return g.cordon(ctx, "0", true) }); err != nil {
		return err
	}
	slow.Remove()
	if err := g.WantsAll(ctx, "p", 30, "*"); err != nil {
		return err
	}
	if err := g.burst(ctx, "late", 10); err != nil {
		return err
	}
	return g.WantsAll(ctx, "late", 10, "1")
}

func deletedInBind(ctx context.Context, g *Ground, _ *Scheduler, proxy *fault.Proxy) error {
	struck := proxy.On(g.binding(fault.Slow(time.Second)))
	if err := g.burst(ctx, "p", 20); err != nil {
		return err
	}
	if err := struck.Await(ctx); err != nil {
		return err
	}
	var names []string
	for i := range 20 {
		names = append(names, fmt.Sprint("p", i))
	}
	if err := g.Delete(ctx, names...); err != nil {
		return err
	}
	pause(ctx, 1500*time.Millisecond)
	proxy.Clear()
	return g.full(ctx, perNode)
}

// madeAgain: a new pod of the same name is another pod; it needs another node, and twice the resources.
func madeAgain(ctx context.Context, g *Ground, _ *Scheduler, proxy *fault.Proxy) error {
	on := func(node string) func(*v1.Pod) {
		return func(p *v1.Pod) { p.Spec.NodeSelector[v1.LabelHostname] = g.Name + "-" + node }
	}
	fails := fault.ErrorBefore(500)
	fails.Wait = time.Second
	struck := proxy.On(g.binding(fails))
	if err := g.burst(ctx, "p", 10, on("0")); err != nil {
		return err
	}
	if err := struck.Await(ctx); err != nil {
		return err
	}
	for i := range 10 {
		name := fmt.Sprint("p", i)
		if err := g.Delete(ctx, name); err != nil {
			return err
		}
		if err := g.Create(ctx, g.Pod(name, on("1"), asks("cpu", "200m"))); err != nil {
			return err
		}
	}
	pause(ctx, 2*time.Second)
	proxy.Clear()
	if err := g.WantsAll(ctx, "p", 10, "1"); err != nil {
		return err
	}
	return g.full(ctx, 2*perNode-20)
}

// relabelled: anti-affinity counts the current labels of a pod, and capacity its current requests.
func relabelled(ctx context.Context, g *Ground, _ *Scheduler, proxy *fault.Proxy) error {
	role := func(value string) func(*v1.Pod) {
		return func(p *v1.Pod) { p.Labels["role"] = value }
	}
	away := func(value string) func(*v1.Pod) {
		return func(p *v1.Pod) {
			p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
				TopologyKey: v1.LabelHostname, LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"role": value}},
			}}}}
		}
	}
	struck := proxy.On(g.binding(fault.Slow(time.Second)))
	if err := g.Create(ctx, g.Pod("a", role("x"))); err != nil {
		return err
	}
	if err := struck.Await(ctx); err != nil {
		return err
	}
	api := g.Client.CoreV1().Pods(g.Name)
	if _, err := api.Patch(ctx, "a", types.MergePatchType, []byte(`{"metadata":{"labels":{"role":"y"}}}`), metav1.PatchOptions{}); err != nil {
		return Unjudged("label pod: %w", err)
	}
	if err := g.Wants(ctx, map[string]string{"a": "0"}); err != nil {
		return err
	}
	proxy.Clear()
	if err := g.Create(ctx, g.Pod("not-near-x", away("x")), g.Pod("not-near-y", away("y"))); err != nil {
		return err
	}
	if err := g.Wants(ctx, map[string]string{"not-near-x": "0", "not-near-y": "!anti-affinity"}); err != nil {
		return err
	}
	grow := `{"spec":{"containers":[{"name":"c","resources":{"requests":{"cpu":"1"}}}]}}`
	if _, err := api.Patch(ctx, "a", types.StrategicMergePatchType, []byte(grow), metav1.PatchOptions{}, "resize"); err != nil {
		return Unjudged("resize pod: %w", err)
	}
	pause(ctx, 500*time.Millisecond)
	return g.full(ctx, perNode-10-1)
}

// ownersDeleted: pods keep their priority, and the pods of a deleted namespace are deleted.
func ownersDeleted(ctx context.Context, g *Ground, _ *Scheduler, proxy *fault.Proxy) error {
	class := &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: g.Name}, Value: 1000}
	if _, err := g.Client.SchedulingV1().PriorityClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		return Unjudged("create priority class: %w", err)
	}
	budget := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Name: "all"},
		Spec: policyv1.PodDisruptionBudgetSpec{Selector: &metav1.LabelSelector{}}}
	if _, err := g.Client.PolicyV1().PodDisruptionBudgets(g.Name).Create(ctx, budget, metav1.CreateOptions{}); err != nil {
		return Unjudged("create budget: %w", err)
	}
	deleted := g.Name + "-deleted"
	if err := openNamespace(ctx, g.Client, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: deleted}}); err != nil {
		return err
	}
	proxy.On(fault.Request{Verb: "create", Resource: "pods", Subresource: "binding", Fate: fault.Slow(500 * time.Millisecond)})
	if err := g.burst(ctx, "p", 20, func(p *v1.Pod) { p.Spec.PriorityClassName = g.Name }); err != nil {
		return err
	}
	if err := g.burst(ctx, "deleted", 20, func(p *v1.Pod) { p.Namespace = deleted }); err != nil {
		return err
	}
	err := errors.Join(g.Client.SchedulingV1().PriorityClasses().Delete(ctx, g.Name, metav1.DeleteOptions{}),
		g.Client.PolicyV1().PodDisruptionBudgets(g.Name).Delete(ctx, "all", metav1.DeleteOptions{}),
		g.Client.CoreV1().Namespaces().Delete(ctx, deleted, metav1.DeleteOptions{}))
	if err != nil {
		return unjudged{err}
	}
	if err := g.WantsAll(ctx, "p", 20, "*"); err != nil {
		return err
	}
	err = eventually(ctx, "the namespace is gone", func() string {
		if _, err := g.Client.CoreV1().Namespaces().Get(ctx, deleted, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Sprint("it is there: ", err)
		}
		return ""
	})
	if err != nil {
		return unjudged{err}
	}
	proxy.Clear()
	return g.full(ctx, 2*perNode-20)
}

// massDelete: the capacity of thousands of pods is free when they are gone.
func massDelete(ctx context.Context, g *Ground) error {
	const nodes, pods = 20, 2000
	if err := g.Nodes(ctx, nodes); err != nil {
		return err
	}
	if err := g.burst(ctx, "p", pods, asks("cpu", "20m")); err != nil {
		return err
	}
	if err := g.bound(ctx, "p", pods); err != nil {
		return err
	}
	now := int64(0)
	err := g.Client.CoreV1().Pods(g.Name).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{})
	if err != nil {
		return Unjudged("delete all pods: %w", err)
	}
	return g.full(ctx, nodes*perNode)
}
