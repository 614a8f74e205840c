// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// unfinished leaves out the pods that have ended; one that ends leaves the watch as if it were deleted (upstream:
// pkg/scheduler/scheduler.go, NewInformerFactory).
const unfinished = "status.phase!=" + string(v1.PodSucceeded) + ",status.phase!=" + string(v1.PodFailed)

// Informers keep an Inbox up to date from the watches of pods, nodes, and the further kinds that it holds.
type Informers struct {
	client kubernetes.Interface
	inbox  *Inbox

	mu      sync.Mutex
	cancel  context.CancelFunc
	running sync.WaitGroup
	heard   hearing
}

// NewInformers returns Informers that do not run yet.
func NewInformers(client kubernetes.Interface, inbox *Inbox) *Informers {
	return &Informers{client: client, inbox: inbox}
}

// Start begins to list and watch, until ctx ends or Stop is called. The lists hold all that was true when Start was
// called. Called again, it lists everything afresh: what a new leader needs, since the watch of a standby may lag behind
// the last binds of the leader before. The engine is told the difference only. Until all lists are in, the inbox gives
// nothing out.
func (inf *Informers) Start(ctx context.Context) {
	inf.Stop()
	inf.mu.Lock()
	defer inf.mu.Unlock()
	inf.inbox.awaitLists()
	ctx, inf.cancel = context.WithCancel(ctx)
	pods := inf.client.CoreV1().Pods(metav1.NamespaceAll)
	inf.run(ctx, "pods", &v1.Pod{}, newPodStore(inf.inbox), &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = unfinished
			return pods.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = unfinished
			return pods.Watch(ctx, o)
		},
	})
	nodes := inf.client.CoreV1().Nodes()
	inf.run(ctx, "nodes", &v1.Node{}, newNodeStore(inf.inbox), listWatch(nodes.List, nodes.Watch))
	for _, t := range inf.inbox.objects {
		lw, kind := source(inf.client, t.kind)
		lw = patient(ctx, lw, t.kind, func() {
			inf.heard.miss(string(t.kind))
			inf.inbox.goOnWithout(t.kind)
		})
		inf.run(ctx, string(t.kind), kind, newObjectStore(inf.inbox, t), lw)
	}
}

// consistent makes a list say what is true at the moment of the question. A reflector asks for resourceVersion=0 first,
// which any API server may answer from a cache of any age: the last binds of the scheduler before us would be missing, and
// their room would be given away again (kubernetes#137308). The streamed list, tried before, is consistent by itself.
func consistent(lw *cache.ListWatch) *cache.ListWatch {
	list := lw.ListWithContextFunc
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			if o.ResourceVersion == "0" {
				o.ResourceVersion, o.ResourceVersionMatch = "", ""
			}
			return list(ctx, o)
		},
		WatchFuncWithContext: lw.WatchFuncWithContext,
	}
}

func (inf *Informers) run(ctx context.Context, name string, kind runtime.Object, store cache.ReflectorStore, lw *cache.ListWatch) {
	r := cache.NewReflectorWithOptions(cache.ToListWatcherWithWatchListSemantics(consistent(lw), inf.client), kind, inf.heard.listen(name, store),
		cache.ReflectorOptions{Name: name})
	inf.running.Go(func() {
		r.RunWithContext(klog.NewContext(ctx, klog.FromContext(ctx).WithValues("watch", name)))
	})
}

// Stop ends the watches and waits for their goroutines.
func (inf *Informers) Stop() {
	inf.mu.Lock()
	defer inf.mu.Unlock()
	if inf.cancel != nil {
		inf.cancel()
		inf.running.Wait()
	}
}
