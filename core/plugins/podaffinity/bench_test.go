// SPDX-License-Identifier: Apache-2.0

package podaffinity

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

// socialBench is a cluster of 5,000 nodes in 3 zones with 2 pods each, of 100 services. Of each three, the first wants
// its pods on different hosts, the second wants them in one zone, the third likes its own zone and dislikes its own
// hosts.
func socialBench() *plugintest.Cluster {
	w := plugintest.NewCluster().WithNamespaces(space("ns"))
	for i := range plugintest.BenchNodes {
		name := plugintest.NodeName(i)
		w.With(plugintest.Node(name, plugintest.Labels("zone", fmt.Sprint("z", i%3), "host", name)))
		for k := range 2 {
			p := benchService((2*i + k) % 100)
			p.Name, p.UID = fmt.Sprintf("p%d-%d", i, k), types.UID(fmt.Sprintf("uid-%d-%d", i, k))
			p.Spec.NodeName = name
			w.With(p)
		}
	}
	return w
}

func benchService(i int) *v1.Pod {
	app := fmt.Sprint("s", i)
	p := plugintest.Pod(app, wears("app", app))
	switch i % 3 {
	case 0:
		wantsFar(podsBy("host", "app", app))(p)
	case 1:
		wantsNear(podsBy("zone", "app", app))(p)
	case 2:
		likesNear(10, podsBy("zone", "app", app))(p)
		likesFar(5, podsBy("host", "app", app))(p)
	}
	return p
}

func benchSocial(b *testing.B, p *v1.Pod) {
	w := socialBench()
	s, pl, rec := w.Store.Snapshot(), interPod(), w.Intake.PendingPod(p)
	fit := make([]cluster.NodeIdx, 0, s.Rows())
	for n := range cluster.NodeIdx(s.Rows()) {
		fit = append(fit, n)
	}
	verdicts, raw := make([]plugin.Verdict, s.Rows()), make([]int64, s.Rows())
	run := func(name string, decide func(filter func(), score func())) {
		b.Run(name, func(b *testing.B) {
			filter := func() {
				if f := pl.PrepareFilter(s, rec).Filter; f != nil {
					clear(verdicts)
					f.Column(s, 0, plugintest.BenchNodes, plugin.TagOf(3), verdicts)
				}
			}
			score := func() {
				if score, err := pl.PrepareUncached(s, rec, fit); err != nil {
					b.Fatal(err)
				} else if score != nil {
					score.Rows(s, fit, raw)
					score.Normalize(s, fit, raw)
				}
			}
			decide(filter, score)
			b.ReportAllocs()
			for b.Loop() {
				decide(filter, score)
			}
		})
	}
	run("filter", func(filter, _ func()) { filter() })
	run("score", func(_, score func()) { score() })
	run("change+both", func(filter, score func()) { // as in a run of decisions: each binds a pod
		w.Store.Begin()
		w.Store.Trial().Assume(rec, 77)
		filter()
		score()
		w.Store.Abort()
	})
	run("slow twin", func(_, _ func()) {
		if f := scanPodAffinity(s, rec); f != nil {
			clear(verdicts)
			f.Column(s, 0, plugintest.BenchNodes, plugin.TagOf(3), verdicts)
		}
	})
}

func BenchmarkPodAffinityFarByHost(b *testing.B)  { benchSocial(b, benchService(0)) }
func BenchmarkPodAffinityNearByZone(b *testing.B) { benchSocial(b, benchService(1)) }
func BenchmarkPodAffinityLikes(b *testing.B)      { benchSocial(b, benchService(2)) }

// A pod without terms, as most are, pays for looking up the pods whose terms match it.
func BenchmarkPodAffinityNoTerms(b *testing.B) {
	benchSocial(b, plugintest.Pod("p", wears("app", "none")))
}

// 34 different terms by host, of pods on 34 nodes, repel the pod.
func BenchmarkPodAffinityManyTerms(b *testing.B) {
	w := socialBench()
	for i := range 100 {
		p := benchService(i)
		p.Name, p.Labels = fmt.Sprint("x", i), nil
		for _, terms := range [][]v1.PodAffinityTerm{nearOf(p).RequiredDuringSchedulingIgnoredDuringExecution, farOf(p).RequiredDuringSchedulingIgnoredDuringExecution} {
			for k := range terms {
				terms[k] = podsWhere(terms[k].TopologyKey, "app", "NotIn", fmt.Sprint("s", i))
			}
		}
		p.UID, p.Spec.NodeName = types.UID(p.Name), plugintest.NodeName(i)
		w.With(p)
	}
	s, pl, rec := w.Store.Snapshot(), interPod(), w.Intake.PendingPod(plugintest.Pod("p", wears("app", "none")))
	verdicts := make([]plugin.Verdict, s.Rows())
	decide := func() {
		clear(verdicts)
		pl.PrepareFilter(s, rec).Filter.Column(s, 0, plugintest.BenchNodes, plugin.TagOf(3), verdicts)
	}
	decide()
	b.ReportAllocs()
	for b.Loop() {
		decide()
	}
}

// 2,000 services, more than there are counters kept, want their pods on different hosts, and their pods come in turns:
// each decision makes a counter anew.
func BenchmarkPodAffinityManyServices(b *testing.B) {
	const services = 2000
	service := func(i int) *v1.Pod {
		app := fmt.Sprint("s", i%services)
		return plugintest.Pod(app, wears("app", app), wantsFar(podsBy("host", "app", app)))
	}
	w := plugintest.NewCluster().WithNamespaces(space("ns"))
	for i := range plugintest.BenchNodes {
		name := plugintest.NodeName(i)
		w.With(plugintest.Node(name, plugintest.Labels("host", name)))
		for k := range 2 {
			p := service(2*i + k)
			p.Name, p.UID, p.Spec.NodeName = fmt.Sprintf("p%d-%d", i, k), types.UID(fmt.Sprintf("uid-%d-%d", i, k)), name
			w.With(p)
		}
	}
	var pending []*cluster.Pod
	for i := range services {
		pending = append(pending, w.Intake.PendingPod(service(i)))
	}
	s, pl := w.Store.Snapshot(), interPod()
	verdicts, turn := make([]plugin.Verdict, s.Rows()), 0
	decide := func() {
		clear(verdicts)
		pl.PrepareFilter(s, pending[turn%services]).Filter.Column(s, 0, plugintest.BenchNodes, plugin.TagOf(3), verdicts)
		turn++
	}
	for range services {
		decide()
	}
	b.ReportAllocs()
	for b.Loop() {
		decide()
	}
}
