// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
)

// kumiki is the production engine with the default profile.
func kumiki(name string) Scheduler {
	return Scheduler{Name: name, Make: func() Stepper { return engine.New(configuration()) }}
}

func configuration() engine.Config {
	p := engine.DefaultProfile(v1.DefaultSchedulerName)
	p.Preemption = &preempt.Config{}
	return engine.Config{
		Seed: 7, Profiles: []engine.Profile{p}, Less: basic.PrioritySort{}, InitialBackoff: record.Second,
		MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second,
	}
}

func node(name, cpu string) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: apiresource.MustParse(cpu), v1.ResourcePods: apiresource.MustParse("110")}
	return n
}

// asking is a pod that requests cpu, with a priority.
func asking(cpu string, priority int32) *v1.Pod {
	p := &v1.Pod{}
	p.Spec.Priority = &priority
	p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{
		Requests: v1.ResourceList{v1.ResourceCPU: apiresource.MustParse(cpu)}}}}
	return p
}

// stage is a World with its measurement and workloads.
type stage struct {
	w     *World
	m     *Measure
	loads []*Workload
}

// newStage starts a World with equal nodes of 4 cores.
func newStage(seed uint64, model Model, nodes int, schedulers ...Scheduler) *stage {
	s := &stage{m: NewMeasure(time.Minute)}
	s.w = New(Setup{Seed: seed, Schedulers: schedulers, Model: model, Observer: s.m})
	for i := range nodes {
		s.w.AddNode(node(fmt.Sprintf("n%d", i), "4"))
	}
	s.w.Start()
	return s
}

func (s *stage) load(l *Workload) *Workload {
	s.w.Load(l, len(s.loads))
	s.loads = append(s.loads, l)
	return l
}

func (s *stage) run(until time.Duration) Result {
	return s.m.Result(s.w, s.loads, s.w.Run(Limits{Until: until, WhenQuiet: true}))
}

func (r *Result) number(t *testing.T, name string) float64 {
	t.Helper()
	m, is := r.Find(name)
	if !is || m.Value == nil {
		t.Fatalf("no value of %s (there: %v)", name, is)
	}
	return *m.Value
}

func (r *Result) expect(t *testing.T, want map[string]float64) {
	t.Helper()
	for name, v := range want { // order: each by itself
		if got := r.number(t, name); got != v {
			t.Errorf("%s is %v, want %v", name, got, v)
		}
	}
}

// TestOneSchedulerFillsTheCluster: ten pods of a core that work 60 s, on two nodes of 4 cores: eight start at once, two
// after the first end.
func TestOneSchedulerFillsTheCluster(t *testing.T) {
	s := newStage(1, DefaultModel(), 2, kumiki("a"))
	s.load(&Workload{Name: "w", Kind: Pods, Pod: asking("1", 0), Count: 10, Work: Always(time.Minute)})
	r := s.run(time.Hour)
	r.expect(t, map[string]float64{"pods.created": 10, "pods.bound": 10, "pods.succeeded": 10, "pods.pending": 0,
		"overcommits": 0, "conflicts": 0, "nodes.used.max": 2, "nodes.used.max.bound": 2, "units.finished": 10,
		"scheduler.a.binds": 10})
	if p50, most := r.number(t, "timeToBind.p50"), r.number(t, "timeToBind.max"); p50 > 1 || most < 60 || most > 75 {
		t.Errorf("half of the pods wait %v s, the last %v s", p50, most)
	}
	if got, least := r.number(t, "makespan"), r.number(t, "makespan.bound"); least < 75 || got < least || got > 140 {
		t.Errorf("makespan %v s, bound %v s", got, least)
	}
	if r.Reason != Finished {
		t.Errorf("ended because %s", r.Reason)
	}
}

