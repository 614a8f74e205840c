// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	v1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/kubernetes"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection/resourcelock"
	componentmetrics "k8s.io/component-base/metrics"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/kube/call"
	"github.com/kumiki-scheduler/kumiki/kube/effects"
	"github.com/kumiki-scheduler/kumiki/kube/intake"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
	"github.com/kumiki-scheduler/kumiki/kube/metrics"
	"github.com/kumiki-scheduler/kumiki/kube/serve"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/timing"
)

// whole is a scheduler with the real engine against an API server of our own making.
type whole struct {
	*Scheduler
	api     *kubetest.APIServer
	timing  *timing.Recorder
	reg     componentmetrics.KubeRegistry
	end     context.CancelFunc
	outcome chan error
}

// wholeOptions change the scheduler of a wholeScenario.
type wholeOptions struct {
	kinds     []cluster.Kind // watched besides pods and nodes
	observers []Observer
	binds     int           // in flight at most; 0 is the default
	slowLease time.Duration // that the lease takes to read
	// hungEvents keeps writes of events without an answer.
	hungEvents bool
	// preempts lets pods evict others.
	preempts bool
	// groups makes pod groups count if they can be read; the API server serves none.
	groups bool
}

// wholeScenario runs a scheduler until the scenario ends. The bubble of synctest fails the test when a goroutine is
// left.
func wholeScenario(t *testing.T, elect bool, api *kubetest.APIServer, scenario func(t *testing.T, w *whole), change ...func(*wholeOptions)) {
	var options wholeOptions
	for _, c := range change {
		c(&options)
	}
	synctest.Test(t, func(t *testing.T) {
		for _, name := range []string{"n1", "n2"} {
			if _, err := api.Clientset.CoreV1().Nodes().Create(t.Context(), kubetest.Node(name), metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		w := &whole{api: api, timing: timing.New(timing.Options{}), outcome: make(chan error, 1)}
		var m *metrics.Metrics
		m, w.reg = counted()
		meter := metrics.NewMeter()
		profile := engine.DefaultProfile(v1.DefaultSchedulerName)
		if options.preempts {
			profile.Preemption = &preempt.Config{}
		}
		eng := engine.New(engine.Config{
			Seed: 1, Profiles: []engine.Profile{profile}, Less: basic.PrioritySort{},
			InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second, Meter: meter,
		})
		in := intake.NewInbox(func(object string, problem any) { t.Errorf("%s: %v", object, problem) }, options.kinds...)
		informers := intake.NewInformers(api, in)
		if options.groups {
			in.ReadGangs(convert.GangRules{Group: true, GroupIfRead: true})
			informers.Dynamic = dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())
		}
		var events kubernetes.Interface = api
		if options.hungEvents {
			events = hungEvents{api}
		}
		world := effects.NewExecutor(t.Context(), effects.Config{Binds: api, Patches: api, Events: events, Known: in, Metrics: m, BindsInFlight: options.binds,
			Answer:      func(done engine.Event) { w.Loop.Answer(done) },
			AnswerBind:  func(done engine.BindDone, t *call.Trace) { w.Loop.AnswerBind(done, t) },
			AnswerEvict: func(done engine.EvictDone, deletes []call.Trace) { w.Loop.AnswerEvict(done, deletes) },
			Reporter:    v1.DefaultSchedulerName, Hostname: "host"})
		w.Scheduler = &Scheduler{Informers: informers, Executor: world,
			Loop: NewLoop(LoopConfig{Engine: eng, Inbox: in, Executor: world, Metrics: m, Meter: meter,
				Timing: w.timing, Observers: options.observers, SchedulerNames: []string{v1.DefaultSchedulerName}})}
		if elect {
			election, err := NewElection(LeaseConfig{
				Client: slowLeases{api.CoordinationV1(), options.slowLease}, Namespace: "kube-system", Name: "kube-scheduler", Hostname: "host",
				LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
				Endpoint: serve.Endpoint{Address: "10.0.0.1:10259", CA: []byte("certificate")},
			})
			if err != nil {
				t.Fatal(err)
			}
			w.Election = election
		}
		ctx, end := context.WithCancel(t.Context())
		w.end = end
		go func() { w.outcome <- w.Run(ctx) }()
		scenario(t, w)
		end()
		<-w.outcome
	})
}

func (w *whole) after(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

// on is the node of a pod, empty while it waits.
func (w *whole) on(key string) string { return w.api.Pod(key).Spec.NodeName }

func TestPodsAreBoundAndTheRestWaitsForCapacity(t *testing.T) {
	api := kubetest.NewAPIServer()
	for i := range 9 { // two nodes of 4 cores
		api.Put(kubetest.PendingPod(fmt.Sprint("p", i), types.UID(fmt.Sprint("u", i))))
	}
	wholeScenario(t, false, api, func(t *testing.T, w *whole) {
		w.after(time.Second)
		if api.Bound() != 8 {
			t.Fatalf("%d binds, want 8", api.Bound())
		}
		var waits *v1.Pod
		for key := range api.All() {
			if w.on(key) == "" {
				waits = api.Pod(key)
			}
		}
		if c := waits.Status.Conditions; len(c) != 1 || c[0].Reason != "Unschedulable" || c[0].Status != v1.ConditionFalse {
			t.Errorf("conditions of the pod that waits: %+v", c)
		}
		for label, want := range map[string]float64{"result=scheduled": 8, "result=unschedulable": 1, "result=error": 0} {
			if got := kubetest.Value(t, w.reg, "scheduler_schedule_attempts_total", label); got != want {
				t.Errorf("attempts with %s: %v, want %v", label, got, want)
			}
		}
		if got := kubetest.Value(t, w.reg, "scheduler_unschedulable_pods", "plugin=NodeResourcesFit"); got != 1 {
			t.Errorf("%v pods rejected by NodeResourcesFit, want 1", got)
		}
		if got := kubetest.Value(t, w.reg, "scheduler_pending_pods", "queue=unschedulable"); got != 1 {
			t.Errorf("%v pods unschedulable, want 1", got)
		}
		for _, name := range []string{"scheduler_pod_scheduling_sli_duration_seconds", "scheduler_pod_scheduling_attempts"} {
			if got := kubetest.Value(t, w.reg, name); got != 8 {
				t.Errorf("%s counts %v, want 8", name, got)
			}
		}
		if got := kubetest.Value(t, w.reg, "scheduler_cache_size", "type=nodes"); got != 2 {
			t.Errorf("cache_size of nodes: %v", got)
		}
		if got := len(kubetest.Events(t, api.Clientset)); got != 9 {
			t.Errorf("%d events, want 9", got)
		}

		for key := range api.All() {
			if w.on(key) != "" {
				api.Remove(key)
				break
			}
		}
		w.after(time.Minute)
		if w.on(waits.Namespace+"/"+waits.Name) == "" {
			t.Error("the pod still waits although there is capacity")
		}
		if got := kubetest.Value(t, w.reg, "scheduler_unschedulable_pods"); got != 0 {
			t.Errorf("%v pods counted as rejected, want none", got)
		}
		api.Put(kubetest.PendingPod("ends", "u99"))
		w.after(time.Second)
		if got := kubetest.Value(t, w.reg, "scheduler_unschedulable_pods"); got != 1 {
			t.Errorf("%v pods counted as rejected, want 1", got)
		}
		api.Remove("ns/ends")
		w.after(time.Second)
		if got := kubetest.Value(t, w.reg, "scheduler_unschedulable_pods"); got != 0 {
			t.Errorf("%v pods counted as rejected after the pod has ended, want none", got)
		}
		if n := w.Loop.tally.Pods(); n != 0 {
			t.Errorf("the tally still holds %d pods", n)
		}
	})
}

// TestALostReplyDoesNotPlaceAPodTwice is the whole way of a bind that was done and whose answer was lost.
func TestALostReplyDoesNotPlaceAPodTwice(t *testing.T) {
	api := kubetest.NewAPIServer(kubetest.PendingPod("p", "u1"))
	api.After = kubetest.Once("bind", kubetest.ErrLost)
	wholeScenario(t, false, api, func(t *testing.T, w *whole) {
		w.after(time.Minute)
		if api.Bound() != 1 || w.on("ns/p") == "" {
			t.Errorf("%d binds, pod on %q", api.Bound(), w.on("ns/p"))
		}
	})
}

// TestARefusedBindIsTriedAgainAfterABackoff and the condition says so meanwhile.
func TestARefusedBindIsTriedAgainAfterABackoff(t *testing.T) {
	api := kubetest.NewAPIServer(kubetest.PendingPod("p", "u1"))
	api.Before = kubetest.Once("bind", apierrors.NewForbidden(kubetest.PodResource, "p", errors.New("not now")))
	wholeScenario(t, false, api, func(t *testing.T, w *whole) {
		w.after(500 * time.Millisecond)
		if c := api.Pod("ns/p").Status.Conditions; len(c) != 1 || c[0].Reason != "SchedulerError" {
			t.Errorf("conditions: %+v", c)
		}
		w.after(time.Minute)
		if api.Bound() != 1 {
			t.Errorf("%d binds, want 1", api.Bound())
		}
		if got := kubetest.Value(t, w.reg, "scheduler_schedule_attempts_total", "result=error"); got != 1 {
			t.Errorf("%v attempts with an error, want 1", got)
		}
	})
}

// TestTheEndHandsOver keeps the lease until the last bind has ended, and leaves what was not sent to the next leader.
func TestTheEndHandsOver(t *testing.T) {
	api := kubetest.NewAPIServer(kubetest.PendingPod("p", "u1"))
	api.Before = func(verb, _ string) error {
		if verb == "bind" {
			time.Sleep(5 * time.Second)
		}
		return nil
	}
	wholeScenario(t, true, api, func(t *testing.T, w *whole) {
		w.after(time.Second)
		if lease := holder(t, api); *lease.Spec.HolderIdentity == "" || lease.Annotations[EndpointAnnotation] != "10.0.0.1:10259" ||
			lease.Annotations[HolderAnnotation] != *lease.Spec.HolderIdentity {
			t.Fatalf("lease %+v", lease)
		}
		w.end()
		w.after(2 * time.Second)
		if lease := holder(t, api); *lease.Spec.HolderIdentity == "" {
			t.Error("the lease was given back while a bind was under way")
		}
		api.Put(kubetest.PendingPod("late", "u2"))
		w.after(10 * time.Second)
		if err := <-w.outcome; err != nil {
			t.Errorf("the end was %v", err)
		}
		w.outcome <- nil
		if w.on("ns/p") == "" || w.on("ns/late") != "" {
			t.Errorf("pod on %q, late pod on %q", w.on("ns/p"), w.on("ns/late"))
		}
		lease := holder(t, api)
		if *lease.Spec.HolderIdentity != "" {
			t.Errorf("the lease is still held by %s", *lease.Spec.HolderIdentity)
		}
		if len(lease.Annotations) != 0 {
			t.Errorf("the lease still shows %v", lease.Annotations)
		}
		if got := len(kubetest.Events(t, api.Clientset)); got != 1 {
			t.Errorf("%d events, want that of the last bind", got)
		}
	})
}

// TestTheNextLeaderDoesNotWaitForEvents: an API server that takes no events holds up the end, and not the lease. It
// would fail with a hand-over that writes events first.
func TestTheNextLeaderDoesNotWaitForEvents(t *testing.T) {
	wholeScenario(t, true, kubetest.NewAPIServer(kubetest.PendingPod("p", "u1")), func(t *testing.T, w *whole) {
		w.after(time.Second)
		if w.on("ns/p") == "" {
			t.Fatal("the pod is not bound, so there is no event")
		}
		w.end()
		w.after(2 * time.Second)
		if left := *holder(t, w.api).Spec.HolderIdentity; left != "" {
			t.Errorf("the lease is still held by %s", left)
		}
		if len(w.outcome) > 0 {
			t.Error("the scheduler ended without waiting for its event")
		}
	}, func(o *wholeOptions) { o.hungEvents = true })
}

// hungEvents is an API server that takes no events.
type hungEvents struct{ kubernetes.Interface }

func (h hungEvents) EventsV1() eventsclient.EventsV1Interface {
	return hungEventsV1{h.Interface.EventsV1()}
}

type hungEventsV1 struct{ eventsclient.EventsV1Interface }

func (h hungEventsV1) Events(namespace string) eventsclient.EventInterface {
	return hungEventsOf{h.EventsV1Interface.Events(namespace)}
}

type hungEventsOf struct{ eventsclient.EventInterface }

// Create does not answer before ctx ends.
func (hungEventsOf) Create(ctx context.Context, _ *eventsv1.Event, _ metav1.CreateOptions) (*eventsv1.Event, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

func holder(t *testing.T, api *kubetest.APIServer) *coordinationv1.Lease {
	t.Helper()
	lease, err := api.CoordinationV1().Leases("kube-system").Get(t.Context(), "kube-scheduler", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return lease
}

// TestALostLeaseEndsTheProcess at once and with an error: another may decide now.
func TestALostLeaseEndsTheProcess(t *testing.T) {
	api := kubetest.NewAPIServer(kubetest.PendingPod("p", "u1"))
	var down atomic.Bool
	api.PrependReactor("*", "leases", func(clienttesting.Action) (bool, runtime.Object, error) {
		return down.Load(), nil, errors.New("connection refused")
	})
	wholeScenario(t, true, api, func(t *testing.T, w *whole) {
		w.after(time.Second)
		down.Store(true)
		err := <-w.outcome
		if !errors.Is(err, ErrLeaseLost) {
			t.Errorf("the end was %v", err)
		}
		w.outcome <- err
	})
}

// TestAStandbyListsAfreshBeforeItDecides: what the leader before has bound last may not have reached the standby's
// watch.
func TestAStandbyListsAfreshBeforeItDecides(t *testing.T) {
	api := kubetest.NewAPIServer(kubetest.PendingPod("p", "u1"))
	wholeScenarioWithHolder := func(scenario func(t *testing.T, w *whole)) {
		other, seconds, now := "other", int32(15), metav1.NowMicro()
		lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-scheduler"},
			Spec: coordinationv1.LeaseSpec{HolderIdentity: &other, LeaseDurationSeconds: &seconds, AcquireTime: &now, RenewTime: &now}}
		if _, err := api.CoordinationV1().Leases("kube-system").Create(t.Context(), lease, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		wholeScenario(t, true, api, scenario)
	}
	wholeScenarioWithHolder(func(t *testing.T, w *whole) {
		w.after(5 * time.Second)
		if api.Bound() != 0 {
			t.Fatal("a standby has bound a pod")
		}
		// The leader binds, and the watch does not tell.
		api.Silence()
		if err := api.Bind(&v1.Binding{ObjectMeta: kubetest.PendingPod("p", "u1").ObjectMeta, Target: v1.ObjectReference{Name: "n2"}}); err != nil {
			t.Fatal(err)
		}
		api.Put(kubetest.PendingPod("q", "u3"))
		w.after(time.Minute)
		if w.on("ns/q") == "" {
			t.Error("the new leader does not decide")
		}
		if api.Bound() != 2 {
			t.Errorf("%d binds, want 2: one of each leader", api.Bound())
		}
		if got := kubetest.Value(t, w.reg, "kumiki_bind_unknown_outcomes_total"); got != 0 {
			t.Errorf("the new leader tried to bind what was bound (%v conflicts)", got)
		}
	})
}

// TestTheLeaseIsHeldFromItsLastRenewalOn: a process that was stopped for longer than a lease does not hold it when it
// goes on, whatever its elector believes; nor does one that has read another's name on it. It would fail with a lock
// that goes by the time alone.
func TestTheLeaseIsHeldFromItsLastRenewalOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := kubetest.NewAPIServer()
		e, err := NewElection(LeaseConfig{Client: api.CoordinationV1(), Namespace: "kube-system", Name: "kube-scheduler", Hostname: "host",
			LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second})
		if err != nil {
			t.Fatal(err)
		}
		expect := func(when string, want bool) {
			t.Helper()
			if e.Holds() != want {
				t.Errorf("%s: holds %v, want %v", when, !want, want)
			}
		}
		expect("at first", false)
		ours := resourcelock.LeaderElectionRecord{HolderIdentity: e.lock.identity, LeaseDurationSeconds: 15}
		if err := e.lock.Create(t.Context(), ours); err != nil {
			t.Fatal(err)
		}
		time.Sleep(15*time.Second - 1)
		expect("just before the end", true)
		time.Sleep(time.Nanosecond)
		expect("at the end", false)
		if err := e.lock.Update(t.Context(), ours); err != nil {
			t.Fatal(err)
		}
		expect("renewed", true)
		if err := e.lock.Update(t.Context(), resourcelock.LeaderElectionRecord{LeaseDurationSeconds: 1}); err != nil {
			t.Fatal(err)
		}
		expect("given back", false)

		if err := e.lock.Update(t.Context(), ours); err != nil {
			t.Fatal(err)
		}
		expect("taken again", true)
		stolen, other := holder(t, api), "other"
		stolen.Spec.HolderIdentity = &other
		if _, err := api.CoordinationV1().Leases("kube-system").Update(t.Context(), stolen, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, _, err := e.lock.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		expect("seen in the hands of another", false)
	})
}

func TestALeaseWithoutAnEndpointIsAnError(t *testing.T) {
	for name, annotations := range map[string]map[string]string{
		"none":    nil,
		"bad CA":  {EndpointAnnotation: "h:1", CAAnnotation: "%%"},
		"no host": {CAAnnotation: "YQ=="},
	} {
		if e, err := EndpointOf(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Annotations: annotations}}); err == nil {
			t.Errorf("%s: endpoint %+v", name, e)
		}
	}
}
