// SPDX-License-Identifier: Apache-2.0

package shadow_test

import (
	"fmt"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/record"
	"github.com/kumiki-scheduler/kumiki/shadow"
)

// failer is a *testing.T or a probe.
type failer interface {
	Helper()
	Errorf(string, ...any)
	Fatalf(string, ...any)
}

// world is a cluster as a shadow sees it, driven by a test.
type world struct {
	failer
	shadow *shadow.Shadow
	intake *convert.Intake
	now    record.Time
	pods   map[string]*v1.Pod // name -> newest version
	clock  time.Duration
}

// newWorld begins a scenario: two nodes of 4 cores, n1 empty and n2 with 2 cores taken, all of it seen before the lists were
// complete.
func newWorld(t failer) *world {
	w := bare(t)
	w.node("n1", "4")
	w.node("n2", "4")
	w.pod("old", "2", func(p *v1.Pod) { p.Spec.NodeName = "n2" })
	w.shadow.Step(engine.Synced{})
	return w
}

// bare begins a scenario without nodes and pods.
func bare(t failer) *world {
	w := &world{failer: t, intake: convert.NewIntake(), now: 1000 * record.Second, pods: map[string]*v1.Pod{}}
	w.shadow = shadow.New(shadow.Config{
		Engine: engine.New(engine.Config{Seed: 1, Profiles: []engine.Profile{engine.DefaultProfile("theirs")},
			Less:           basic.PrioritySort{},
			InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second}),
		Scheduler: "theirs", Profile: "ours",
		Clock: func() time.Duration { w.clock += time.Millisecond; return w.clock },
	})
	w.pass(0)
	return w
}

func (w *world) pass(d time.Duration) {
	w.now += record.Time(d)
	w.shadow.Step(engine.Tick{Now: w.now})
}

func (w *world) node(name, cpu string, change ...func(*v1.Node)) {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu),
		v1.ResourcePods: resource.MustParse("110")}
	for _, c := range change {
		c(n)
	}
	w.shadow.Step(engine.NodeSet{Node: w.intake.Node(n)})
}

// pod is a new version of a pod.
func (w *world) pod(name, cpu string, change ...func(*v1.Pod)) {
	p := w.pods[name]
	if p == nil {
		p = &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)}}
		p.Spec.SchedulerName = "theirs"
		p.Spec.Containers = []v1.Container{{Name: "c",
			Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu)}}}}
		w.pods[name] = p
	}
	for _, c := range change {
		c(p)
	}
	p.ResourceVersion = fmt.Sprint(p.ResourceVersion, "1")
	w.shadow.Step(engine.PodSet{Pod: w.intake.Pod(p.DeepCopy())})
}

// bind is what the other scheduler does.
func (w *world) bind(name, node string) {
	w.pod(name, "", func(p *v1.Pod) { p.Spec.NodeName, p.Status.Conditions = node, nil })
}

// refuse is the other thing it does.
func (w *world) refuse(name, message string) {
	w.pod(name, "", func(p *v1.Pod) {
		p.Status.Conditions = []v1.PodCondition{{Type: v1.PodScheduled, Status: v1.ConditionFalse,
			Reason: v1.PodReasonUnschedulable, Message: message}}
	})
}

func (w *world) gone(name string) {
	delete(w.pods, name)
	w.shadow.Step(engine.PodGone{Pod: record.PodRef{Namespace: "default", Name: name, UID: name}})
}

// are demands numbers of the report, written as in "same 1, worse 2"; what is not named is not looked at.
func (w *world) are(want string) record.ShadowReport {
	w.Helper()
	r := w.shadow.Report()
	a, q, d, f := r.Agreement, r.Quiet, r.RejectedByUs, r.RefusedByThem
	is := map[string]int{ // as in want -> in the report
		"judged": r.Pods.Judged, "unseen": r.Pods.Unseen, "unjudged": r.Pods.Unjudged, "pending": r.Pods.Pending,
		"compared": a.Pods, "same": a.Same, "tied": a.Tied, "nominated": a.Nominated, "worse": a.Worse,
		"rejected": a.Rejected,
		"quiet":    q.Pods, "quietly-worse": q.Worse,
		"disallowed": d.Pods, "nowhere": d.Nowhere, "open": d.Open, "settled": d.Settled, "lost": d.Lost,
		"refused": f.Pods, "refused-open": f.Open, "refused-settled": f.Settled, "refused-lost": f.Lost,
		"timed": r.Latency.Theirs.Count, "examples": len(r.Examples),
	}
	for _, part := range strings.Split(want, ", ") {
		var name string
		var n int
		if _, err := fmt.Sscan(part, &name, &n); err != nil {
			w.Fatalf("%q: %v", part, err)
		}
		if got, known := is[name]; !known || got != n {
			w.Errorf("%s is %d, want %d: %+v", name, got, n, r)
		}
	}
	return r
}
