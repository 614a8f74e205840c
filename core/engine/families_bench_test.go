// SPDX-License-Identifier: Apache-2.0

package engine_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/engine"
	"github.com/kumiki-scheduler/kumiki/record"
)

// family is a kind of workload of upstream's scheduler_perf, as pods.
type family struct {
	name string
	// kinds is how many templates take turns.
	kinds int
	// shape gives a pod of kind k its rules.
	shape func(p *v1.Pod, k int)
}

func families() []family {
	term := func(key, value string) v1.PodAffinityTerm {
		return v1.PodAffinityTerm{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": value}}, TopologyKey: key}
	}
	anywhere := func(key, value string) v1.PodAffinityTerm {
		t := term(key, value)
		t.NamespaceSelector = &metav1.LabelSelector{}
		return t
	}
	spread := func(key string, how v1.UnsatisfiableConstraintAction) func(*v1.Pod, int) {
		return func(p *v1.Pod, k int) {
			p.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 5, TopologyKey: key, WhenUnsatisfiable: how,
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": app(k)}}}}
		}
	}
	near := func(f func(k int) *v1.Affinity) func(*v1.Pod, int) {
		return func(p *v1.Pod, k int) { p.Spec.Affinity = f(k) }
	}
	required := func(k int, t v1.PodAffinityTerm) *v1.Affinity {
		return &v1.Affinity{PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{t}}}
	}
	anti := func(t v1.PodAffinityTerm) *v1.Affinity {
		return &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{t}}}
	}
	prefer := func(t v1.PodAffinityTerm) *v1.Affinity {
		return &v1.Affinity{PodAffinity: &v1.PodAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.WeightedPodAffinityTerm{{Weight: 10, PodAffinityTerm: t}}}}
	}
	preferAnti := func(t v1.PodAffinityTerm) *v1.Affinity {
		return &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []v1.WeightedPodAffinityTerm{{Weight: 10, PodAffinityTerm: t}}}}
	}
	const zone, host = v1.LabelTopologyZone, v1.LabelHostname
	mixed := []func(*v1.Pod, int){
		func(*v1.Pod, int) {}, spread(zone, v1.DoNotSchedule), spread(host, v1.ScheduleAnyway),
		near(func(k int) *v1.Affinity { return required(k, term(zone, app(k))) }),
		near(func(k int) *v1.Affinity { return prefer(term(host, app(k))) }),
	}
	return []family{
		{"basic", 1, func(*v1.Pod, int) {}},
		{"20 templates", 20, func(*v1.Pod, int) {}},
		{"1000 templates", 1000, func(p *v1.Pod, k int) {
			p.Spec.Containers[0].Resources.Requests[v1.ResourceCPU] = *apiresource.NewMilliQuantity(int64(100+k), apiresource.DecimalSI)
		}},
		{"spread by zone", 1, spread(zone, v1.DoNotSchedule)},
		{"spread by host", 1, spread(host, v1.DoNotSchedule)},
		{"preferred spread by zone", 1, spread(zone, v1.ScheduleAnyway)},
		{"preferred spread by host", 1, spread(host, v1.ScheduleAnyway)},
		{"affinity by zone", 1, near(func(k int) *v1.Affinity { return required(k, term(zone, app(k))) })},
		{"anti-affinity by host", 1, near(func(k int) *v1.Affinity { return anti(term(host, app(k))) })},
		{"anti-affinity by host, all namespaces", 1, near(func(k int) *v1.Affinity { return anti(anywhere(host, app(k))) })},
		{"preferred affinity by host", 1, near(func(k int) *v1.Affinity { return prefer(term(host, app(k))) })},
		{"preferred affinity by zone, all namespaces", 1, near(func(k int) *v1.Affinity { return prefer(anywhere(zone, app(k))) })},
		{"preferred anti-affinity by host", 1, near(func(k int) *v1.Affinity { return preferAnti(term(host, app(k))) })},
		{"mixed", 5, func(p *v1.Pod, k int) { mixed[k](p, k) }},
	}
}

func app(k int) string { return fmt.Sprint("app-", k) }

// BenchmarkFamily is one pod from pending to seen bound, by workload and number of nodes. Pods stay until as many are there as
// half the nodes; then the oldest goes for each that comes, so that the cluster stays as full as it is.
func BenchmarkFamily(b *testing.B) {
	for _, nodes := range []int{1000, 5000, 15_000, 50_000, 100_000} {
		for _, f := range families() {
			b.Run(fmt.Sprintf("%s/nodes=%d", f.name, nodes), func(b *testing.B) { f.bench(b, nodes) })
		}
	}
}

func (f *family) bench(b *testing.B, nodes int) {
	e, in := benchEngine(nodes, 1<<30)
	live := make([]record.PodRef, nodes/2) // a ring
	pod := func(i int) *cluster.Pod {
		k := i % f.kinds
		p := benchPod(i, 0)
		p.Labels = map[string]string{"app": app(k)}
		f.shape(p, k)
		return in.Pod(p)
	}
	i, waits := 0, 0
	one := func(p *cluster.Pod) {
		e.Step(engine.PodSet{Pod: p})
		var bind engine.Bind
		for _, f := range e.Step(engine.Cycle{}) {
			if f, ok := f.(engine.Bind); ok {
				bind = f
			}
		}
		if bind.Node == "" {
			waits++
			e.Step(engine.PodGone{Pod: p.Ref()})
			return
		}
		e.Step(engine.BindDone{Pod: bind.Pod, Node: bind.Node})
		bound := *p
		bound.NodeName = bind.Node
		e.Step(engine.PodSet{Pod: &bound})
		if old := live[i%len(live)]; old.UID != "" {
			e.Step(engine.PodGone{Pod: old})
		}
		live[i%len(live)] = bind.Pod
		i++
	}
	for n := range min(nodes/2, 2500) {
		one(pod(n))
	}
	pods := make([]*cluster.Pod, b.N)
	for n := range pods {
		pods[n] = pod(nodes + n)
	}
	b.ReportAllocs()
	b.ResetTimer()
	for _, p := range pods {
		one(p)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "decisions/s")
	if waits > 0 {
		b.ReportMetric(float64(waits)/float64(b.N), "waits/op")
	}
}
