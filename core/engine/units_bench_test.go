// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/record"
)

// BenchmarkGangPreempts is the cycle of a gang of 500 that fits nowhere on 5,000 full nodes: the search for places,
// that for victims, the nominations, and the asking. Of pods by themselves, and of gangs of 8.
func BenchmarkGangPreempts(b *testing.B) {
	for _, c := range []struct {
		name string
		size int // of the gangs on the nodes, 1 for none
	}{{"solo", 1}, {"gangs of 8", 8}} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				e := fullCluster(5000, 4, c.size)
				in := convert.NewIntake()
				for i := range 500 {
					p := in.Pod(lowOrBoss(fmt.Sprint("boss-", i), "", 100, 1000))
					p.Gang = &cluster.GangMark{Key: cluster.GangKey{Source: cluster.GangOfAnnotation, Namespace: "default", Name: "boss"}, Size: 500}
					e.Step(engine.PodSet{Pod: p})
				}
				b.StartTimer()
				victims := 0
				for _, f := range e.Step(engine.Cycle{}) {
					if ask, is := f.(engine.Evict); is {
						victims = len(ask.Victims)
					}
				}
				if victims == 0 {
					b.Fatal("no pod is evicted")
				}
				b.ReportMetric(float64(victims), "victims")
			}
		})
	}
}

// fullCluster has nodes of as many cores as there are pods on each.
func fullCluster(nodes, perNode, gang int) *engine.Engine {
	e := preemptingEngine(preempt.Config{})
	fill(e, convert.NewIntake(), nodes, perNode, gang)
	return e
}

func fill(e *engine.Engine, in *convert.Intake, nodes, perNode, gang int) {
	for n := range nodes {
		recordedStep(e, engine.NodeSet{Node: in.Node(benchNode(fmt.Sprintf("n%04d", n), perNode))})
	}
	for i := range nodes * perNode {
		p := in.Pod(lowOrBoss(fmt.Sprint("low-", i), fmt.Sprintf("n%04d", i%nodes), 1, 1000))
		if gang > 1 {
			p.Gang = &cluster.GangMark{Key: cluster.GangKey{Source: cluster.GangOfAnnotation, Namespace: "default", Name: fmt.Sprint("low", i/gang)}, Size: gang}
		}
		recordedStep(e, engine.PodSet{Pod: p})
	}
	recordedStep(e, engine.Synced{})
	recordedStep(e, engine.Tick{Now: 1000 * record.Second})
}

func benchNode(name string, cores int) *v1.Node {
	n := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}
	n.Status.Allocatable = v1.ResourceList{v1.ResourceCPU: *apiresource.NewQuantity(int64(cores), apiresource.DecimalSI), v1.ResourcePods: apiresource.MustParse("110")}
	return n
}

func lowOrBoss(name, node string, priority int32, milli int64) *v1.Pod {
	p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID(name)}}
	p.Spec.SchedulerName, p.Spec.Priority, p.Spec.NodeName = "default-scheduler", &priority, node
	p.Spec.Containers = []v1.Container{{Name: "c", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: *apiresource.NewMilliQuantity(milli, apiresource.DecimalSI)}}}}
	return p
}

// BenchmarkPodPreemptsAmongGangs is the cycle of one pod that fits nowhere on 5,000 full nodes with gangs of 8.
func BenchmarkPodPreemptsAmongGangs(b *testing.B) {
	e, in := fullCluster(5000, 4, 8), convert.NewIntake()
	i := 0
	for b.Loop() {
		b.StopTimer()
		p := in.Pod(lowOrBoss(fmt.Sprint("boss-", i), "", 100, 1000))
		i++
		e.Step(engine.PodSet{Pod: p})
		b.StartTimer()
		e.Step(engine.Cycle{})
	}
}
