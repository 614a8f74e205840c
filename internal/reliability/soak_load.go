// SPDX-License-Identifier: Apache-2.0

package reliability

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

const (
	soakSpace = "soak"
	// soakWorkers is how many requests of the load are under way at once.
	soakWorkers = 24
	// aside is how long a node is cordoned before its pods and then the node are deleted: longer than any fault
	// delays events.
	aside = 20 * time.Second
)

// soakLoad creates and deletes pods and nodes.
type soakLoad struct {
	client *kubernetes.Clientset
	Soak
	random *rand.Rand // of the goroutine that runs

	mu      sync.Mutex
	pending map[string]time.Time // pod -> when it was created
	bound   []string             // pods that were seen bound, oldest first
	known   map[string]bool      // pod -> it was seen bound and is not deleted
	created int
	seen    int // bound
	deleted int
	goes    time.Time // until when pods may stand on a node that is being taken away
}

func newSoakLoad(ctx context.Context, client *kubernetes.Clientset, s Soak) (*soakLoad, error) {
	l := &soakLoad{client: client, Soak: s, random: rand.New(rand.NewPCG(s.Seed, 2)), pending: map[string]time.Time{}, known: map[string]bool{}}
	if err := openNamespace(ctx, client, &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: soakSpace}}); err != nil {
		return nil, err
	}
	factory := informers.NewSharedInformerFactoryWithOptions(client, 0, informers.WithNamespace(soakSpace), informers.WithTransform(func(obj any) (any, error) {
		if p, is := obj.(*v1.Pod); is {
			return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID, ResourceVersion: p.ResourceVersion},
				Spec: v1.PodSpec{NodeName: p.Spec.NodeName}}, nil
		}
		return obj, nil
	}))
	_, err := factory.Core().V1().Pods().Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: func(obj any) { l.see(obj) }, UpdateFunc: func(_, obj any) { l.see(obj) }, DeleteFunc: func(obj any) { l.gone(obj) },
	})
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	return l, err
}

func (l *soakLoad) see(obj any) {
	p, is := obj.(*v1.Pod)
	if !is || p.Spec.NodeName == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known[p.Name] {
		return
	}
	delete(l.pending, p.Name)
	l.known[p.Name] = true
	l.bound = append(l.bound, p.Name)
	l.seen++
}

func (l *soakLoad) gone(obj any) {
	if dead, is := obj.(cache.DeletedFinalStateUnknown); is {
		obj = dead.Obj
	}
	p, is := obj.(*v1.Pod)
	if !is {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.pending, p.Name)
	delete(l.known, p.Name)
	l.deleted++
}

func (l *soakLoad) counts() (created, bound, deleted int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.created, l.seen, l.deleted
}

// waiting returns the number of pods without a node, and how long the oldest has had none.
func (l *soakLoad) waiting() (pods int, longest time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, since := range l.pending { // order: a maximum
		longest = max(longest, time.Since(since))
	}
	return len(l.pending), longest
}

// nodesGo reports whether pods may be observed on a node that was just deleted, because their deletion is in
// progress.
func (l *soakLoad) nodesGo() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Now().Before(l.goes)
}

// run makes load until ctx ends.
func (l *soakLoad) run(ctx context.Context) {
	work := make(chan func(), 4*soakWorkers)
	var workers sync.WaitGroup
	for range soakWorkers {
		workers.Go(func() {
			for f := range work {
				f()
			}
		})
	}
	var others sync.WaitGroup
	others.Go(func() { l.changeNodes(ctx) })
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	due := 0.0
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
		for due += float64(l.Rate) / 20; due >= 1; due-- {
			p := l.pod()
			send(ctx, work, func() { l.create(ctx, p) })
		}
		for _, name := range l.surplus() {
			send(ctx, work, func() { l.remove(ctx, name) })
		}
	}
	close(work)
	workers.Wait()
	others.Wait()
}

func send(ctx context.Context, work chan<- func(), f func()) {
	select {
	case work <- f:
	case <-ctx.Done():
	}
}

// surplus takes the oldest bound pods off the list, as far as there are more than Alive.
func (l *soakLoad) surplus() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := max(0, len(l.bound)-l.Alive)
	out := append([]string(nil), l.bound[:n]...)
	l.bound = append(l.bound[:0], l.bound[n:]...)
	return out
}

