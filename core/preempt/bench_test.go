// SPDX-License-Identifier: Apache-2.0

package preempt_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/preempt"
	"github.com/kumiki-scheduler/kumiki/core/preempt/simulated"
)

const benchNodes, benchPods = 5000, 10 // pods on each node

// full is a cluster on which pods of low priority hold everything: all cores, port 80 of each node, and the app "a"
// on each.
func full(b *testing.B) *world {
	w := newWorld()
	for i := range benchNodes {
		name := fmt.Sprint("n", i)
		w.SetNode(name, benchPods, 2*benchPods, fmt.Sprint("z", i%3))
		for k := range benchPods {
			p := simulated.Started(simulated.Pod(fmt.Sprint("p", i, "-", k), int32(k%3), 1), int64(1+(i*31+k*17)%1000))
			p.Labels = map[string]string{"app": "b"}
			if k == i%3*3+2 { // of the highest priority
				p.Labels["app"] = "a"
				p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 80}}
			}
			w.Bind(name, p)
		}
	}
	return w
}

// BenchmarkFind is the search for victims at 5,000 nodes with ten pods each, by what rejects the pod. Between
// searches a pod goes from one node and another comes there.
func BenchmarkFind(b *testing.B) {
	about := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "a"}}
	none := func(p *v1.Pod) { p.Spec.Containers[0].Resources.Requests = nil }
	for _, c := range []struct {
		name string
		wish func(p *v1.Pod)
		with func(w *world)
	}{
		{"resources", func(*v1.Pod) {}, nil},
		{"four cores", func(p *v1.Pod) {
			p.Spec.Containers[0].Resources.Requests = simulated.Pod("", 0, 4).Spec.Containers[0].Resources.Requests
		}, nil},
		{"budgets", func(*v1.Pod) {}, func(w *world) {
			w.SetBudget("all", 1000, map[string]string{"app": "a"})
			w.SetBudget("b", 0, map[string]string{"app": "b"})
		}},
		{"nothing helps", func(p *v1.Pod) {
			*p.Spec.Priority = 1
			p.Spec.Containers[0].Resources.Requests = simulated.Pod("", 0, 9).Spec.Containers[0].Resources.Requests
		}, nil},
		{"ports", func(p *v1.Pod) { none(p); p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 80}} }, nil},
		{"affinity", func(p *v1.Pod) {
			none(p)
			p.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
				{LabelSelector: about, TopologyKey: v1.LabelHostname}}}}
		}, nil},
		{"spread", func(p *v1.Pod) {
			p.Labels = map[string]string{"app": "a"}
			p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: v1.LabelHostname,
				WhenUnsatisfiable: v1.DoNotSchedule, LabelSelector: about}}
		}, func(w *world) { w.SetNode("empty", 0, 1, "z0") }},
		{"ports of others' betters", func(p *v1.Pod) { // each node is tried without success
			none(p)
			*p.Spec.Priority = 2
			p.Spec.Containers[0].Ports = []v1.ContainerPort{{HostPort: 80}}
		}, nil},
	} {
		b.Run(c.name, func(b *testing.B) {
			w := full(b)
			if c.with != nil {
				c.with(w)
			}
			boss := simulated.Pod("boss", 10, 1)
			c.wish(boss)
			p, s := w.Intake.Pod(boss), w.Store.Snapshot()
			took := make([]time.Duration, 0, b.N)
			tried := 0
			b.ResetTimer()
			for i := range b.N {
				b.StopTimer()
				one, _, _, _ := s.PodOn(cluster.UID(fmt.Sprint("p", i*37%benchNodes, "-", i%benchPods)))
				w.Change(func() { w.Store.DeletePod(one.UID); w.Store.SetPod(one) })
				out := w.Placer.Place(s, p, w.Nominations, func(int) int { return 0 })
				if out.Node != cluster.NoNode || out.Err != nil {
					b.Fatalf("fits %s: %v", s.NodeName(out.Node), out.Err)
				}
				b.StartTimer()
				began := time.Now()
				a := w.finder.Find(s, preempt.Question{Pod: p, WhatIf: w.Placer.WhatIf(s, out)})
				took = append(took, time.Since(began))
				tried += a.Tried
			}
			b.StopTimer()
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "µs/median")
			b.ReportMetric(float64(tried)/float64(b.N), "nodes-tried/op")
		})
	}
}
