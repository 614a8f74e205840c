// SPDX-License-Identifier: Apache-2.0

package corebench

import (
	"context"
	"io"
	"regexp"
	"runtime"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	fwk "k8s.io/kube-scheduler/framework"

	"github.com/kumiki-scheduler/kumiki/bench/core"
	"github.com/kumiki-scheduler/kumiki/core/engine"
)

var basic = regexp.MustCompile("^basic$")

// TestSchedulersWithAPluginPlaceEveryPod: all of them place the same number of pods.
func TestSchedulersWithAPluginPlaceEveryPod(t *testing.T) {
	const pods = 30
	runs, err := core.Measure(context.Background(), core.Options{Nodes: []int{120}, Families: basic, Pods: pods,
		Warmup: 5, Runs: 1, Contenders: Hosted(), Progress: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range runs {
		if r.Pods != pods {
			t.Errorf("%s places %d of %d pods", r.Contender, r.Pods, pods)
		}
	}
	if len(runs) != len(Hosted()) {
		t.Errorf("%d runs, want %d", len(runs), len(Hosted()))
	}
}

// oneNode prefers nodes with many pods, more than any default plugin prefers others.
type oneNode struct{ fewestPods }

func (oneNode) Name() string { return "OneNode" }

func (oneNode) Score(_ context.Context, _ fwk.CycleState, _ *v1.Pod, node fwk.NodeInfo) (int64, *fwk.Status) {
	return min(fwk.MaxScore, 50*int64(len(node.GetPods()))), nil
}

// TestThePluginScores: the plugin decides in each scheduler, so that it is part of what is compared. All pods run on
// one node.
func TestThePluginScores(t *testing.T) {
	for name, begin := range map[string]func() (core.Subject, error){ // order: each by itself
		"kumiki": core.Hosting("kumiki", func() (engine.Config, error) { return hosting(oneNode{}, "all") }).New,
		"kumiki, window": core.Hosting("kumiki", func() (engine.Config, error) {
			return hosting(oneNode{}, "window")
		}).New,
		"kube-scheduler": func() (core.Subject, error) { return startWith(100, oneNode{}) },
	} {
		s, err := begin()
		if err != nil {
			t.Fatal(err)
		}
		for i := range 30 {
			s.AddNode(core.Node(i))
		}
		family := core.Families()[0]
		var pods []*v1.Pod
		for i := range 10 {
			pods = append(pods, family.Pod(i))
		}
		s.Take(pods)
		used := map[string]bool{} // node -> it has a pod
		for i := range pods {
			placed, err := s.Place(i)
			if err != nil {
				t.Fatal(err)
			}
			used[placed.Node] = true
		}
		if len(used) != 1 {
			t.Errorf("%s: the pods are on %d nodes, want one", name, len(used))
		}
		s.Close()
	}
}

// BenchmarkHosted compares schedulers with one plugin at 5,000 nodes, in three rounds in turn: medians of the CPU time,
// the time and the allocations of a pod.
//
//	go test ./conformance/corebench -run '^$' -bench 'Hosted$' -benchtime 1x
func BenchmarkHosted(b *testing.B) {
	contenders := append([]core.Contender{core.Kumiki(0)}, Hosted()...)
	for b.Loop() {
		runs, err := core.Measure(context.Background(), core.Options{Nodes: []int{5000}, Families: basic, Pods: 300,
			Warmup: 100, Runs: 3, Contenders: contenders, Progress: io.Discard})
		if err != nil {
			b.Fatal(err)
		}
		for _, c := range contenders {
			var cpu, took, bytes []float64
			for _, r := range runs {
				if r.Contender == c.Name {
					cpu, took = append(cpu, r.CPUNanoseconds/1e3), append(took, r.Nanoseconds/1e3)
					bytes = append(bytes, r.AllocatedBytes/1e3)
				}
			}
			b.Logf("%-28s CPU %8.1f µs (%.1f to %.1f), %8.1f µs, %7.1f kB for each pod", c.Name, middle(cpu),
				slices.Min(cpu), slices.Max(cpu), middle(took), middle(bytes))
		}
	}
}

// middle returns the median.
func middle(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}

// BenchmarkHostedMemory is the live heap with 5,000 nodes and 50,000 pods, once a pod was placed by a plugin that reads
// each NodeInfo.
//
//	go test ./conformance/corebench -run '^$' -bench HostedMemory -benchtime 1x
func BenchmarkHostedMemory(b *testing.B) {
	const nodes, bound = 5000, 50_000
	family := core.Families()[0]
	for _, c := range append([]core.Contender{core.Kumiki(0)}, Hosted()...) {
		b.Run(c.Name, func(b *testing.B) {
			for b.Loop() {
				before := heap()
				s, err := c.New()
				if err != nil {
					b.Fatal(err)
				}
				for i := range nodes {
					s.AddNode(core.Node(i))
				}
				for i := range bound {
					s.AddBound(family.Bound(i, nodes))
				}
				s.Take([]*v1.Pod{family.Pod(bound)})
				if _, err := s.Place(0); err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(float64(heap()-before)/(1<<20), "MiB")
				s.Close()
			}
		})
	}
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
