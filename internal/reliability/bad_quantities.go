// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// badQuantities: amounts that 64 bits cannot hold, or that are rounded, on the side of the pod and on that of the
// node. A node of 8Gi and four cores cannot satisfy these requests, so the only correct verdict is that they do not
// fit.
func badQuantities() []Case {
	return []Case{
		{ID: "B1", What: "a request of 50E of memory", Run: tooMuch("memory", "50E")},
		{ID: "B2", What: "a request of 9300P of memory", Run: tooMuch("memory", "9300P")},
		{ID: "B3", What: "a request of 2^63 bytes of memory", Run: tooMuch("memory", "9223372036854775808")},
		{ID: "B4", What: "requests of 9E and 10P of cpu", Run: tooMuch("cpu", "9E", "10P")},
		{ID: "B5", What: "requests of 1e30 and 1e1000", Run: tooMuch("memory", "1e30", "1e1000")},
		{ID: "B5a", What: "a request of 1e999999999", NotRun: "the API server itself works on the number until the request times out, and refuses it"},
		{ID: "B6", What: "requests of 1n and 0.0001 of cpu, each rounded up to 1m", Run: tiny},
		{ID: "B7", What: "nodes that offer 0, nothing at all, or more than 64 bits hold", Run: oddNodes},
		{ID: "B7a", What: "a node that shrinks below what is on it", Run: shrinks},
		{ID: "B8", What: "requests above limits, requests of whole pods, an overhead of 50E", Run: wholePods},
		{ID: "B9", What: "500 containers, 400 init containers and 100 sidecars", Run: manyContainers},
	}
}

// tooMuch requests amounts that no node has, and then the whole capacity of the node, which must still be free.
func tooMuch(name string, amounts ...string) func(context.Context, *Ground) error {
	return func(ctx context.Context, g *Ground) error {
		if err := g.Nodes(ctx, 1); err != nil {
			return err
		}
		want := map[string]string{}
		for i, amount := range amounts {
			pod := "huge-" + string(rune('a'+i))
			if err := g.Create(ctx, g.Pod(pod, asks(name, amount))); err != nil {
				return err
			}
			want[pod] = "!Unschedulable&1 Insufficient " + name
		}
		if err := g.Wants(ctx, want); err != nil {
			return err
		}
		return g.Play(ctx, []*v1.Pod{g.Pod("half", asks("memory", "5Gi")), g.Pod("other-half", asks("memory", "2Gi"))},
			map[string]string{"half": "0", "other-half": "0"})
	}
}

// tiny fills a node of 10m.
func tiny(ctx context.Context, g *Ground) error {
	if err := g.Nodes(ctx, 1, offers("cpu", "10m")); err != nil {
		return err
	}
	var pods []*v1.Pod
	for i := range 10 {
		pods = append(pods, g.Pod(fmt.Sprint("p", i), asks("cpu", []string{"1n", "0.0001"}[i%2])))
	}
	if err := g.Create(ctx, pods...); err != nil {
		return err
	}
	if err := g.WantsAll(ctx, "p", 10, "0"); err != nil {
		return err
	}
	return g.Play(ctx, []*v1.Pod{g.Pod("one-more", asks("cpu", "1n"))}, map[string]string{"one-more": "!1 Insufficient cpu"})
}

// offers sets the resources of a node: name, quantity and so on. "" removes a resource.
func offers(list ...string) func(*v1.Node) {
	return func(n *v1.Node) {
		for i := 0; i < len(list); i += 2 {
			name := v1.ResourceName(list[i])
			delete(n.Status.Capacity, name)
			delete(n.Status.Allocatable, name)
			if list[i+1] != "" {
				n.Status.Capacity[name] = resource.MustParse(list[i+1])
				n.Status.Allocatable[name] = resource.MustParse(list[i+1])
			}
		}
	}
}

func oddNodes(ctx context.Context, g *Ground) error {
	nothing := func(n *v1.Node) { n.Status.Capacity, n.Status.Allocatable = nil, nil }
	if err := g.CreateNodes(ctx, g.Node("zero", offers("cpu", "0")), g.Node("no-cpu", offers("cpu", "")), g.Node("nothing", nothing)); err != nil {
		return err
	}
	err := g.Play(ctx, []*v1.Pod{g.Pod("first"), g.Pod("none", asks("cpu", "0"))},
		map[string]string{"first": "!3 Insufficient cpu&1 Too many pods", "none": "zero|no-cpu"})
	if err != nil {
		return err
	}
	if err := g.CreateNodes(ctx, g.Node("huge", offers("cpu", "1e30", "memory", "50E", "ephemeral-storage", "1e30"))); err != nil {
		return err
	}
	return g.Play(ctx, []*v1.Pod{g.Pod("second", asks("cpu", "100", "memory", "1Ti"))}, map[string]string{"first": "huge", "second": "huge"})
}

