// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/internal/fault"
)

// perNode is how many pods of the usual size fit a usual node.
const perNode = 40

// behind starts a scheduler that reaches the API server through a proxy. Both end with the case.
func (g *Ground) behind(ctx context.Context, l Launch) (*Scheduler, *fault.Proxy, error) {
	dir := filepath.Join(g.dir, g.Name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, nil, unjudged{err}
	}
	proxy, err := fault.Start(dir, g.Cluster.SchedulerKubeconfig)
	if err != nil {
		return nil, nil, unjudged{err}
	}
	l.Kubeconfig = proxy.Kubeconfig()
	s, err := g.Launch(ctx, l)
	g.Cleanup(func(context.Context) error {
		proxy.Clear()
		proxy.Heal()
		if s != nil {
			s.Close()
		}
		return proxy.Close()
	})
	return s, proxy, err
}

// faulty is a case with its own scheduler behind a proxy, and usual nodes. At its end all rules are removed.
func faulty(nodes int, run func(context.Context, *Ground, *Scheduler, *fault.Proxy) error) func(context.Context, *Ground) error {
	return faultyAs(Launch{}, nodes, run)
}

func faultyAs(l Launch, nodes int, run func(context.Context, *Ground, *Scheduler, *fault.Proxy) error) func(context.Context, *Ground) error {
	return func(ctx context.Context, g *Ground) error {
		if err := g.Nodes(ctx, nodes); err != nil {
			return err
		}
		s, proxy, err := g.behind(ctx, l)
		if err != nil {
			return err
		}
		defer proxy.Clear()
		if err := g.works(ctx); err != nil {
			return err
		}
		return run(ctx, g, s, proxy)
	}
}

// works waits until the scheduler places pods: it leads, and has read the cluster. The pod is deleted afterwards.
func (g *Ground) works(ctx context.Context) error {
	if err := g.Create(ctx, g.Pod("works")); err != nil {
		return err
	}
	if err := g.Wants(ctx, map[string]string{"works": "*"}); err != nil {
		return err
	}
	if err := g.Delete(ctx, "works"); err != nil {
		return err
	}
	return eventually(ctx, "the first pod is gone", func() string {
		pods, err := g.Pods(ctx)
		if _, there := pods["works"]; err != nil || there {
			return fmt.Sprint("it is there: ", there, err)
		}
		return ""
	})
}

// binding is a rule for the binds of the case.
func (g *Ground) binding(f fault.Fate) fault.Request {
	return fault.Request{Verb: "create", Resource: "pods", Subresource: "binding", Namespace: g.Name, Fate: f}
}

// burst creates prefix0 to prefix(n-1).
func (g *Ground) burst(ctx context.Context, prefix string, n int, change ...func(*v1.Pod)) error {
	pods := make([]*v1.Pod, n)
	for i := range pods {
		pods[i] = g.Pod(fmt.Sprint(prefix, i), change...)
	}
	return g.Create(ctx, pods...)
}

// during creates a burst and calls strike when a third of it is bound, while the rest is being created.
func (g *Ground) during(ctx context.Context, prefix string, n int, strike func() error) error {
	created := make(chan error, 1)
	go func() { created <- g.burst(ctx, prefix, n) }()
	if err := g.bound(ctx, prefix, n/3); err != nil {
		return errors.Join(err, <-created)
	}
	return errors.Join(strike(), <-created)
}

// bound waits until n pods with this prefix are on a node.
func (g *Ground) bound(ctx context.Context, prefix string, n int) error {
	return eventually(ctx, fmt.Sprintf("%d pods %s* are bound", n, prefix), func() string {
		have, err := g.countBound(ctx, prefix)
		if err != nil || have < n {
			return fmt.Sprintf("%d are, error %v", have, err)
		}
		return ""
	})
}

func (g *Ground) countBound(ctx context.Context, prefix string) (int, error) {
	pods, err := g.Pods(ctx)
	have := 0
	for name, p := range pods { // order: counted only
		if strings.HasPrefix(name, prefix) && p.Spec.NodeName != "" {
			have++
		}
	}
	return have, err
}

// full requires that exactly this many more pods of the usual size fit. With one fewer, capacity was lost; with one
// more, it was allocated twice.
func (g *Ground) full(ctx context.Context, more int) error {
	if err := g.burst(ctx, "fill", more); err != nil {
		return err
	}
	if err := g.WantsAll(ctx, "fill", more, "*"); err != nil {
		return err
	}
	if err := g.Create(ctx, g.Pod("over")); err != nil {
		return err
	}
	return g.Wants(ctx, map[string]string{"over": "!Unschedulable&Insufficient cpu"})
}

// bindTo binds a pod as another scheduler would.
func (g *Ground) bindTo(ctx context.Context, pod, node string) error {
	err := g.Client.CoreV1().Pods(g.Name).Bind(ctx, &v1.Binding{
		ObjectMeta: metav1.ObjectMeta{Namespace: g.Name, Name: pod}, Target: v1.ObjectReference{Kind: "Node", Name: g.Name + "-" + node},
	}, metav1.CreateOptions{})
	if err != nil {
		return Unjudged("bind pod %s: %w", pod, err)
	}
	return nil
}

// foreign makes a pod one of another scheduler.
func foreign(p *v1.Pod) { p.Spec.SchedulerName = "other-scheduler" }

// cores gives a node so many cores.
func cores(amount string) func(*v1.Node) {
	return func(n *v1.Node) {
		n.Status.Capacity[v1.ResourceCPU] = resource.MustParse(amount)
		n.Status.Allocatable[v1.ResourceCPU] = resource.MustParse(amount)
	}
}

// within limits the duration of a part of a case.
func within(ctx context.Context, d time.Duration, part func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	return part(ctx)
}
