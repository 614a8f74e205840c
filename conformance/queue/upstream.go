// SPDX-License-Identifier: Apache-2.0

package queue

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
	_ "unsafe" // for go:linkname

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/tools/cache"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/profile"
	"k8s.io/utils/clock"
	clocktesting "k8s.io/utils/clock/testing"

	"github.com/kumiki-scheduler/kumiki/conformance/gen"
	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// Upstream's informer handlers and flushes.
//
//go:linkname addPod k8s.io/kubernetes/pkg/scheduler.(*Scheduler).addPod
func addPod(s *scheduler.Scheduler, obj interface{})

//go:linkname updatePod k8s.io/kubernetes/pkg/scheduler.(*Scheduler).updatePod
func updatePod(s *scheduler.Scheduler, oldObj, newObj interface{})

//go:linkname deletePod k8s.io/kubernetes/pkg/scheduler.(*Scheduler).deletePod
func deletePod(s *scheduler.Scheduler, obj interface{})

//go:linkname addNode k8s.io/kubernetes/pkg/scheduler.(*Scheduler).addNodeToCache
func addNode(s *scheduler.Scheduler, obj interface{})

//go:linkname updateNode k8s.io/kubernetes/pkg/scheduler.(*Scheduler).updateNodeInCache
func updateNode(s *scheduler.Scheduler, oldObj, newObj interface{})

//go:linkname deleteNode k8s.io/kubernetes/pkg/scheduler.(*Scheduler).deleteNodeFromCache
func deleteNode(s *scheduler.Scheduler, obj interface{})

//go:linkname buildQueueingHintMap k8s.io/kubernetes/pkg/scheduler.buildQueueingHintMap
func buildQueueingHintMap(ctx context.Context, es []fwk.EnqueueExtensions) (internalqueue.QueueingHintMap, error)

//go:linkname flushBackoff k8s.io/kubernetes/pkg/scheduler/backend/queue.(*PriorityQueue).flushBackoffQCompleted
func flushBackoff(p *internalqueue.PriorityQueue, logger klog.Logger)

//go:linkname flushUnschedulable k8s.io/kubernetes/pkg/scheduler/backend/queue.(*PriorityQueue).flushUnschedulableEntitiesLeftover
func flushUnschedulable(p *internalqueue.PriorityQueue, logger klog.Logger)

// Upstream is upstream's PriorityQueue with the handlers that feed it.
type Upstream struct {
	stop   context.CancelFunc
	ctx    context.Context
	logger klog.Logger
	clock  *clocktesting.FakeClock
	sched  *scheduler.Scheduler
	queue  *internalqueue.PriorityQueue
	cache  internalcache.Cache
	lister cache.Indexer
	// popped: UID -> what Pop returned, until the attempt ends.
	popped map[string]*framework.QueuedPodInfo
	open   bool   // state of HoldGate
	before Series // when the queue was started
}

// shared has for the feature gates of the process what every queue can use: frameworks are slow to make and do not
// change.
var shared struct {
	mu    sync.Mutex
	parts map[featuregate.FeatureGate]*sharedParts
}

// sharedNow returns the parts for the gates of the process at present (conformance/release may replace them).
func sharedNow() *sharedParts {
	shared.mu.Lock()
	defer shared.mu.Unlock()
	now := utilfeature.DefaultFeatureGate
	if shared.parts[now] == nil {
		if shared.parts == nil {
			shared.parts = map[featuregate.FeatureGate]*sharedParts{}
		}
		shared.parts[now] = newShared()
	}
	return shared.parts[now]
}

func newShared() *sharedParts {
	// Never closed: it lives as long as the test binary or command that plays.
	o := oracle.New()
	f, api, err := o.Framework(&scenario.Profile{Plugins: gen.DefaultPlugins()})
	if err != nil {
		panic(fmt.Sprintf("upstream refuses its own default profile: %v", err))
	}
	hints, err := buildQueueingHintMap(context.Background(), append(f.EnqueueExtensions(), hold{}, outside{}))
	if err != nil {
		panic(fmt.Sprintf("upstream's hint map: %v", err))
	}
	gates := map[string]fwk.PreEnqueuePlugin{} // plugin name -> plugin
	for _, p := range f.PreEnqueuePlugins() {
		gates[p.Name()] = p
	}
	return &sharedParts{framework: f, api: api, hints: hints, gates: gates}
}

type sharedParts struct {
	framework framework.Framework
	api       *oracle.Objects
	hints     internalqueue.QueueingHintMap
	gates     map[string]fwk.PreEnqueuePlugin // plugin name -> plugin
}