// TestUncoordinatedSchedulersOvercommit: two schedulers share the pods, not the cluster's state, and see each other's
// binds late. Both fill the same node; the kubelet rejects what does not fit. Each by itself does not.
func TestUncoordinatedSchedulersOvercommit(t *testing.T) {
	model := DefaultModel()
	model.Watch = Always(5 * time.Second)
	a, b := kumiki("a"), kumiki("b")
	b.Copy, a.Copies, b.Copies = 1, 2, 2
	s := newStage(1, model, 6, a, b)
	l := s.load(&Workload{Name: "w", Kind: ReplicaSet, Pod: asking("3", 0), Size: 6})
	r := s.run(time.Hour)
	if r.number(t, "overcommits") == 0 || r.number(t, "kubeletRejections") == 0 {
		t.Errorf("two schedulers that see late: %v overcommits, %v rejections", r.number(t, "overcommits"),
			r.number(t, "kubeletRejections"))
	}
	if r.number(t, "scheduler.a.binds") == 0 || r.number(t, "scheduler.b.binds") == 0 {
		t.Error("one of the schedulers has bound nothing")
	}
	if u := l.Units()[0]; u.Started < 0 || u.Restarts == 0 {
		t.Errorf("the ReplicaSet replaces rejected pods: started %v, replaced %d", u.Started, u.Restarts)
	}
}

// TestRacingSchedulersConflict: two schedulers try every pod. One of two binds of a pod meets a pod that is bound.
func TestRacingSchedulersConflict(t *testing.T) {
	s := newStage(1, DefaultModel(), 4, kumiki("a"), kumiki("b"))
	s.load(&Workload{Name: "w", Kind: Pods, Pod: asking("1", 0), Count: 8})
	r := s.run(time.Hour)
	r.expect(t, map[string]float64{"pods.bound": 8, "pods.pending": 0})
	if r.number(t, "conflicts") == 0 {
		t.Error("no conflict between two schedulers that try the same pods")
	}
}

// TestFrozenWatchDelays: a scheduler whose watch stands still for a minute binds nothing until then.
func TestFrozenWatchDelays(t *testing.T) {
	s := newStage(1, DefaultModel(), 1, kumiki("a"))
	s.w.Freeze(0, time.Minute)
	s.load(&Workload{Name: "w", Kind: Pods, Pod: asking("1", 0), First: time.Second})
	s.load(&Workload{Name: "meanwhile", Kind: Pods, Pod: asking("1", 0), First: 30 * time.Second})
	r := s.run(time.Hour)
	if got := r.number(t, "timeToBind.max"); got < 59 || got > 60 {
		t.Errorf("bound after %v s", got)
	}
}

// TestBindsFailAndLoseAnswers: half of the binds fail or lose their answer, and each pod is bound in the end, once.
func TestBindsFailAndLoseAnswers(t *testing.T) {
	model := DefaultModel()
	model.Failed, model.Lost = 0.25, 0.25
	s := newStage(3, model, 4, kumiki("a"))
	s.load(&Workload{Name: "w", Kind: Pods, Pod: asking("1", 0), Count: 16})
	r := s.run(time.Hour)
	r.expect(t, map[string]float64{"pods.bound": 16, "pods.pending": 0, "overcommits": 0, "binds": 16})
	if r.number(t, "failedBinds") == 0 || r.number(t, "unknownBinds") == 0 {
		t.Errorf("failed %v, unknown %v", r.number(t, "failedBinds"), r.number(t, "unknownBinds"))
	}
}

// TestRereadTellsTheTruth: what a scheduler reads after it lost the answer of a bind is what the API server has.
func TestRereadTellsTheTruth(t *testing.T) {
	s := newStage(1, DefaultModel(), 2, kumiki("a"))
	p := s.w.Create(s.w.Template(asking("1", 0)), NewPod{Name: "p"})
	b := engine.Bind{Pod: p.Record.Ref(), Node: "n0"}
	if got := s.w.reread(b); got.Outcome != engine.BindFailed {
		t.Errorf("a pod that is not bound: %+v", got)
	}
	s.w.bind(b, s.w.schedulers[0])
	if got := s.w.reread(b); got.Outcome != engine.Bound {
		t.Errorf("a pod that is bound: %+v", got)
	}
	b.Node = "n1"
	if got := s.w.reread(b); got.Outcome != engine.BoundElsewhere || got.Node != "n0" {
		t.Errorf("a pod that is bound elsewhere: %+v", got)
	}
	s.w.Vanish(p, Deleted)
	if got := s.w.reread(b); got.Outcome != engine.PodVanished {
		t.Errorf("a pod that is gone: %+v", got)
	}
}

// TestCallsInFlightAreLimited: with one call at a time that takes a second, the tenth pod is bound after ten seconds;
// without a limit, after one.
func TestCallsInFlightAreLimited(t *testing.T) {
	for limit, want := range map[int]float64{1: 10, 0: 1} { // order: each by itself
		model := DefaultModel()
		model.Call, model.InFlight = Always(time.Second), limit
		s := newStage(1, model, 4, kumiki("a"))
		s.load(&Workload{Name: "w", Kind: Pods, Pod: asking("1", 0), Count: 10})
		r := s.run(time.Hour)
		if got := r.number(t, "timeToBind.max"); math.Abs(got-want) > 0.1 {
			t.Errorf("limit %d: the last pod is bound after %v s, want about %v", limit, got, want)
		}
	}
}

