// SPDX-License-Identifier: Apache-2.0

package ladder

import (
	"context"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

const (
	// every is the time from one pod to the next.
	every = 25 * time.Millisecond
	// life is how long a pod stays once it has a node.
	life = 5 * time.Second
	// space is where the load is.
	space = "load"
)

// load makes pods all the time, and takes them away a while after they were bound.
type load struct {
	client kubernetes.Interface
	ledger *ledger

	mu sync.Mutex
	// schedulers are asked in turn.
	schedulers []string
	made       int
	running    bool
	// gone has the pods that were taken away: number -> true.
	gone map[int]bool
	err  error
}

func podName(n int) string { return fmt.Sprintf("load-%05d", n) }

// loadPod is pod number n: most are small, some are large, and some are spread over the zones.
func loadPod(n int, scheduler string) *v1.Pod {
	p := testPod(podName(n), scheduler, "250m")
	switch {
	case n%7 == 0:
		p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = resource.MustParse("1500m")
	case n%5 == 0:
		p.Labels = map[string]string{"app": "spread"}
		p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: v1.LabelTopologyZone,
			WhenUnsatisfiable: v1.ScheduleAnyway, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}}
	}
	return p
}

func testPod(name, scheduler, cpu string) *v1.Pod {
	now := int64(0)
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: v1.PodSpec{SchedulerName: scheduler, TerminationGracePeriodSeconds: &now,
		Containers: []v1.Container{{Name: "c", Image: "registry.example/app:1", Resources: v1.ResourceRequirements{
			Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), v1.ResourceMemory: resource.MustParse("64Mi")}}}}}}
}

// run makes pods until ctx ends, whenever the load is on.
func (l *load) run(ctx context.Context) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		l.mu.Lock()
		n, scheduler, on := l.made, l.schedulers[l.made%len(l.schedulers)], l.running
		l.mu.Unlock()
		if !on {
			continue
		}
		_, err := l.client.CoreV1().Pods(space).Create(ctx, loadPod(n, scheduler), metav1.CreateOptions{})
		l.mu.Lock()
		if err == nil {
			l.made++
		} else if ctx.Err() == nil {
			l.err = err
		}
		l.mu.Unlock()
	}
}

// reap takes pods away that have had their time.
func (l *load) reap(ctx context.Context) {
	first := 0 // all before it are gone
	for ctx.Err() == nil {
		l.mu.Lock()
		made := l.made
		l.mu.Unlock()
		for n := first; n < made && ctx.Err() == nil; n++ {
			if l.gone[n] || !l.isOld(n) {
				continue
			}
			if err := l.client.CoreV1().Pods(space).Delete(ctx, podName(n), metav1.DeleteOptions{}); err == nil || apierrors.IsNotFound(err) {
				l.gone[n] = true
			}
		}
		for l.gone[first] {
			delete(l.gone, first)
			first++
		}
		select {
		case <-ctx.Done():
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func (l *load) isOld(n int) (old bool) {
	l.ledger.look(func(g *ledger) {
		at, bound := g.bound[space+"/"+podName(n)]
		old = bound && time.Since(at) > life
	})
	return old
}

// on begins to make pods for these schedulers, in turn.
func (l *load) on(schedulers ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.schedulers, l.running = schedulers, true
}

// off makes no more and returns how many there were in all, the last one being made included.
func (l *load) off() (int, error) {
	l.mu.Lock()
	l.running = false
	l.mu.Unlock()
	time.Sleep(10 * every) // a request may be on its way
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.made, l.err
}

// newest is the number of the last pod.
func (l *load) newest() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.made - 1
}

// unbound lists the pods that never had a node, with the reason, of the first n.
func (l *load) unbound(n int) (names []string) {
	l.ledger.look(func(g *ledger) {
		for i := range n {
			name := space + "/" + podName(i)
			if _, bound := g.bound[name]; !bound {
				why, waits := g.waits[name]
				if !waits {
					why = "it is not there"
				}
				names = append(names, name+" ("+why+")")
			}
		}
	})
	return names
}