// NewUpstream starts an empty queue at the given time.
func NewUpstream(start time.Time) *Upstream {
	parts := sharedNow()
	ctx, stop := context.WithCancel(context.Background())
	u := &Upstream{stop: stop, ctx: ctx, logger: klog.FromContext(ctx), clock: clocktesting.NewFakeClock(start),
		popped: map[string]*framework.QueuedPodInfo{}, before: upstreamSeries()}
	gates := map[string]fwk.PreEnqueuePlugin{HoldGate: hold{&u.open}} // plugin name -> plugin
	for name, g := range parts.gates {                                // order: fills another map, key by key
		gates[name] = g
	}
	factory := informers.NewSharedInformerFactory(nil, 0)
	u.lister = factory.Core().V1().Pods().Informer().GetIndexer()
	u.queue = internalqueue.NewPriorityQueue(parts.framework.QueueSortFunc(), factory,
		internalqueue.WithClock(clock.WithTicker(u.clock)),
		internalqueue.WithPreEnqueuePluginMap(map[string]map[string]fwk.PreEnqueuePlugin{oracle.SchedulerName: gates}),
		internalqueue.WithQueueingHintMapPerProfile(internalqueue.QueueingHintMapPerProfile{oracle.SchedulerName: parts.hints}),
		internalqueue.WithMetricsRecorder(metrics.NewMetricsAsyncRecorder(100, time.Hour, ctx.Done())),
	)
	u.cache = internalcache.New(ctx, nil, false, false)
	u.sched = &scheduler.Scheduler{Cache: u.cache, SchedulingQueue: u.queue, Profiles: profile.Map{oracle.SchedulerName: parts.framework}}
	return u
}

// Close ends the queue's goroutines.
func (u *Upstream) Close() { u.stop() }

// NodeSet implements Queue.
func (u *Upstream) NodeSet(old, node *v1.Node) {
	if old == nil {
		addNode(u.sched, node)
		return
	}
	updateNode(u.sched, old, node)
}

// NodeGone implements Queue.
func (u *Upstream) NodeGone(node *v1.Node) { deleteNode(u.sched, node) }

// PodSet implements Queue. The lister knows the pod before the handlers run, as
// in an informer.
func (u *Upstream) PodSet(old, pod *v1.Pod) {
	if old == nil {
		u.must(u.lister.Add(pod))
		addPod(u.sched, pod)
		return
	}
	u.must(u.lister.Update(pod))
	updatePod(u.sched, old, pod)
}

// PodGone implements Queue.
func (u *Upstream) PodGone(pod *v1.Pod) {
	u.must(u.lister.Delete(pod))
	deletePod(u.sched, pod)
}

// ObjectSet implements Queue. All queues share the objects that plugins see.
func (u *Upstream) ObjectSet(old, obj scenario.APIObject) {
	sharedNow().api.Set(obj)
	u.happened(ObjectChanges(old, obj))
}

// ObjectGone implements Queue.
func (u *Upstream) ObjectGone(old scenario.APIObject) {
	sharedNow().api.Delete(scenario.Object{APIObject: old}.Key())
	u.happened(ObjectChanges(old, nil))
}

// happened does what the handlers of upstream's buildEvtResHandler do.
func (u *Upstream) happened(changes []Change) {
	for _, c := range changes {
		old, obj := c.objects()
		u.queue.MoveAllToActiveOrBackoffQueue(u.logger, c.Event, old, obj, nil)
	}
}

func (u *Upstream) must(err error) {
	if err != nil {
		panic(fmt.Sprintf("upstream's indexer: %v", err))
	}
}

// Pop implements Queue. Upstream's Pop blocks, so it is called only when it
// would not.
func (u *Upstream) Pop() string {
	ready := len(u.queue.PodsInActiveQ()) > 0
	for _, p := range u.Places() {
		ready = ready || p.In == Backoff
	}
	if !ready {
		return ""
	}
	entity, err := u.queue.Pop(u.logger)
	info, ok := entity.(*framework.QueuedPodInfo)
	if err != nil || !ok {
		panic(fmt.Sprintf("upstream's Pop: %v, %v", entity, err))
	}
	uid := string(info.Pod.UID)
	u.popped[uid] = info
	return uid
}

// Size implements Queue.
func (u *Upstream) Size(uid string) Size {
	r := u.popped[uid].CalculateResource()
	return Size{r.Resource.GetMilliCPU(), r.Resource.GetMemory(), r.Resource.GetEphemeralStorage(),
		r.Non0CPU, r.Non0Mem}
}

