// SPDX-License-Identifier: Apache-2.0

package corebench

import (
	"context"
	"fmt"
	"sync"
	"time"
	_ "unsafe" // for go:linkname

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/bench/core"
	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

//go:linkname schedulingCycle k8s.io/kubernetes/pkg/scheduler.(*Scheduler).schedulingCycle
func schedulingCycle(s *scheduler.Scheduler, ctx context.Context, state fwk.CycleState, f framework.Framework, pod *framework.QueuedPodInfo, start time.Time,
	activate *framework.PodsToActivate) (scheduler.ScheduleResult, *framework.QueuedPodInfo, *fwk.Status)

// Upstream's schedulers, by the share of nodes that they look at.
const (
	Default = "kube-scheduler"     // a share that falls with the number of nodes; see percentageOfNodesToScore
	All     = "kube-scheduler@100" // every node, as kumiki
)

// sampled: of one in so many cycles upstream measures each plugin.
const sampled = 10

// Contenders are upstream's schedulers.
func Contenders() []core.Contender {
	return []core.Contender{
		{Name: Default, New: func() (core.Subject, error) { return start(0) }},
		{Name: All, New: func() (core.Subject, error) { return start(100) }},
	}
}

// upstream is upstream's scheduler. It receives objects as from its informers.
type upstream struct {
	ctx    context.Context
	stop   context.CancelFunc
	api    *oracle.Objects
	sched  *scheduler.Scheduler
	taken  []*v1.Pod
	bound  []*v1.Pod // oldest first
	cycles int
	// evaluated, if set, receives the number of nodes that a search evaluated; tests set it.
	evaluated func(nodes int)
}

// quiet: what upstream logs is not what is asked for here.
var quiet = sync.OnceFunc(func() { klog.SetLogger(logr.Discard()) })

func start(percentage int32, options ...scheduler.Option) (*upstream, error) {
	quiet()
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), klog.Background()))
	u := &upstream{ctx: ctx, stop: stop, api: oracle.NewObjects()}
	var err error
	u.sched, err = scheduler.New(ctx, nil, u.api.Factory, nil,
		func(string) events.EventRecorderLogger { return &events.FakeRecorder{} },
		append(options, scheduler.WithPercentageOfNodesToScore(&percentage))...)
	if err != nil {
		stop()
		return nil, fmt.Errorf("start upstream's scheduler: %w", err)
	}
	return u, nil
}

func (u *upstream) AddNode(n *v1.Node) { u.api.Set(n) }

func (u *upstream) AddBound(p *v1.Pod) {
	u.api.Set(p)
	u.bound = append(u.bound, p)
}

func (u *upstream) Take(pods []*v1.Pod) { u.taken = pods }

func (u *upstream) Place(i int) (core.Placed, error) {
	p := u.taken[i]
	u.api.Set(p)
	entity, err := u.sched.NextEntity(klog.FromContext(u.ctx))
	info, ok := entity.(*framework.QueuedPodInfo)
	if err != nil || !ok || info.Pod.UID != p.UID {
		return core.Placed{}, fmt.Errorf("upstream's queue does not give out pod %s: %v", p.Name, err)
	}
	state := framework.NewCycleState()
	state.SetRecordPluginMetrics(u.cycles%sampled == 0)
	u.cycles++
	activate := framework.NewPodsToActivate()
	state.Write(framework.PodsToActivateKey, activate)
	result, _, status := schedulingCycle(u.sched, u.ctx, state, u.sched.Profiles[p.Spec.SchedulerName], info, time.Now(), activate)
	if !status.IsSuccess() {
		return core.Placed{}, fmt.Errorf("upstream places no pod %s: %w", p.Name, status.AsError())
	}
	if u.evaluated != nil {
		u.evaluated(result.EvaluatedNodes)
	}
	u.sched.SchedulingQueue.Done(p.UID)
	seen := *p
	seen.Spec.NodeName = result.SuggestedHost
	u.api.Set(&seen)
	u.bound = append(u.bound, &seen)
	return core.Placed{Node: result.SuggestedHost}, nil
}

func (u *upstream) Retire() {
	p := u.bound[0]
	u.bound[0], u.bound = nil, u.bound[1:]
	u.api.Delete(scenario.ObjectRef{Kind: scenario.KindOf(p), Namespace: p.Namespace, Name: p.Name})
}

func (u *upstream) Close() { u.stop() }
