// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"context"
	"errors"
	"fmt"
	"math/rand"
	"runtime"
	"strconv"
	"sync"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/apis/config/latest"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// Scheduler is upstream's scheduler with an API server that accepts every bind.
type Scheduler struct {
	ctx     context.Context
	stop    context.CancelFunc
	api     *oracle.Objects
	sched   *scheduler.Scheduler
	pods    map[string]*v1.Pod // name -> pod that waits
	version int

	mu    sync.Mutex
	fresh []*v1.Binding // that the scheduler has not seen
}

var quiet = sync.OnceFunc(func() { klog.SetLogger(logr.Discard()) })

// New starts a scheduler. Feature gates are those of the process: gangs need GenericWorkload. filters are plugins that
// are enabled after those of the default profile.
func New(seed int64, filters frameworkruntime.Registry) (*Scheduler, error) {
	quiet()
	//lint:ignore SA1019 upstream draws from the global generator
	rand.Seed(seed)
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), logr.Discard()))
	s := &Scheduler{ctx: ctx, stop: stop, api: oracle.NewObjects(), pods: map[string]*v1.Pod{}}
	client := fake.NewClientset()
	client.PrependReactor("create", "pods", s.bound)
	client.PrependReactor("patch", "pods", func(clienttesting.Action) (bool, apiruntime.Object, error) {
		return true, &v1.Pod{}, nil
	})
	client.PrependReactor("patch", "podgroups", func(clienttesting.Action) (bool, apiruntime.Object, error) {
		return true, &schedulingv1beta1.PodGroup{}, nil
	})
	settings, err := latest.Default()
	if err != nil {
		stop()
		return nil, fmt.Errorf("upstream's default configuration: %w", err)
	}
	for name := range filters {
		p := settings.Profiles[0].Plugins
		p.Filter.Enabled = append(p.Filter.Enabled, config.Plugin{Name: name})
	}
	s.sched, err = scheduler.New(ctx, client, s.api.Factory, nil,
		func(string) events.EventRecorderLogger { return &events.FakeRecorder{} },
		scheduler.WithParallelism(1), scheduler.WithProfiles(settings.Profiles...),
		scheduler.WithFrameworkOutOfTreeRegistry(filters),
		scheduler.WithPodInitialBackoffSeconds(0), scheduler.WithPodMaxBackoffSeconds(0))
	if err != nil {
		stop()
		return nil, fmt.Errorf("start upstream's scheduler: %w", err)
	}
	return s, nil
}

// Close ends its goroutines.
func (s *Scheduler) Close() error {
	s.stop()
	s.sched.SchedulingQueue.Close()
	return s.sched.Profiles.Close()
}

// bound notes a bind.
func (s *Scheduler) bound(a clienttesting.Action) (bool, apiruntime.Object, error) {
	b, is := a.(clienttesting.CreateAction).GetObject().(*v1.Binding)
	if !is {
		return false, nil, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fresh = append(s.fresh, b)
	return true, b, nil
}

// Set creates or changes an object other than a pod.
func (s *Scheduler) Set(o scenario.APIObject) { s.api.Set(o) }

// Create creates a pod, which waits unless it has a node.
func (s *Scheduler) Create(p *v1.Pod) {
	if p.Spec.NodeName == "" {
		s.pods[p.Name] = p
	}
	s.api.Set(p)
}

// Delete deletes a pod.
func (s *Scheduler) Delete(p *v1.Pod) {
	delete(s.pods, p.Name)
	s.api.Delete(scenario.ObjectRef{Kind: "Pod", Namespace: p.Namespace, Name: p.Name})
}

// DeleteGroup deletes a pod group.
func (s *Scheduler) DeleteGroup(g *schedulingv1beta1.PodGroup) {
	s.api.Delete(scenario.ObjectRef{Kind: "PodGroup", Namespace: g.Namespace, Name: g.Name})
}

// mostTries is how many attempts follow one change at most.
const mostTries = 100_000

// Settle tries what the queue has until it is empty, and returns the pods that were bound, with their nodes.
func (s *Scheduler) Settle() (placed []*v1.Pod, err error) {
	for tries := 0; len(s.sched.SchedulingQueue.PodsInActiveQ()) > 0; tries++ {
		if tries > mostTries {
			return nil, errors.New("upstream tries the same pods again and again")
		}
		s.sched.ScheduleOne(s.ctx)
		more, err := s.await()
		if err != nil {
			return nil, err
		}
		placed = append(placed, more...)
	}
	return placed, nil
}

// await waits for the binding cycles under way, and shows the scheduler that the pods are bound.
func (s *Scheduler) await() (placed []*v1.Pod, err error) {
	for {
		assumed, err := s.assumed()
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		done := assumed == len(s.fresh)
		s.mu.Unlock()
		if done {
			break
		}
		runtime.Gosched()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range s.fresh {
		p := s.pods[b.Name]
		if p == nil {
			return nil, errors.New("upstream binds " + b.Name + ", which does not wait")
		}
		delete(s.pods, b.Name)
		s.version++
		p = p.DeepCopy()
		p.Spec.NodeName, p.ResourceVersion = b.Target.Name, strconv.Itoa(s.version)
		placed = append(placed, p)
		s.api.Set(p)
	}
	s.fresh = nil
	return placed, nil
}

// assumed returns how many pods have a node that the scheduler has not seen in the API.
func (s *Scheduler) assumed() (n int, err error) {
	for _, p := range s.pods { // order: a count is the same in any
		is, err := s.sched.Cache.IsAssumedPod(p)
		if err != nil {
			return 0, fmt.Errorf("ask upstream's cache for %s: %w", p.Name, err)
		}
		if is {
			n++
		}
	}
	return n, nil
}

// Retry makes every pod that waits be tried again.
func (s *Scheduler) Retry() {
	waiting := map[string]*v1.Pod{}
	for _, p := range s.pods { // order: the queue sorts them
		waiting[p.Namespace+"/"+p.Name] = p
	}
	s.sched.SchedulingQueue.Activate(klog.FromContext(s.ctx), waiting)
}

// Place creates a pod, and returns it with its node; the node is empty, and the pod deleted, if there is none for it.
func (s *Scheduler) Place(p *v1.Pod) (*v1.Pod, error) {
	s.Create(p)
	placed, err := s.Settle()
	if err != nil {
		return nil, err
	}
	if len(placed) == 1 && placed[0].Name == p.Name {
		return placed[0], nil
	}
	s.Delete(p)
	return p, nil
}