// TestPreemptionEvicts: a pod of high priority gets the place of one of low priority, whose work is lost.
func TestPreemptionEvicts(t *testing.T) {
	s := newStage(1, DefaultModel(), 1, kumiki("a"))
	s.load(&Workload{Name: "low", Kind: ReplicaSet, Pod: asking("4", 0), Work: Always(time.Hour)})
	s.load(&Workload{Name: "high", Kind: Pods, Pod: asking("4", 100), First: time.Minute, Work: Always(time.Minute)})
	r := s.run(3 * time.Hour)
	r.expect(t, map[string]float64{"pods.evicted": 1, "evictions": 1, "wastedEvictions": 0})
	if got := r.number(t, "timeToBind.max"); got < 60 {
		t.Errorf("the successor of the victim waits %v s", got)
	}
	if lost := r.number(t, "lostWork.cpu"); lost < 4*50_000 || lost > 4*60_000 {
		t.Errorf("lost %v thousandths of a core times seconds", lost)
	}
}

// TestNodeFails: the pods of a node that fails are lost after Model.Remove, and their ReplicaSet replaces them.
func TestNodeFails(t *testing.T) {
	s := newStage(1, DefaultModel(), 2, kumiki("a"))
	l := s.load(&Workload{Name: "w", Kind: ReplicaSet, Pod: asking("1", 0), Size: 4})
	s.w.At(time.Minute, func() { s.w.Fail(s.w.Node("n0")) })
	r := s.run(time.Hour)
	r.expect(t, map[string]float64{"pods.running": 4, "nodes.end": 1})
	if lost := r.number(t, "pods.lost"); lost == 0 || l.Units()[0].Restarts != int(lost) {
		t.Errorf("%v pods were lost, %d replaced", lost, l.Units()[0].Restarts)
	}
}

// TestDrainRespectsBudget: a budget allows one disruption at a time, so that three of four pods run at every time.
func TestDrainRespectsBudget(t *testing.T) {
	s := newStage(1, DefaultModel(), 1, kumiki("a"))
	s.load(&Workload{Name: "w", Kind: ReplicaSet, Pod: asking("1", 0), Size: 4})
	three := intstr.FromInt32(3)
	err := s.w.AddBudget(policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "b"},
		Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &three,
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"workload": "w"}}}})
	if err != nil {
		t.Fatal(err)
	}
	least := 4
	s.w.At(time.Minute, func() { s.w.AddNode(node("n1", "4")); s.w.Drain(s.w.Node("n0")) })
	for at := time.Minute; at < 10*time.Minute; at += 100 * time.Millisecond {
		s.w.At(at, func() { least = min(least, s.m.running-terminating(s.w)) })
	}
	r := s.run(time.Hour)
	r.expect(t, map[string]float64{"pods.drained": 4, "pods.running": 4, "nodes.used.end": 1})
	if least != 3 {
		t.Errorf("at least %d pods run, want 3", least)
	}
}

func terminating(w *World) (n int) {
	for _, o := range w.Nodes() {
		for _, p := range o.Pods() {
			if p.Record.Terminating && p.Started >= 0 {
				n++
			}
		}
	}
	return n
}

// TestGangRestartsWhole: a member of a running gang is lost with its node, so the others end too, and the whole gang
// works again from the beginning.
func TestGangRestartsWhole(t *testing.T) {
	s := newStage(1, DefaultModel(), 3, kumiki("a"))
	l := s.load(&Workload{Name: "g", Kind: Gang, Pod: asking("2", 0), Size: 4, Work: Always(10 * time.Minute)})
	s.w.At(2*time.Minute, func() {
		for _, n := range s.w.Nodes() {
			if len(n.Pods()) > 0 {
				s.w.Remove(n)
				return
			}
		}
	})
	r := s.run(time.Hour)
	u := l.Units()[0]
	if u.Restarts != 1 || u.Finished < 12*time.Minute {
		t.Errorf("restarted %d times, finished at %v", u.Restarts, u.Finished)
	}
	r.expect(t, map[string]float64{"pods.created": 8, "pods.succeeded": 4, "gangs.started": 1, "units.finished": 1})
}