// Fail implements Queue in the way of upstream's handleSchedulingFailure, which
// cannot be called itself: it patches the pod through a client.
func (u *Upstream) Fail(uid string, now *v1.Pod, why Rejection) {
	info := u.popped[uid]
	delete(u.popped, uid)
	info.ClearRejectorPlugins()
	if len(why.Plugins)+len(why.Pending) > 0 {
		info.UnschedulablePlugins = sets.New(why.Plugins...)
		info.PendingPlugins = sets.New(why.Pending...)
	}
	switch {
	case now != nil && string(now.UID) != uid:
		u.queue.Done(types.UID(uid))
		return
	case now == nil || now.Spec.NodeName != "":
		u.queue.Done(types.UID(uid))
	default:
		var err error
		if info.PodInfo, err = framework.NewPodInfo(now.DeepCopy()); err != nil {
			// Upstream goes on with what it could parse.
			u.logger.V(4).Info("pod does not parse", "err", err)
		}
		if err := u.queue.AddUnschedulablePodIfNotPresent(u.logger, info, u.queue.SchedulingCycle()); err != nil {
			panic(fmt.Sprintf("upstream's queue has %s already: %v", now.Name, err))
		}
		info.CalculateResource() // it is kept from here on, and must follow the pod
	}
	u.queue.AddNominatedPod(u.logger, info.PodInfo, &fwk.NominatingInfo{NominatingMode: fwk.ModeOverride, NominatedNodeName: why.Nominate})
}

// Done implements Queue.
func (u *Upstream) Done(uid string, now *v1.Pod) {
	delete(u.popped, uid)
	u.queue.DeleteNominatedPodIfExists(now)
	u.queue.Done(types.UID(uid))
}

// SetHold implements Queue.
func (u *Upstream) SetHold(open bool) { u.open = open }

// NominatedOn implements Queue.
func (u *Upstream) NominatedOn(node string) []string {
	var out []string
	for _, p := range u.queue.NominatedPodsForNode(node) {
		out = append(out, string(p.GetPod().UID))
	}
	slices.Sort(out)
	return out
}

// Series implements Queue.
func (u *Upstream) Series() Series { return upstreamSeries().since(u.before) }

// Activate implements Queue.
func (u *Upstream) Activate(pods []*v1.Pod) {
	byName := make(map[string]*v1.Pod, len(pods)) // namespace/name -> pod
	for _, p := range pods {
		byName[p.Namespace+"/"+p.Name] = p
	}
	u.queue.Activate(u.logger, byName)
}

// flushEvery is the period of upstream's flush of old unschedulable pods.
const flushEvery = 30 * time.Second

// Advance implements Queue: every whole second ends backoffs, every half minute
// looks for pods that have waited too long.
func (u *Upstream) Advance(now time.Time) {
	for {
		next := u.clock.Now().Truncate(time.Second).Add(time.Second)
		if next.After(now) {
			break
		}
		u.clock.SetTime(next)
		flushBackoff(u.queue, u.logger)
		if next.Truncate(flushEvery).Equal(next) {
			flushUnschedulable(u.queue, u.logger)
		}
	}
	u.clock.SetTime(now)
}

// Places implements Queue.
func (u *Upstream) Places() map[string]Place {
	out := map[string]Place{}
	put := func(pods []*v1.Pod, where func(*framework.QueuedPodInfo) SubQueue) {
		for _, p := range pods {
			info, ok := u.queue.GetPod(p.Name, p.Namespace, p.Spec.SchedulingGroup)
			if !ok {
				panic(fmt.Sprintf("upstream's queue lists %s and does not find it", p.Name))
			}
			out[string(p.UID)] = Place{In: where(info), Attempts: info.Attempts, Rejected: info.UnschedulableCount, Errors: info.ConsecutiveErrorsCount}
		}
	}
	put(u.queue.PodsInActiveQ(), func(*framework.QueuedPodInfo) SubQueue { return Active })
	put(u.queue.PodsInBackoffQ(), func(i *framework.QueuedPodInfo) SubQueue {
		if i.UnschedulablePlugins.Len() == 0 && i.PendingPlugins.Len() == 0 {
			return ErrorBackoff
		}
		return Backoff
	})
	put(u.queue.UnschedulablePods(), func(i *framework.QueuedPodInfo) SubQueue {
		if i.Gated() {
			return Gated
		}
		return Unschedulable
	})
	for _, p := range u.queue.InFlightPods() {
		out[string(p.UID)] = Place{In: InFlight}
	}
	return out
}