// pod is one of seven kinds.
func (l *soakLoad) pod() *v1.Pod {
	l.created++
	p := newPod(soakSpace, fmt.Sprintf("p%07d", l.created), "")
	p.Spec.NodeSelector = nil
	app := fmt.Sprint("app-", l.random.IntN(20))
	p.Labels["app"] = app
	p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = *resource.NewMilliQuantity(int64(50*(1+l.random.IntN(8))), resource.DecimalSI)
	same := &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	switch l.random.IntN(10) {
	case 0:
		p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 50, TopologyKey: v1.LabelTopologyZone, WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: same}}
	case 1:
		p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: v1.LabelHostname, WhenUnsatisfiable: v1.ScheduleAnyway, LabelSelector: same}}
	case 2:
		p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.WeightedPodAffinityTerm{
			{Weight: 10, PodAffinityTerm: v1.PodAffinityTerm{LabelSelector: same, TopologyKey: v1.LabelHostname}}}}}
	case 3:
		p.Spec.NodeSelector = map[string]string{v1.LabelTopologyZone: []string{"a", "b"}[l.random.IntN(2)]}
	case 4:
		p.Spec.Tolerations = []v1.Toleration{{Key: "soak", Operator: v1.TolerationOpExists}}
	}
	return p
}

// create retries until the API server has the pod: the faults must not reduce the load.
func (l *soakLoad) create(ctx context.Context, p *v1.Pod) {
	for ctx.Err() == nil {
		_, err := l.client.CoreV1().Pods(soakSpace).Create(ctx, p, metav1.CreateOptions{})
		if err == nil || apierrors.IsAlreadyExists(err) {
			l.mu.Lock()
			if !l.known[p.Name] {
				l.pending[p.Name] = time.Now()
			}
			l.mu.Unlock()
			return
		}
		pause(ctx, 200*time.Millisecond)
	}
}

func (l *soakLoad) remove(ctx context.Context, name string) {
	now := int64(0)
	for ctx.Err() == nil {
		err := l.client.CoreV1().Pods(soakSpace).Delete(ctx, name, metav1.DeleteOptions{GracePeriodSeconds: &now})
		if err == nil || apierrors.IsNotFound(err) {
			return
		}
		pause(ctx, 200*time.Millisecond)
	}
}

// changeNodes cordons, taints and labels nodes, and creates and deletes some, until ctx ends. It uncordons the nodes
// again.
func (l *soakLoad) changeNodes(ctx context.Context) {
	random := rand.New(rand.NewPCG(l.Seed, 3))
	for i := 0; ctx.Err() == nil; i++ {
		node := fmt.Sprintf("%s-%04d", []string{"a", "b"}[random.IntN(2)], random.IntN(l.Nodes/2))
		switch random.IntN(4) {
		case 0:
			l.patchNode(ctx, node, `{"spec":{"unschedulable":true}}`)
			pause(ctx, 3*time.Second)
			l.patchNode(context.WithoutCancel(ctx), node, `{"spec":{"unschedulable":null}}`)
		case 1:
			l.patchNode(ctx, node, `{"spec":{"taints":[{"key":"soak","effect":"NoSchedule"}]}}`)
			pause(ctx, 3*time.Second)
			l.patchNode(context.WithoutCancel(ctx), node, `{"spec":{"taints":null}}`)
		case 2:
			for n := range 10 { // flaps
				l.patchNode(ctx, node, fmt.Sprintf(`{"metadata":{"labels":{"flap":"%d"}}}`, n))
				pause(ctx, 100*time.Millisecond)
			}
		case 3:
			l.visit(ctx, i, node)
		}
		pause(ctx, 2*time.Second)
	}
}

func (l *soakLoad) patchNode(ctx context.Context, name, patch string) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		if _, err := l.client.CoreV1().Nodes().Patch(ctx, name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{}); err == nil || apierrors.IsNotFound(err) {
			return
		}
		pause(ctx, 200*time.Millisecond)
	}
}

// visit creates a node like another one, cordons it after a while, and deletes it with its pods.
func (l *soakLoad) visit(ctx context.Context, i int, like string) {
	model, err := l.client.CoreV1().Nodes().Get(ctx, like, metav1.GetOptions{})
	if err != nil {
		return
	}
	name := fmt.Sprint("visitor-", i)
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelTopologyZone: model.Labels[v1.LabelTopologyZone], v1.LabelHostname: name}}, Status: model.Status}
	if _, err := l.client.CoreV1().Nodes().Create(ctx, n, metav1.CreateOptions{}); err != nil {
		return
	}
	pause(ctx, 5*time.Second)
	ctx = context.WithoutCancel(ctx) // it goes, also at the end
	l.patchNode(ctx, name, `{"spec":{"unschedulable":true}}`)
	pause(ctx, aside)
	l.mu.Lock()
	l.goes = time.Now().Add(30 * time.Second)
	l.mu.Unlock()
	for range 20 {
		pods, err := l.client.CoreV1().Pods(soakSpace).List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
		if err == nil && len(pods.Items) == 0 {
			break
		}
		if err == nil {
			for j := range pods.Items {
				now := int64(0)
				_ = l.client.CoreV1().Pods(soakSpace).Delete(ctx, pods.Items[j].Name, metav1.DeleteOptions{GracePeriodSeconds: &now})
			}
		}
		pause(ctx, 500*time.Millisecond)
	}
	_ = l.client.CoreV1().Nodes().Delete(ctx, name, metav1.DeleteOptions{})
}
