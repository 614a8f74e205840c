// SPDX-License-Identifier: Apache-2.0

package framework

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/events"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"

	"github.com/kumiki-scheduler/kumiki/conformance/gen"
	"github.com/kumiki-scheduler/kumiki/conformance/kumiki"
	"github.com/kumiki-scheduler/kumiki/conformance/oracle"
	"github.com/kumiki-scheduler/kumiki/conformance/sampling"
	"github.com/kumiki-scheduler/kumiki/conformance/scenario"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/host/framework"
	"github.com/kumiki-scheduler/kumiki/record"
)

// holds is a plugin that lets each pod wait. The change of a node helps it if the node has the label of its name.
type holds struct {
	name   string
	handle fwk.Handle
}

func (h *holds) Name() string { return h.name }

func (h *holds) Permit(context.Context, fwk.CycleState, *v1.Pod, string) (*fwk.Status, time.Duration) {
	return fwk.NewStatus(fwk.Wait), time.Minute
}

func (h *holds) EventsToRegister(context.Context) ([]fwk.ClusterEventWithHint, error) {
	return []fwk.ClusterEventWithHint{
		{Event: fwk.ClusterEvent{Resource: fwk.Node, ActionType: fwk.Add | fwk.UpdateNodeLabel}, QueueingHintFn: h.hint},
		{Event: fwk.ClusterEvent{Resource: fwk.AssignedPod, ActionType: fwk.Delete}},
	}, nil
}

func (h *holds) hint(_ klog.Logger, _ *v1.Pod, _, is any) (fwk.QueueingHint, error) {
	if is.(*v1.Node).Labels[h.name] != "" {
		return fwk.Queue, nil
	}
	return fwk.QueueSkip, nil
}

// the plugins of the comparison, and a name that is no plugin's.
const (
	holdsName = "Holds" // both plugins let the pod wait
	otherName = "Other"
	noName    = ""
)

// waits is one pod that waits for Permit, in one of the schedulers.
type waits struct {
	handle  fwk.Handle
	setNode func(*v1.Node)
	setPod  func(*v1.Pod)
	goes    func(*v1.Pod)
	// queued settles the scheduler and reports whether the pod is to be tried again without another event.
	queued func(*testing.T) bool
}

var quietPermit = sync.OnceFunc(func() { klog.SetLogger(logr.Discard()) })

func permitProfile() *scenario.Profile {
	return &scenario.Profile{Plugins: append(gen.DefaultPlugins(), scenario.Plugin{Name: holdsName},
		scenario.Plugin{Name: otherName})}
}

// upstreamWaits is upstream's scheduler in which a pod waits.
func upstreamWaits(t *testing.T, node *v1.Node, pod *v1.Pod) *waits {
	t.Helper()
	quietPermit()
	profile, err := oracle.InternalProfile(permitProfile())
	if err != nil {
		t.Fatal(err)
	}
	w := &waits{}
	registry := frameworkruntime.Registry{}
	for _, name := range []string{holdsName, otherName} {
		registry[name] = func(_ context.Context, _ runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
			w.handle = h
			return &holds{name, h}, nil
		}
	}
	ctx, stop := context.WithCancel(klog.NewContext(context.Background(), logr.Discard()))
	api := oracle.NewObjects()
	sched, err := scheduler.New(ctx, fake.NewClientset(pod), api.Factory, nil,
		func(string) events.EventRecorderLogger { return &events.FakeRecorder{} },
		scheduler.WithProfiles([]config.KubeSchedulerProfile{*profile}...),
		scheduler.WithFrameworkOutOfTreeRegistry(registry))
	if err != nil {
		stop()
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		sched.SchedulingQueue.Close()
		sched.Profiles.Close()
	})
	w.setNode = func(n *v1.Node) { api.Set(n) }
	w.setPod = func(p *v1.Pod) { api.Set(p) }
	w.goes = func(p *v1.Pod) {
		api.Delete(scenario.ObjectRef{Kind: "Pod", Namespace: p.Namespace, Name: p.Name})
	}
	w.queued = func(t *testing.T) bool {
		t.Helper()
		for range 10_000 { // the binding cycle is a goroutine
			if len(sched.SchedulingQueue.UnschedulablePods()) > 0 {
				return false
			}
			if len(sched.SchedulingQueue.PodsInBackoffQ())+len(sched.SchedulingQueue.PodsInActiveQ()) > 0 {
				return true
			}
			time.Sleep(time.Millisecond)
		}
		t.Fatal("upstream: the pod does not come back to the queue")
		return false
	}
	api.Set(node)
	api.Set(pod)
	sched.ScheduleOne(ctx)
	return w
}

