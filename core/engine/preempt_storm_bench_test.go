// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"math/rand"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
)

// storm is an API server that is busy: as in scheduler_perf's PreemptionBasic, pods come faster than those that
// they evict can be deleted, so that most of them wait. Of the calls in flight any may be the next that it answers.
type storm struct {
	e     *engine.Engine
	in    *convert.Intake
	draw  *rand.Rand
	now   record.Time
	rv    int
	pods  map[string]*v1.Pod // UID -> pod
	calls [lines][]func()    // by line, oldest first
	// shown are events of the watch, which is a little behind, and answers what the scheduler hears at once.
	shown   []shown
	answers []engine.Event

	took     time.Duration // in Step
	attempts int
	bound    int
	written  int
}

// shown is an event that the watch will show.
type shown struct {
	at record.Time
	engine.Event
}

// watchLag is by how much the watch is behind.
const watchLag = record.Second / 50

// The lines in which calls wait, and how many of each are in flight.
const (
	creates = iota
	victims
	statuses
	events
	binds
	lines
)

var inFlight = [lines]int{creates: 16, victims: 50, statuses: 16, events: 16, binds: 100}

// BenchmarkPreemptionStorm is the pods of PreemptionBasic from their creation until all are bound: 1,000 nodes of 4
// CPUs, four victims on each, of which three have to go for a pod. It is the time of all steps, divided by the
// pods.
func BenchmarkPreemptionStorm(b *testing.B) {
	for range b.N {
		b.StopTimer()
		s := newStorm(1000)
		b.StartTimer()
		s.run(1000)
		b.ReportMetric(float64(s.took.Microseconds())/1000, "µs/pod")
		b.ReportMetric(float64(s.attempts)/1000, "attempts/pod")
		b.ReportMetric(float64(s.written)/1000, "statuses/pod")
	}
}

func newStorm(nodes int) *storm {
	prof := engine.DefaultProfile("default-scheduler")
	prof.Preemption = &preempt.Config{}
	s := &storm{in: convert.NewIntake(), draw: rand.New(rand.NewSource(1)), pods: map[string]*v1.Pod{}, now: record.Second}
	s.e = engine.New(engine.Config{
		Seed: 7, Profiles: []engine.Profile{prof}, Less: basic.PrioritySort{},
		InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second,
	})
	s.e.Step(engine.Tick{Now: s.now})
	for i := range nodes {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%05d", i)}}
		node.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("4"), v1.ResourceMemory: apiresource.MustParse("32Gi"), v1.ResourcePods: apiresource.MustParse("110")}
		s.e.Step(engine.NodeSet{Node: s.in.Node(node)})
		for k := range 4 {
			p := s.pod(fmt.Sprintf("victim-%05d-%d", i, k), 0, "900m")
			p.Spec.NodeName = node.Name
			p.Status.StartTime = &metav1.Time{Time: time.Unix(int64(i), 0)}
			s.e.Step(engine.PodSet{Pod: s.in.Pod(p)})
		}
	}
	s.e.Step(engine.Synced{})
	return s
}

func (s *storm) pod(name string, priority int32, cpu string) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name), CreationTimestamp: metav1.Time{Time: time.Unix(int64(s.now/record.Second), 0)}}}
	p.Spec.SchedulerName, p.Spec.Priority = "default-scheduler", &priority
	p.Spec.Containers = []v1.Container{{Name: "c", Image: "pause", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
		v1.ResourceCPU: apiresource.MustParse(cpu), v1.ResourceMemory: apiresource.MustParse("500Mi")}}}}
	s.pods[name] = p
	return p
}

