// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/informers"
	clientset "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	compbasemetrics "k8s.io/component-base/metrics"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	apidispatcher "k8s.io/kubernetes/pkg/scheduler/backend/api_dispatcher"
	internalcache "k8s.io/kubernetes/pkg/scheduler/backend/cache"
	internalqueue "k8s.io/kubernetes/pkg/scheduler/backend/queue"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	upstreammetrics "k8s.io/kubernetes/pkg/scheduler/metrics"
	"k8s.io/kubernetes/pkg/scheduler/profile"

	"github.com/kumiki-scheduler/kumiki/app"
	"github.com/kumiki-scheduler/kumiki/config"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/kube"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
	"github.com/kumiki-scheduler/kumiki/kube/serve"
	kubescheduler "github.com/kumiki-scheduler/kumiki/kubescheduler/app"
	"github.com/kumiki-scheduler/kumiki/record"
)

// ErrNoNodesAvailable is upstream's error of a cluster without nodes.
var ErrNoNodesAvailable = errors.New("no nodes available to schedule pods")

// errAbsent is the error of what has no counterpart in kumiki.
var errAbsent = errors.New("kumiki has no counterpart of this part of upstream's scheduler")

// FailureHandlerFn handles a pod that was not placed.
type FailureHandlerFn func(ctx context.Context, fwk framework.Framework, podInfo *framework.QueuedPodInfo,
	status *fwk.Status, nominatingInfo *fwk.NominatingInfo, start time.Time)

// ScheduleResult is where a pod was placed.
type ScheduleResult struct {
	SuggestedHost                 string
	EvaluatedNodes, FeasibleNodes int
}

type schedulePod = func(context.Context, framework.Framework, fwk.CycleState, *framework.QueuedPodInfo) (
	ScheduleResult, error)

// Scheduler is kumiki with the fields of upstream's type.
type Scheduler struct {
	Cache           internalcache.Cache
	Extenders       []fwk.Extender
	NextEntity      func(logger klog.Logger) (framework.QueuedEntityInfo, error)
	FailureHandler  FailureHandlerFn // does nothing: the pod that SchedulePod did not place is in the queue again
	SchedulePod     schedulePod      // decides once and acts on the decision, where upstream's only decides
	StopEverything  <-chan struct{}
	SchedulingQueue internalqueue.SchedulingQueue
	APIDispatcher   *apidispatcher.APIDispatcher // nil, as with the gate SchedulerAsyncAPICalls off
	Profiles        profile.Map                  // a nil framework for each profile

	ctx   context.Context
	inner *app.Scheduler
	begin sync.Once
	ended chan struct{} // closed when inner has ended
	once  atomic.Pointer[turn]
	// handle is the Handle of a plugin of the test; there is none without such a plugin.
	handle atomic.Value
}

// turn is one decision that ScheduleOne waits for.
type turn struct {
	done    chan struct{} // closed when it was made
	decided []record.Decision
}

// New returns a scheduler that follows the cluster from WaitForHandlersSync on, and schedules while it runs.
func New(ctx context.Context, _ clientset.Interface, _ informers.SharedInformerFactory,
	_ dynamicinformer.DynamicSharedInformerFactory, _ profile.RecorderFactory, opts ...Option) (*Scheduler, error) {
	set, err := defaults()
	if err != nil {
		return nil, err
	}
	for _, o := range opts {
		o(set)
	}
	if len(set.absent) > 0 {
		return nil, fmt.Errorf("%w: %v", errAbsent, set.absent)
	}
	upstreammetrics.Register() // plugins count in them
	s := &Scheduler{ctx: ctx, StopEverything: ctx.Done(), ended: make(chan struct{}), Profiles: profile.Map{}}
	plugins, err := s.plugins(set)
	if err != nil {
		return nil, err
	}
	text, err := set.file()
	if err != nil {
		return nil, fmt.Errorf("write the configuration: %w", err)
	}
	resolved, err := plugins.ParseConfig(text)
	if err != nil {
		return nil, fmt.Errorf("%w\n%s", err, text)
	}
	if set.noBackoff { // which an option may ask for, and a file may not
		resolved.PodInitialBackoff, resolved.PodMaxBackoff = 0, 0
	}
	for i := range resolved.Profiles {
		s.Profiles[resolved.Profiles[i].SchedulerName] = nil
	}
	options := app.DefaultOptions()
	options.Config, options.Plugins, options.Rest, options.Serve = resolved, plugins, set.rest, serve.Options{}
	options.UnschedulableTimeout, options.AuditPeriod = set.timeout, 0
	registry := compbasemetrics.NewKubeRegistry()
	options.Metrics = metrics.New(registry)
	showEvents(registry)
	options.Observers = []kube.Observer{s.observe}
	if s.inner, err = app.NewScheduler(ctx, options); err != nil {
		return nil, err
	}
	s.inner.Hold(true)
	q := &queue{s: s, taken: map[string]bool{}}
	s.SchedulingQueue, s.NextEntity, s.Cache = q, q.next, &nodes{s: s}
	s.SchedulePod = func(ctx context.Context, _ framework.Framework, _ fwk.CycleState, info *framework.QueuedPodInfo) (
		ScheduleResult, error) {
		delete(q.taken, string(info.Pod.UID))
		return s.schedulePod(ctx, info)
	}
	s.FailureHandler = func(context.Context, framework.Framework, *framework.QueuedPodInfo, *fwk.Status,
		*fwk.NominatingInfo, time.Time) {
	}
	return s, nil
}

