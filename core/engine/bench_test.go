// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"runtime"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/record"
)

// benchEngine knows n nodes of 64 cores in three zones, one in ten tainted.
func benchEngine(n, classBytes int) (*engine.Engine, *convert.Intake) {
	e := engine.New(engine.Config{
		Seed: 7, Profiles: []engine.Profile{engine.DefaultProfile("default-scheduler")}, Less: basic.PrioritySort{},
		InitialBackoff: record.Second, MaxBackoff: 10 * record.Second, UnschedulableTimeout: 300 * record.Second, ClassBytes: classBytes,
	})
	in := convert.NewIntake()
	e.Step(engine.Tick{Now: record.Second})
	for i := range n {
		node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("node-%05d", i), Labels: map[string]string{
			"topology.kubernetes.io/zone": fmt.Sprintf("z%d", i%3), "kubernetes.io/hostname": fmt.Sprintf("node-%05d", i)}}}
		if i%10 == 0 {
			node.Spec.Taints = []v1.Taint{{Key: "dedicated", Value: "x", Effect: v1.TaintEffectNoSchedule}}
		}
		node.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: apiresource.MustParse("64"), v1.ResourceMemory: apiresource.MustParse("256Gi"), v1.ResourcePods: apiresource.MustParse("1000")}
		e.Step(engine.NodeSet{Node: in.Node(node)})
	}
	e.Step(engine.Synced{})
	return e, in
}

func benchPod(i, class int) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("pod-%d", i), Namespace: "default", UID: types.UID(fmt.Sprintf("uid-%d", i))}}
	p.Spec.SchedulerName = "default-scheduler"
	p.Spec.Containers = []v1.Container{{Name: "c", Image: "pause", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
		v1.ResourceCPU: *apiresource.NewMilliQuantity(int64(100+class), apiresource.DecimalSI), v1.ResourceMemory: apiresource.MustParse("500Mi")}}}}
	return p
}

// BenchmarkDecision is one pod from pending to seen bound, at 5,000 nodes: intake left out, queue and ledger included.
// "one class" is a deployment, "20 classes" twenty of them in turn, "scan" keeps no class, so every decision judges and
// scores every node anew by columns.
func BenchmarkDecision(b *testing.B) {
	for _, c := range []struct {
		name       string
		classes    int
		classBytes int
	}{{"one class", 1, 0}, {"20 classes", 20, 0}, {"scan", 2, 1}} {
		b.Run(c.name, func(b *testing.B) {
			e, in := benchEngine(5000, c.classBytes)
			pods := make([]*cluster.Pod, b.N)
			for i := range pods {
				pods[i] = in.Pod(benchPod(i, i%c.classes))
			}
			b.ReportAllocs()
			b.ResetTimer()
			for _, p := range pods {
				e.Step(engine.PodSet{Pod: p})
				var bind engine.Bind
				for _, f := range e.Step(engine.Cycle{}) {
					if f, ok := f.(engine.Bind); ok {
						bind = f
					}
				}
				e.Step(engine.BindDone{Pod: bind.Pod, Node: bind.Node})
				bound := *p
				bound.NodeName = bind.Node
				e.Step(engine.PodSet{Pod: &bound})
				e.Step(engine.PodGone{Pod: bind.Pod}) // keeps the cluster as empty as it was
			}
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
		})
	}
}

// BenchmarkBoundPodMemory is the heap per bound pod that the engine and the compact record take, names included.
func BenchmarkBoundPodMemory(b *testing.B) {
	const pods = 50_000
	for range b.N {
		e, in := benchEngine(1000, 0)
		before := heap()
		for i := range pods {
			p := benchPod(i, i%50)
			p.Spec.NodeName = fmt.Sprintf("node-%05d", i%1000)
			e.Step(engine.PodSet{Pod: in.Pod(p)})
		}
		b.ReportMetric(float64(heap()-before)/pods, "B/pod")
		runtime.KeepAlive(e)
		runtime.KeepAlive(in)
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