// run creates pods and lets the API server answer two or three calls a millisecond until all are bound.
func (s *storm) run(pods int) {
	for i := range pods {
		s.call(creates, func() { s.changed(s.pod(fmt.Sprintf("boss-%05d", i), 10, "3")) })
	}
	for s.bound < pods {
		if s.now += record.Second / 1000; s.now > 1000*record.Second {
			panic(fmt.Sprintf("%d of %d pods are bound", s.bound, pods))
		}
		for range 2 + s.draw.Intn(2) {
			s.answer()
		}
		s.step(engine.Tick{Now: s.now})
		for ; len(s.answers) > 0; s.answers = s.answers[1:] {
			s.step(s.answers[0])
		}
		for ; len(s.shown) > 0 && s.shown[0].at <= s.now; s.shown = s.shown[1:] {
			s.step(s.shown[0].Event)
		}
		for n := 0; n < 32 && s.e.Ready(); n++ {
			s.step(engine.Cycle{})
		}
	}
}

func (s *storm) call(line int, do func()) { s.calls[line] = append(s.calls[line], do) }

// next lets the worker that evicts go on with a victim: its delete marks it and removes it.
func (s *storm) next(mark, remove func()) {
	s.calls[victims] = append([]func(){mark, remove}, s.calls[victims]...)
}

// answer lets one of the calls in flight through.
func (s *storm) answer() {
	all := 0
	for line := range s.calls {
		all += min(len(s.calls[line]), inFlight[line])
	}
	if all == 0 {
		return
	}
	k := s.draw.Intn(all)
	for line := range s.calls {
		n := min(len(s.calls[line]), inFlight[line])
		if k >= n {
			k -= n
			continue
		}
		do := s.calls[line][0]
		s.calls[line] = s.calls[line][1:]
		do()
		return
	}
}

func (s *storm) changed(p *v1.Pod) {
	s.rv++
	p.ResourceVersion = fmt.Sprint(s.rv)
	s.show(engine.PodSet{Pod: s.in.Pod(p.DeepCopy())})
}

func (s *storm) show(ev engine.Event) { s.shown = append(s.shown, shown{s.now + watchLag, ev}) }

func (s *storm) step(ev engine.Event) {
	began := time.Now()
	effects := s.e.Step(ev)
	s.took += time.Since(began)
	for _, f := range effects {
		switch f := f.(type) {
		case engine.Decided:
			s.attempts++
		case engine.WriteEvent:
			s.call(events, func() {})
		case engine.Condition:
			s.written++
			s.call(statuses, func() { s.patch(f) })
		case engine.Evict:
			s.evict(f)
		case engine.Bind:
			s.call(binds, func() {
				p := s.pods[f.Pod.UID]
				p.Spec.NodeName = f.Node
				s.bound++
				s.changed(p)
				s.answers = append(s.answers, engine.BindDone{Pod: f.Pod, Node: f.Node})
			})
		}
	}
}

func (s *storm) patch(f engine.Condition) {
	p := s.pods[f.Pod.UID]
	if f.ClearNomination {
		p.Status.NominatedNodeName = ""
	}
	if f.Nominate != "" {
		p.Status.NominatedNodeName = f.Nominate
	}
	p.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse, Reason: f.Reason, Message: f.Message, ObservedGeneration: f.Generation}}
	s.changed(p)
}

// evict marks and deletes all victims but the last, and then the last.
func (s *storm) evict(f engine.Evict) {
	open := len(f.Victims) - 1
	var work func(i int)
	work = func(i int) {
		s.call(victims, func() {
			p := s.pods[f.Victims[i].UID]
			p.Status.Conditions = []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, Reason: v1.PodReasonPreemptionByScheduler}}
			s.changed(p)
			s.next(func() { p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)}; s.changed(p) }, func() {
				s.show(engine.PodGone{Pod: f.Victims[i]})
				s.call(events, func() {})
				if open--; open == 0 {
					work(len(f.Victims) - 1)
				} else if open < 0 {
					s.answers = append(s.answers, engine.EvictDone{For: f.For, Decision: f.Decision})
				}
			})
		})
	}
	if open == 0 {
		work(0)
		return
	}
	for i := range open {
		work(i)
	}
}