// schedulePod lets the scheduler decide once, which must be about the pod.
func (s *Scheduler) schedulePod(ctx context.Context, info *framework.QueuedPodInfo) (ScheduleResult, error) {
	for _, d := range s.one(ctx) {
		switch {
		case d.Pod.UID != string(info.Pod.UID):
		case d.Verdict == record.Placed:
			return ScheduleResult{SuggestedHost: d.Winner.Node, EvaluatedNodes: d.Nodes, FeasibleNodes: d.Feasible}, nil
		default:
			return ScheduleResult{}, errors.New(d.Message)
		}
	}
	return ScheduleResult{}, fmt.Errorf("pod %s/%s was not the next one", info.Pod.Namespace, info.Pod.Name)
}

// plugins returns the plugins of profiles, under the feature gates of the process.
func (s *Scheduler) plugins(set *settings) (app.Plugins, error) {
	var options []kubescheduler.Option
	for name, factory := range set.registry {
		options = append(options, kubescheduler.WithPlugin(name,
			func(ctx context.Context, args runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
				s.handle.CompareAndSwap(nil, h)
				return factory(ctx, args, h)
			}))
	}
	regs, err := kubescheduler.Registrations(options...)
	if err != nil {
		return app.Plugins{}, err
	}
	plugins, err := app.Plugins{}.WithFramework(regs...)
	if err != nil {
		return app.Plugins{}, err
	}
	return plugins.WithFrameworkHooks(kubescheduler.Hooks()).With(features()), nil
}

// features returns the features of the process's gates.
func features() config.Features {
	on := utilfeature.DefaultFeatureGate.Enabled
	return config.Features{
		StorageCapacityScoring: on("StorageCapacityScoring"), VolumeLimitScaling: on("VolumeLimitScaling"),
		NodeDeclaredFeatures: on("NodeDeclaredFeatures"), DRADeviceTaintRules: on("DRADeviceTaintRules"),
		DRADeviceTaints: on("DRADeviceTaints"), DRAAdminAccess: on("DRAAdminAccess"),
		DRAConsumableCapacity:      on("DRAConsumableCapacity"),
		DRAFractionalCapacityRange: on("DRAFractionalCapacityRange"),
		DRAPartitionableDevices:    on("DRAPartitionableDevices"), DRAPrioritizedList: on("DRAPrioritizedList"),
		DRADeviceBindingConditions:   on("DRADeviceBindingConditions"),
		DRAResourceClaimDeviceStatus: on("DRAResourceClaimDeviceStatus"),

		PodGroupPreemptionPolicy:                     on("PodGroupPreemptionPolicy"),
		GenericWorkload:                              on("GenericWorkload"),
		TopologyAwareWorkloadScheduling:              on("TopologyAwareWorkloadScheduling"),
		InPlacePodVerticalScalingSchedulerPreemption: on("InPlacePodVerticalScalingSchedulerPreemption"),
	}
}

// NewInformerFactory returns informers for the test; kumiki has its own.
func NewInformerFactory(client clientset.Interface, resync time.Duration,
	_ *cache.InformerName) informers.SharedInformerFactory {
	return informers.NewSharedInformerFactory(client, resync)
}

// start starts following the cluster, until the context of New ends.
func (s *Scheduler) start() {
	s.begin.Do(func() {
		go func() {
			defer close(s.ended)
			if err := s.inner.Run(s.ctx); err != nil {
				klog.FromContext(s.ctx).Error(err, "kumiki ended")
			}
		}()
	})
}

// WaitForHandlersSync waits until the scheduler knows the cluster.
func (s *Scheduler) WaitForHandlersSync(ctx context.Context) error {
	s.start()
	select {
	case <-s.inner.Synced():
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Run schedules until ctx ends.
func (s *Scheduler) Run(ctx context.Context) {
	s.start()
	s.inner.Hold(false)
	select {
	case <-ctx.Done():
		s.inner.Hold(true)
	case <-s.ended:
	}
}

// ScheduleOne lets the scheduler decide once, and waits for that.
func (s *Scheduler) ScheduleOne(ctx context.Context) { s.one(ctx) }

// one lets the scheduler decide once, and returns what it decided, nothing if it ends before.
func (s *Scheduler) one(ctx context.Context) []record.Decision {
	s.start()
	t := &turn{done: make(chan struct{})}
	s.once.Store(t)
	s.inner.Hold(false)
	select {
	case <-t.done:
		return t.decided
	case <-ctx.Done():
	case <-s.ended:
	}
	return nil
}

// observe ends ScheduleOne after a decision. It runs on the goroutine of the loop, which looks at Hold before the next.
func (s *Scheduler) observe(ev engine.Event, effects []engine.Effect) {
	if _, decides := ev.(engine.Cycle); !decides {
		return
	}
	t := s.once.Swap(nil)
	if t == nil {
		return
	}
	for _, effect := range effects {
		if d, is := effect.(engine.Decided); is {
			t.decided = append(t.decided, d.Decision)
		}
	}
	s.inner.Hold(true)
	close(t.done)
}

// ask reads the engine.
func (s *Scheduler) ask(read func(engine.View)) {
	s.start()
	if err := s.inner.Ask(s.ctx, func(e *engine.Engine) { read(e.View()) }); err != nil {
		klog.FromContext(s.ctx).Error(err, "kumiki does not answer")
	}
}
