// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
)

// BenchmarkPreemption is the cycle that evicts, at 5,000 nodes of four cores that four pods hold each: none of them
// in a gang, eight, or each in one of eight. After it the victims go and the pod is placed; that is not counted.
func BenchmarkPreemption(b *testing.B) {
	for _, c := range []struct {
		name string
		gang func(i, k int) string
	}{
		{"pods", func(int, int) string { return "" }},
		{"pods and a gang", func(i, k int) string {
			if i >= 4992 && k == 3 {
				return "g"
			}
			return ""
		}},
		{"gangs of 8", func(i, k int) string { return fmt.Sprint("g", i/8*4+k) }},
	} {
		b.Run(c.name, func(b *testing.B) { preemptions(b, c.gang) })
	}
}

func preemptions(b *testing.B, gang func(i, k int) string) {
	prof := engine.DefaultProfile("default-scheduler")
	prof.Preemption = &preempt.Config{}
	e := engine.New(engine.Config{
		Seed: 7, Profiles: []engine.Profile{prof}, Less: basic.PrioritySort{},
		InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second,
	})
	in, low := convert.NewIntake(), int32(1)
	in.DeclareGangs(convert.GangRules{Annotation: true})
	pods := map[string]*v1.Pod{} // uid -> pod
	e.Step(engine.Tick{Now: record.Second})
	for i := range 5000 {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%05d", i)}}
		node.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("400m"), v1.ResourceMemory: apiresource.MustParse("256Gi"), v1.ResourcePods: apiresource.MustParse("10")}
		e.Step(engine.NodeSet{Node: in.Node(node)})
		for k := range 4 {
			p := benchPod(4*i+k, 0)
			p.Spec.Priority, p.Spec.NodeName = &low, node.Name
			p.Status.StartTime = &metav1.Time{Time: time.Unix(int64(i*7%1000), 0)}
			if g := gang(i, k); g != "" {
				metav1.SetMetaDataAnnotation(&p.ObjectMeta, "pod_group", g)
			}
			pods[string(p.UID)] = p
			e.Step(engine.PodSet{Pod: in.Pod(p)})
		}
	}
	e.Step(engine.Synced{})
	high := int32(10)
	took := make([]time.Duration, 0, b.N)
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		b.StopTimer()
		boss := benchPod(1_000_000+i, 0)
		boss.Spec.Priority = &high
		e.Step(engine.PodSet{Pod: in.Pod(boss)})
		b.StartTimer()
		began := time.Now()
		effects := slices.Clone(e.Step(engine.Cycle{}))
		took = append(took, time.Since(began))
		b.StopTimer()
		var gone []record.PodRef
		for _, f := range effects {
			if f, is := f.(engine.Evict); is {
				e.Step(engine.EvictDone{For: f.For, Decision: f.Decision})
				for _, v := range f.Victims {
					e.Step(engine.PodGone{Pod: v})
				}
				gone = f.Victims
			}
		}
		e.Step(engine.Tick{Now: record.Time(10*(i+1)) * record.Second})
		for _, f := range e.Step(engine.Cycle{}) {
			if f, is := f.(engine.Bind); is {
				boss.Spec.NodeName = f.Node
				e.Step(engine.BindDone{Pod: f.Pod, Node: f.Node})
				boss.Spec.Priority = &low // so that there is always somebody to evict
				pods[string(boss.UID)] = boss
				e.Step(engine.PodSet{Pod: in.Pod(boss)})
			}
		}
		for _, v := range gone { // the others of a gang are made again, so that all nodes are full
			if p := pods[v.UID]; p.Spec.NodeName != boss.Spec.NodeName {
				e.Step(engine.PodSet{Pod: in.Pod(p)})
			}
		}
		if boss.Spec.NodeName == "" {
			b.Fatal("evicted and not placed")
		}
		b.StartTimer()
	}
	b.StopTimer()
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs/median")
}
