// SPDX-License-Identifier: Apache-2.0

package incident

import (
	"fmt"
	"runtime"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// benchPod is one of 200 templates.
func benchPod(i int, node string) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: fmt.Sprintf("pod-%07d-x7fk2", i),
		UID:    types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)),
		Labels: map[string]string{"app": fmt.Sprint("app-", i%200)}},
		Spec: v1.PodSpec{SchedulerName: "default-scheduler", NodeName: node, Containers: []v1.Container{{
			Resources: v1.ResourceRequirements{Requests: v1.ResourceList{"cpu": resource.MustParse("10m"),
				"memory": resource.MustParse(fmt.Sprint(1+i%200, "Mi"))}}}}}}
}

// loaded is an engine with bound pods, a hundred on each node at most.
func loaded(nodes, pods int) (*engine.Engine, *convert.Intake) {
	e, in := engine.New(engineConfig()), convert.NewIntake()
	for i := range nodes {
		e.Step(engine.NodeSet{Node: in.Node(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%05d", i)},
			Status: v1.NodeStatus{Allocatable: v1.ResourceList{"cpu": resource.MustParse("64"),
				"memory": resource.MustParse("256Gi"), "pods": resource.MustParse("1000")}}})})
	}
	for i := range pods {
		e.Step(engine.PodSet{Pod: in.Pod(benchPod(i, fmt.Sprintf("node-%05d", i%nodes)))})
	}
	e.Step(engine.Synced{})
	e.Step(engine.Tick{Now: record.Second})
	return e, in
}

// life gives a pod to an engine, from its creation to the watch that shows it bound: five events.
func life(step func(engine.Event) []engine.Effect, in *convert.Intake, i int) {
	pod := benchPod(i, "")
	step(engine.PodSet{Pod: in.Pod(pod)})
	for _, f := range step(engine.Cycle{}) {
		if b, is := f.(engine.Bind); is {
			step(engine.BindDone{Pod: b.Pod, Node: b.Node})
			pod.Spec.NodeName = b.Node
			step(engine.PodSet{Pod: in.Pod(pod)})
			step(engine.PodGone{Pod: b.Pod})
		}
	}
}

// BenchmarkFlight measures what the flight recorder adds to the life of a pod in the engine: five events, of which one
// is a decision. The difference of the two cases is the cost, States included.
func BenchmarkFlight(b *testing.B) {
	for _, pods := range []int{50_000, 150_000} {
		e, in := loaded(1000, pods)
		b.Run(fmt.Sprintf("pods=%d/off", pods), func(b *testing.B) {
			for i := range b.N {
				life(e.Step, in, 1_000_000+i)
			}
		})
		f := NewFlight(e.State, DefaultLimits, func() Server { return Server{} })
		b.Run(fmt.Sprintf("pods=%d/on", pods), func(b *testing.B) {
			for i := range b.N {
				life(func(ev engine.Event) []engine.Effect {
					f.Before(ev)
					effects := e.Step(ev)
					f.After(ev, effects)
					return effects
				}, in, 1_000_000+i)
			}
		})
	}
}

// BenchmarkCycleAlone measures what the flight recorder adds to one event with the effects of a decision: digest,
// recording and detection.
func BenchmarkCycleAlone(b *testing.B) {
	e, in := loaded(1000, 1000)
	f := NewFlight(e.State, DefaultLimits, func() Server { return Server{} })
	e.Step(engine.PodSet{Pod: in.Pod(benchPod(1_000_000, ""))})
	var effects []engine.Effect
	for _, one := range e.Step(engine.Cycle{}) {
		effects = append(effects, one)
	}
	b.ReportAllocs()
	for range b.N {
		f.Before(engine.Cycle{})
		f.After(engine.Cycle{}, effects)
	}
}

// BenchmarkRecorderMemory reports what full segments keep in memory that the engine alone would not: two States, the
// events, and versions of pods that are gone. Pods come, are bound and go.
func BenchmarkRecorderMemory(b *testing.B) {
	heap := func() float64 {
		runtime.GC()
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	for _, pods := range []int{50_000, 150_000} {
		b.Run(fmt.Sprintf("pods=%d", pods), func(b *testing.B) {
			for range b.N {
				e, in := loaded(1000, pods)
				f := NewFlight(e.State, DefaultLimits, func() Server { return Server{} })
				f.clock = func() time.Time { return time.Time{} } // States may follow each other at once
				for i := 0; f.previous == nil || f.previous.before == 0 || f.present.bytes < f.limit*9/10; i++ {
					life(func(ev engine.Event) []engine.Effect {
						effects := e.Step(ev)
						f.After(ev, effects)
						return effects
					}, in, 1_000_000+i)
				}
				with := heap()
				kept := f.Cut().Count
				f.previous, f.present = nil, nil
				without := heap()
				b.ReportMetric((with-without)/(1<<20), "MiB")
				b.ReportMetric(float64(kept), "events")
				runtime.KeepAlive(f)
				runtime.KeepAlive(e)
			}
		})
	}
}
