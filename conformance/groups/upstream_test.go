// SPDX-License-Identifier: Apache-2.0

package groups

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/defaultpreemption"
	"k8s.io/kubernetes/pkg/scheduler/framework/preemption"

	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
)

// answer is what one attempt of the group came to.
type answer struct {
	placed bool
	// victims are the names of the pods that are evicted, sorted.
	victims []string
	// nominated are the pods for which capacity is freed, those of earlier attempts among them: pod -> node.
	nominated map[string]string
	// message is that of the group's condition.
	message string
}

// nominate notes a nomination; an empty node ends it.
func (a *answer) nominate(pod, node string) {
	if a.nominated[pod] = node; node == "" {
		delete(a.nominated, pod)
	}
}

// theirs is upstream's scheduler on one cluster. It receives objects as from its informers and evicts no pod.
type theirs struct {
	ctx   context.Context
	stop  context.CancelFunc
	api   *oracle.Objects
	sched *scheduler.Scheduler

	version int // the newest resourceVersion

	mu   sync.Mutex
	last answer
}

var quiet = sync.OnceFunc(func() { klog.SetLogger(logr.Discard()) })

func newTheirs(t testing.TB, w *scene) *theirs {
	quiet()
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), logr.Discard()))
	u := &theirs{ctx: ctx, stop: stop, api: oracle.NewObjects(), last: answer{nominated: map[string]string{}}}
	client := fake.NewClientset()
	client.PrependReactor("patch", "*", u.patched)
	var err error
	u.sched, err = scheduler.New(ctx, client, u.api.Factory, nil,
		func(string) events.EventRecorderLogger { return &events.FakeRecorder{} })
	if err != nil {
		t.Fatal(err)
	}
	for _, pl := range u.sched.Profiles[v1.DefaultSchedulerName].PodGroupPostFilterPlugins() {
		if d, is := pl.(*defaultpreemption.DefaultPreemption); is {
			d.Executor.PreemptPod = u.preempted
		}
	}
	for _, n := range w.nodes {
		u.api.Set(n)
	}
	for _, g := range append(w.groups, w.own) {
		u.api.Set(g)
	}
	for _, p := range w.bound {
		u.api.Set(p)
	}
	if w.budget != nil {
		u.api.Set(w.budget)
	}
	for _, p := range w.members {
		u.api.Set(p)
	}
	return u
}

func (u *theirs) preempted(
	_ context.Context, _ preemption.Candidate, _ preemption.ExecutorPreemptor, victim *v1.Pod, _ string,
) (bool, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.last.victims = append(u.last.victims, victim.Name)
	return false, nil
}

// patched notes what upstream writes into statuses.
func (u *theirs) patched(a clienttesting.Action) (bool, runtime.Object, error) {
	patch := a.(clienttesting.PatchAction)
	u.mu.Lock()
	defer u.mu.Unlock()
	var status struct {
		Status struct {
			NominatedNodeName json.RawMessage // absent without a change, null when it is cleared
			Conditions        []metav1.Condition
		}
	}
	if err := json.Unmarshal(patch.GetPatch(), &status); err != nil {
		return true, nil, err
	}
	switch a.GetResource().Resource {
	case "pods":
		if raw := status.Status.NominatedNodeName; raw != nil {
			var node string
			if err := json.Unmarshal(raw, &node); err != nil {
				return true, nil, err
			}
			u.last.nominate(patch.GetName(), node)
		}
		return true, &v1.Pod{}, nil
	case "podgroups":
		for _, c := range status.Status.Conditions {
			u.last.placed, u.last.message = c.Status == metav1.ConditionTrue, c.Message
		}
		return true, &schedulingv1beta1.PodGroup{}, nil
	}
	return false, nil, nil
}

// attempt tries the group once; ok is false if it is not ready to be tried.
func (u *theirs) attempt() (a answer, ok bool) {
	u.mu.Lock()
	u.last = answer{nominated: maps.Clone(u.last.nominated)}
	u.mu.Unlock()
	if len(u.sched.SchedulingQueue.PodsInActiveQ()) == 0 {
		return a, false
	}
	u.sched.ScheduleOne(u.ctx)
	u.mu.Lock()
	defer u.mu.Unlock()
	slices.Sort(u.last.victims)
	return u.last, true
}

// again shows the nominations of the members and activates the group.
func (u *theirs) again(w *scene, nominated map[string]string) {
	pods := map[string]*v1.Pod{}
	for _, p := range w.members {
		seen := p.DeepCopy()
		seen.Status.NominatedNodeName = nominated[p.Name]
		u.set(seen)
		pods[p.Namespace+"/"+p.Name] = seen
	}
	u.sched.SchedulingQueue.Activate(klog.FromContext(u.ctx), pods)
}

// set shows a new version of a pod, or a new pod: an update without a new version is ignored.
func (u *theirs) set(p *v1.Pod) {
	u.version++
	p = p.DeepCopy()
	p.ResourceVersion = strconv.Itoa(u.version)
	u.api.Set(p)
}

func (u *theirs) gone(p *v1.Pod) {
	u.api.Delete(scenario.ObjectRef{Kind: "Pod", Namespace: p.Namespace, Name: p.Name})
}

func (u *theirs) close() {
	u.stop()
	u.sched.SchedulingQueue.Close()
	u.sched.Profiles.Close()
}