func shrinks(ctx context.Context, g *Ground) error {
	if err := g.Nodes(ctx, 1); err != nil {
		return err
	}
	if err := g.Play(ctx, []*v1.Pod{g.Pod("a", asks("cpu", "2")), g.Pod("b", asks("cpu", "1500m"))}, map[string]string{"a": "0", "b": "0"}); err != nil {
		return err
	}
	g.MayHoldTooMuch(g.Name + "-0")
	if err := g.PatchNode(ctx, "0", `{"status":{"allocatable":{"cpu":"2","pods":"1"}}}`, "status"); err != nil {
		return err
	}
	pause(ctx, lasting) // until the scheduler has seen it
	if err := g.Play(ctx, []*v1.Pod{g.Pod("c")}, map[string]string{"c": "!Too many pods"}); err != nil {
		return err
	}
	if err := g.PatchNode(ctx, "0", `{"status":{"allocatable":{"pods":"110"}}}`, "status"); err != nil {
		return err
	}
	if err := g.Wants(ctx, map[string]string{"c": "!1 Insufficient cpu"}); err != nil {
		return err
	}
	// What was on it is still counted, and counted once: 1500m are left on two cores.
	if err := g.Delete(ctx, "a"); err != nil {
		return err
	}
	return g.Play(ctx, []*v1.Pod{g.Pod("d", asks("cpu", "401m"))}, map[string]string{"c": "0", "d": "!1 Insufficient cpu"})
}

func wholePods(ctx context.Context, g *Ground) error {
	if err := g.Nodes(ctx, 1); err != nil {
		return err
	}
	above := g.Pod("above", func(p *v1.Pod) {
		p.Spec.Containers[0].Resources.Limits = v1.ResourceList{"cpu": resource.MustParse("50m")}
	})
	if code, _, err := g.Offer(ctx, above); err != nil || code != 422 {
		return Unjudged("the API server takes requests above limits: %d, %w", code, err)
	}
	class := &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: g.Name}, Handler: "h",
		Overhead: &nodev1.Overhead{PodFixed: v1.ResourceList{"memory": resource.MustParse("50E")}}}
	if _, err := g.Client.NodeV1().RuntimeClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		return Unjudged("create runtime class: %w", err)
	}
	g.Cleanup(func(ctx context.Context) error {
		return g.Client.NodeV1().RuntimeClasses().Delete(ctx, g.Name, metav1.DeleteOptions{})
	})
	whole := func(memory string) func(*v1.Pod) {
		return func(p *v1.Pod) {
			p.Spec.Resources = &v1.ResourceRequirements{Requests: v1.ResourceList{"memory": resource.MustParse(memory)}}
		}
	}
	return g.Play(ctx, []*v1.Pod{
		g.Pod("overhead", func(p *v1.Pod) { p.Spec.RuntimeClassName = &g.Name }),
		g.Pod("too-whole", whole("10Gi")), g.Pod("huge-whole", whole("50E")), g.Pod("whole", whole("5Gi")),
	}, map[string]string{"overhead": "!1 Insufficient memory", "too-whole": "!1 Insufficient memory", "huge-whole": "!1 Insufficient memory", "whole": "0"})
}

// manyContainers: 500 containers of 1m, sidecars of 1m among init containers of 3 cores. The last init container runs
// beside all the sidecars: 3100m.
func manyContainers(ctx context.Context, g *Ground) error {
	if err := g.Nodes(ctx, 1); err != nil {
		return err
	}
	container := func(name, cpu string) v1.Container {
		return v1.Container{Name: name, Image: "registry.example/app:1", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse(cpu)}}}
	}
	always := v1.ContainerRestartPolicyAlways
	many := g.Pod("many", func(p *v1.Pod) {
		p.Spec.Containers = nil
		for i := range 500 {
			p.Spec.Containers = append(p.Spec.Containers, container(fmt.Sprint("c", i), "1m"))
			init := container(fmt.Sprint("i", i), "3")
			if i%5 == 0 {
				init = container(fmt.Sprint("s", i), "1m")
				init.RestartPolicy = &always
			}
			p.Spec.InitContainers = append(p.Spec.InitContainers, init)
		}
	})
	if err := g.Play(ctx, []*v1.Pod{many}, map[string]string{"many": "0"}); err != nil {
		return err
	}
	return g.Play(ctx, []*v1.Pod{g.Pod("fits", asks("cpu", "900m")), g.Pod("not", asks("cpu", "901m"))},
		map[string]string{"fits": "0", "not": "!1 Insufficient cpu"})
}
