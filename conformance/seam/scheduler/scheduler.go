// SPDX-License-Identifier: Apache-2.0

package scheduler

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

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
	FailureHandler  FailureHandlerFn // absent
	SchedulePod     schedulePod      // absent
	StopEverything  <-chan struct{}
	SchedulingQueue internalqueue.SchedulingQueue
	APIDispatcher   *apidispatcher.APIDispatcher // nil, as with the gate SchedulerAsyncAPICalls off
	Profiles        profile.Map                  // empty

	ctx   context.Context
	inner *app.Scheduler
	begin sync.Once
	ended chan struct{} // closed when inner has ended
	once  atomic.Pointer[chan struct{}]
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
	plugins, err := pluginsOf(set)
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
	s := &Scheduler{ctx: ctx, StopEverything: ctx.Done(), ended: make(chan struct{}), Profiles: profile.Map{}}
	options := app.DefaultOptions()
	options.Config, options.Plugins, options.Rest, options.Serve = resolved, plugins, set.rest, serve.Options{}
	options.UnschedulableTimeout, options.AuditPeriod = set.timeout, 0
	options.Metrics = metrics.New(compbasemetrics.NewKubeRegistry())
	options.Observers = []kube.Observer{s.observe}
	if s.inner, err = app.NewScheduler(ctx, options); err != nil {
		return nil, err
	}
	s.inner.Hold(true)
	q := &queue{s: s, taken: map[string]bool{}}
	s.SchedulingQueue, s.NextEntity, s.Cache = q, q.next, &nodes{s: s}
	s.SchedulePod = func(context.Context, framework.Framework, fwk.CycleState, *framework.QueuedPodInfo) (
		ScheduleResult, error) {
		return ScheduleResult{}, errAbsent
	}
	return s, nil
}

// pluginsOf returns the plugins of profiles, under the feature gates of the process.
func pluginsOf(set *settings) (app.Plugins, error) {
	var options []kubescheduler.Option
	for name, factory := range set.registry {
		options = append(options, kubescheduler.WithPlugin(name, factory))
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
func (s *Scheduler) ScheduleOne(ctx context.Context) {
	s.start()
	done := make(chan struct{})
	s.once.Store(&done)
	s.inner.Hold(false)
	select {
	case <-done:
	case <-ctx.Done():
	case <-s.ended:
	}
}

// observe ends ScheduleOne after a decision. It runs on the goroutine of the loop, which looks at Hold before the next.
func (s *Scheduler) observe(ev engine.Event, _ []engine.Effect) {
	if _, decides := ev.(engine.Cycle); !decides {
		return
	}
	if done := s.once.Swap(nil); done != nil {
		s.inner.Hold(true)
		close(*done)
	}
}

// ask reads the engine.
func (s *Scheduler) ask(read func(engine.View)) {
	s.start()
	if err := s.inner.Ask(s.ctx, func(e *engine.Engine) { read(e.View()) }); err != nil {
		klog.FromContext(s.ctx).Error(err, "kumiki does not answer")
	}
}