// kumikiWaits is kumiki's engine in which a pod waits.
func kumikiWaits(t *testing.T, node *v1.Node, pod *v1.Pod) *waits {
	t.Helper()
	w := &waits{}
	var hosted []framework.Registration
	for _, name := range []string{holdsName, otherName} {
		hosted = append(hosted, framework.Registration{Name: name, Type: (*holds)(nil),
			Factory: func(_ context.Context, _ runtime.Object, h fwk.Handle) (fwk.Plugin, error) {
				w.handle = h
				return &holds{name, h}, nil
			}})
	}
	cfg, err := kumiki.ConfigWith(permitProfile(), hosted)
	if err != nil {
		t.Fatal(err)
	}
	cfg.UnschedulableTimeout = 300 * record.Second
	e, in := engine.New(cfg), convert.NewIntake()
	in.KeepFull()
	w.setNode = func(n *v1.Node) { e.Step(engine.NodeSet{Node: in.Node(n)}) }
	w.setPod = func(p *v1.Pod) { e.Step(engine.PodSet{Pod: in.Pod(p)}) }
	w.goes = func(p *v1.Pod) {
		e.Step(engine.PodGone{Pod: record.PodRef{Namespace: p.Namespace, Name: p.Name, UID: string(p.UID)}})
	}
	w.queued = func(*testing.T) bool {
		e.Step(engine.Activate{}) // as a plugin's Reject makes the host post
		e.Step(engine.Tick{Now: 20 * record.Second})
		return e.Ready()
	}
	e.Step(engine.Tick{Now: record.Second})
	e.Step(engine.Synced{})
	w.setNode(node)
	e.Step(engine.PodSet{Pod: in.PendingPod(pod)})
	e.Step(engine.Cycle{})
	return w
}

// play is what happens while a pod waits, as draws, the first of which says who rejects it.
func (w *waits) play(t *testing.T, draws []int, pod *v1.Pod) bool {
	t.Helper()
	version := 10
	object := func(name string) v1.Node {
		n := *node(name)
		version++
		n.ResourceVersion = strconv.Itoa(version)
		return n
	}
	for i, draw := range draws[1:] {
		name := fmt.Sprint("n", i)
		switch draw {
		case 0:
			n := object(name)
			w.setNode(&n)
		case 1, 2:
			n := object(name)
			n.Labels = map[string]string{[]string{holdsName, otherName}[draw-1]: "x"}
			w.setNode(&n)
		case 3: // that node is relabelled
			n := object("first")
			n.Labels = map[string]string{holdsName: "x", "version": strconv.Itoa(i)}
			w.setNode(&n)
		case 4:
			p := permitPod(name)
			p.Spec.NodeName = "first"
			w.setPod(p)
			w.goes(p)
		}
	}
	waiting := w.handle.GetWaitingPod(pod.UID)
	if waiting == nil {
		t.Fatal("the pod does not wait")
	}
	switch by := []string{holdsName, otherName, noName}[draws[0]]; by {
	case noName:
		w.handle.RejectWaitingPod(pod.UID)
	default:
		waiting.Reject(by, "says no")
	}
	return w.queued(t)
}

func node(name string) *v1.Node {
	n := &v1.Node{}
	n.Name, n.UID, n.ResourceVersion = name, types.UID(name), "1"
	n.Status.Allocatable = v1.ResourceList{v1.ResourcePods: resource.MustParse("110"),
		v1.ResourceCPU: resource.MustParse("8")}
	return n
}

func permitPod(name string) *v1.Pod {
	p := &v1.Pod{}
	p.Name, p.Namespace, p.UID, p.ResourceVersion = name, "default", types.UID(name), "1"
	p.Spec.SchedulerName, p.Spec.Containers = oracle.SchedulerName, []v1.Container{{Name: "c"}}
	return p
}

// TestConformancePermitRejects rejects pods that wait for Permit after drawn events, in upstream's scheduler and in
// kumiki's engine: both try the pod again, or both let it wait for an event.
func TestConformancePermitRejects(t *testing.T) {
	seed, again, want := sampling.Seed(t), 0, sampling.Cases(t, 150)
	for n := range min(want, 2000) {
		draws := []int{hash(seed, "by", n) % 3}
		for i := range hash(seed, "events", n) % 4 {
			draws = append(draws, hash(seed, n, i)%5)
		}
		pod := permitPod("waits")
		theirs := upstreamWaits(t, node("first"), pod).play(t, slices.Clone(draws), pod)
		ours := kumikiWaits(t, node("first"), pod).play(t, draws, pod)
		if theirs != ours {
			t.Errorf("case %d, draws %v: upstream tries the pod again: %v, kumiki: %v", n, draws, theirs, ours)
		}
		if theirs {
			again++
		}
	}
	if again < want/10 || again > want*9/10 {
		t.Errorf("in %d of %d cases the pod is tried again", again, want)
	}
}