// TestGangOfOnePod: a gang of one pod declares none, and is created again when its node goes.
func TestGangOfOnePod(t *testing.T) {
	s := newStage(1, DefaultModel(), 1, kumiki("a"))
	l := s.load(&Workload{Name: "w", Kind: Gang, Pod: asking("1", 0), Size: 1, Work: Always(10 * time.Minute)})
	pair := s.load(&Workload{Name: "v", Kind: Gang, Pod: asking("1", 0), Size: 2, Work: Always(time.Minute)})
	s.w.At(time.Minute, func() {
		if l.units[0].live[0].Record.Gang != nil || pair.units[0].live[0].Record.Gang == nil {
			t.Errorf("one pod declares gang %v, two declare %v", l.units[0].live[0].Record.Gang,
				pair.units[0].live[0].Record.Gang)
		}
		s.w.Remove(s.w.Node("n0"))
	})
	s.w.At(2*time.Minute, func() { s.w.AddNode(node("n1", "4")) })
	r := s.run(2 * time.Hour)
	if u := l.units[0]; u.Restarts != 1 || u.Finished < 0 {
		t.Errorf("the pod was created again %d times, and finished at %v (%s)", u.Restarts, u.Finished, r.Reason)
	}
}

// TestGangWaitsForAll: a gang of three pods of 2 cores has no place for the third, and none of it is bound.
func TestGangWaitsForAll(t *testing.T) {
	s := newStage(1, DefaultModel(), 1, kumiki("a"))
	s.load(&Workload{Name: "g", Kind: Gang, Pod: asking("2", 0), Size: 3})
	r := s.run(time.Hour)
	r.expect(t, map[string]float64{"pods.bound": 0, "pods.pending": 3, "gangs.started": 0, "gangs.partialHold": 0})
	if r.Reason != Stuck {
		t.Errorf("ended because %s", r.Reason)
	}
}

// TestJobRetries: a Job of 6 completions, 2 at a time, of which pods fail, succeeds 6 times, or gives up.
func TestJobRetries(t *testing.T) {
	s := newStage(5, DefaultModel(), 1, kumiki("a"))
	l := s.load(&Workload{Name: "j", Kind: Job, Pod: asking("1", 0), Size: 2, Completions: 6, Retries: 100, FailRate: 0.4,
		Work: Always(time.Minute)})
	r := s.run(24 * time.Hour)
	r.expect(t, map[string]float64{"pods.succeeded": 6, "units.finished": 1, "units.gaveUp": 0})
	if r.number(t, "pods.failed") == 0 || l.Units()[0].Finished < 3*time.Minute {
		t.Errorf("failed %v, finished at %v", r.number(t, "pods.failed"), l.Units()[0].Finished)
	}
	s = newStage(5, DefaultModel(), 1, kumiki("a"))
	s.load(&Workload{Name: "j", Kind: Job, Pod: asking("1", 0), FailRate: 1, Retries: 2, Work: Always(time.Minute)})
	r = s.run(24 * time.Hour)
	r.expect(t, map[string]float64{"pods.failed": 3, "units.gaveUp": 1, "units.finished": 0})
}

// TestSameSeedSameResult: equal seeds give equal results, other seeds others.
func TestSameSeedSameResult(t *testing.T) {
	result := func(seed uint64) Result {
		model := DefaultModel()
		model.Failed, model.Lost = 0.05, 0.05
		s := newStage(seed, model, 5, kumiki("a"), kumiki("b"))
		s.load(&Workload{Name: "w", Kind: Pods, Pod: asking("1", 0), Count: 60,
			Every: Durations{Shape: Exponential, A: 5 * time.Second}, Work: Durations{Shape: Pareto, A: time.Minute, Alpha: 1.5}})
		s.load(&Workload{Name: "g", Kind: Gang, Pod: asking("1", 10), Size: 6, Count: 5, Work: Always(time.Minute),
			Every: Always(time.Minute)})
		return s.run(24 * time.Hour)
	}
	a, again, other := result(1), result(1), result(2)
	if !reflect.DeepEqual(a, again) {
		t.Errorf("the same seed gives\n%+v\nand then\n%+v", a, again)
	}
	other.Seed = a.Seed
	if reflect.DeepEqual(a, other) {
		t.Error("two seeds give the same result")
	}
}
