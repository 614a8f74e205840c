// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/record"
)

// BenchmarkGangs is gangs from their first pod to the last one seen bound, event by event, at 5,000 nodes of four
// cores: what the engine does for them and not the search alone (core/gang). It reports CPU ms, because those who
// share the machine do not count in it: of the cycles that decide (goals: 8 ms for 500 alike, 400 ms for 1,000
// gangs of 8, 100 ms for 500 templates), of the pods that come, and of all.
func BenchmarkGangs(b *testing.B) {
	for _, c := range []struct {
		name        string
		gangs, size int
		templates   bool
	}{{"500 alike", 1, 500, false}, {"1000 of 8", 1000, 8, false}, {"500 templates", 1, 500, true}} {
		b.Run(c.name, func(b *testing.B) { benchGangs(b, c.gangs, c.size, c.templates) })
	}
}

// gangFarm is an engine that knows 5,000 nodes.
func gangFarm() (*engine.Engine, *convert.Intake) {
	e := engine.New(engine.Config{
		Seed: 7, Profiles: []engine.Profile{engine.DefaultProfile("default-scheduler")}, Less: basic.PrioritySort{},
		InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second,
	})
	in := convert.NewIntake()
	in.DeclareGangs(convert.GangRules{Annotation: true})
	e.Step(engine.Tick{Now: record.Second})
	for i := range 5000 {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%05d", i)}}
		node.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("4"), v1.ResourceMemory: apiresource.MustParse("32Gi"), v1.ResourcePods: apiresource.MustParse("110")}
		e.Step(engine.NodeSet{Node: in.Node(node)})
	}
	e.Step(engine.Synced{})
	return e, in
}

func gangPod(round, gang, i, size int, template bool) *v1.Pod {
	name := fmt.Sprintf("r%d-g%04d-%03d", round, gang, i)
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name), Labels: map[string]string{"gang": fmt.Sprint(gang)},
		Annotations: map[string]string{"pod_group": fmt.Sprintf("r%d-g%04d", round, gang), "pod_group_size": fmt.Sprint(size)}}}
	cpu := "1"
	if template {
		cpu = fmt.Sprintf("%dm", 500+i)
		p.Labels["index"] = fmt.Sprint(i)
	}
	p.Spec.SchedulerName = "default-scheduler"
	p.Spec.Containers = []v1.Container{{Name: "c", Image: "i", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
		v1.ResourceCPU: apiresource.MustParse(cpu), v1.ResourceMemory: apiresource.MustParse("1Gi")}}}}
	return p
}

func benchGangs(b *testing.B, gangs, size int, templates bool) {
	e, in := gangFarm()
	var arrive, decide, all []float64
	for round := range b.N {
		b.StopTimer()
		pods := map[string]*v1.Pod{} // UID -> pod
		var come []engine.Event
		for g := range gangs {
			for i := range size {
				p := gangPod(round, g, i, size, templates)
				pods[string(p.UID)] = p
				come = append(come, engine.PodSet{Pod: in.Pod(p)})
			}
		}
		e.Step(engine.Tick{Now: record.Time(10*(round+1)) * record.Second})
		b.StartTimer()
		start := cpuTime()
		for _, ev := range come {
			e.Step(ev)
		}
		there := cpuTime()
		var binds []engine.Bind
		for e.Ready() {
			for _, f := range e.Step(engine.Cycle{}) {
				if f, is := f.(engine.Bind); is {
					binds = append(binds, f)
				}
			}
		}
		decided := cpuTime()
		b.StopTimer()
		if len(binds) != gangs*size {
			b.Fatalf("%d of %d pods are placed", len(binds), gangs*size)
		}
		var bound []engine.Event
		for _, f := range binds {
			p := pods[f.Pod.UID]
			p.Spec.NodeName = f.Node
			bound = append(bound, engine.BindDone{Pod: f.Pod, Node: f.Node}, engine.PodSet{Pod: in.Pod(p)})
		}
		b.StartTimer()
		again := cpuTime()
		for _, ev := range bound {
			e.Step(ev)
		}
		end := cpuTime()
		b.StopTimer()
		for _, f := range binds {
			e.Step(engine.PodGone{Pod: f.Pod})
		}
		arrive, decide, all = append(arrive, ms(there-start)), append(decide, ms(decided-there)), append(all, ms(decided-start+end-again))
	}
	first := decide[0] // nothing is known of the templates
	b.ReportMetric(median(arrive), "arrive-cpu-ms")
	b.ReportMetric(median(decide), "decide-cpu-ms")
	b.ReportMetric(first, "first-decide-cpu-ms")
	b.ReportMetric(median(all), "all-cpu-ms")
}

func cpuTime() time.Duration {
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		panic(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func ms(d time.Duration) float64 { return float64(d) / 1e6 }

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}
