// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// Unfinished leaves out the pods that have ended; one that ends leaves the watch as if it were deleted (upstream:
// pkg/scheduler/scheduler.go, NewInformerFactory).
const Unfinished = "status.phase!=" + string(v1.PodSucceeded) + ",status.phase!=" + string(v1.PodFailed)

// Informers keep an Inbox up to date from the watches of pods, nodes, and the further kinds that it holds.
type Informers struct {
	// Dynamic reads the objects that declare gangs; needed if some do.
	Dynamic dynamic.Interface

	Client kubernetes.Interface
	inbox  *Inbox

	mu      sync.Mutex
	cancel  context.CancelFunc
	running sync.WaitGroup
	ages    watchAges
}

// NewInformers returns Informers that do not run yet.
func NewInformers(client kubernetes.Interface, inbox *Inbox) *Informers {
	return &Informers{Client: client, inbox: inbox}
}

// Start begins to list and watch, until ctx ends or Stop is called. The lists hold all that was true when Start was
// called. Called again, it lists everything afresh: what a new leader needs, since the watch of a standby may lag
// behind the last binds of the leader before. The engine gets the difference only. Until all lists are in, the inbox
// gives nothing out.
func (inf *Informers) Start(ctx context.Context) {
	inf.Stop()
	inf.mu.Lock()
	defer inf.mu.Unlock()
	inf.inbox.awaitLists()
	ctx, inf.cancel = context.WithCancel(ctx)
	pods := inf.Client.CoreV1().Pods(metav1.NamespaceAll)
	inf.run(ctx, "pods", &v1.Pod{}, inf.inbox.PodStore(), &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = Unfinished
			return pods.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = Unfinished
			return pods.Watch(ctx, o)
		},
	})
	nodes := inf.Client.CoreV1().Nodes()
	inf.run(ctx, "nodes", &v1.Node{}, inf.inbox.NodeStore(), listWatch(nodes.List, nodes.Watch))
	for _, t := range inf.inbox.objects {
		if t.kind == cluster.KindGang {
			inf.runGangs(ctx, t)
			continue
		}
		lw, kind := source(inf.Client, t.kind)
		missing := absence{kind: string(t.kind), so: consequence(t.kind)}
		if r, recent := recentKinds[t.kind]; recent {
			lw = ifServed(inf.Client.Discovery(), r, lw)
			missing.recent = true
		}
		inf.run(ctx, string(t.kind), kind, newObjectStore(inf.inbox, t), inf.patient(ctx, lw, t, missing))
	}
}

// WatchAges visits each watch with the time since it last brought anything; known is false for one that cannot be had.
func (inf *Informers) WatchAges(visit func(watch string, age time.Duration, known bool)) {
	inf.ages.ages(visit)
}

// runGangs watches the objects of an API that declare gangs.
func (inf *Informers) runGangs(ctx context.Context, t *rows[cluster.Object]) {
	api := t.gangs
	ifRead := api.Source == cluster.GangOfGroup && inf.inbox.groupsIfRead
	missing := absence{kind: api.WatchName(), so: api.Consequence(ifRead), expected: ifRead}
	if inf.Dynamic == nil {
		panic("kube: " + api.WatchName() + " are to be watched, and there is no client for them")
	}
	v := &gangVersion{discovery: inf.Client.Discovery(), api: api,
		set: func(version string) { inf.inbox.setGangVersion(t, version) }}
	lw := v.listWatch(func(r schema.GroupVersionResource) *cache.ListWatch {
		objects := inf.Dynamic.Resource(r)
		return listWatch(func(ctx context.Context, o metav1.ListOptions) (*unstructured.UnstructuredList, error) {
			return objects.List(ctx, o)
		}, objects.Watch)
	})
	if api.Source == cluster.GangOfGroup {
		missing.fails = func() { inf.inbox.failGroups(t) }
	}
	inf.run(ctx, api.WatchName(), &unstructured.Unstructured{}, newGangStore(inf.inbox, t),
		inf.patient(ctx, lw, t, missing))
}

// patient is a source without which the scheduler can go on.
func (inf *Informers) patient(ctx context.Context, lw *cache.ListWatch, t *rows[cluster.Object],
	a absence) *cache.ListWatch {
	return patient(ctx, lw, a, func() {
		inf.ages.miss(a.kind)
		if t.kind == cluster.KindGang && t.gangs.Source == cluster.GangOfGroup {
			inf.inbox.missGroups(t)
			return
		}
		inf.inbox.goOnWithout(t)
	})
}

// consistent makes a list say what is true at the moment of the question. A reflector asks for resourceVersion=0 first,
// which any API server may answer from a cache of any age: the last binds of the scheduler before us would be missing,
// and their capacity would be given away again (kubernetes#137308). The streamed list, tried before, is consistent by
// itself.
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

func (inf *Informers) run(ctx context.Context, name string, kind runtime.Object, store cache.ReflectorStore,
	lw *cache.ListWatch) {
	lists := cache.ToListWatcherWithWatchListSemantics(consistent(lw), inf.Client)
	r := cache.NewReflectorWithOptions(lists, kind, inf.ages.listen(name, store),
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
