// SPDX-License-Identifier: Apache-2.0

package spread

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

// spreadBench is a cluster of 5,000 nodes in 3 zones with 10,000 pods of 50 workloads; two nodes lack a zone if
// keyless.
func spreadBench(keyless bool) *plugintest.Cluster {
	w := plugintest.NewCluster()
	for i := range plugintest.BenchNodes {
		n := plugintest.Node(plugintest.NodeName(i), namedHost, inZone(fmt.Sprint("z", i%3)))
		if keyless && i < 2 {
			delete(n.Labels, v1.LabelTopologyZone)
		}
		w.With(n)
	}
	for i := range 2 * plugintest.BenchNodes {
		w.With(plugintest.Pod(fmt.Sprint("p", i), podLabels("app", fmt.Sprint("web-", i%50)), plugintest.OnNode(plugintest.NodeName((i*7)%plugintest.BenchNodes))))
	}
	for i := range 50 {
		w.With(service(fmt.Sprint("web-", i), "app", fmt.Sprint("web-", i)))
	}
	return w
}

// spreadBenchPod is of workload 1.
func spreadBenchPod(options ...plugintest.PodOption) *v1.Pod {
	return plugintest.Pod("p", append([]plugintest.PodOption{podLabels("app", "web-1")}, options...)...)
}

// benchSpread times whole decisions, each after a pod was added to a node and one was removed, with the counters up
// to date.
func benchSpread(b *testing.B, keyless bool, p *v1.Pod) {
	w, pl := spreadBench(keyless), systemSpreading()
	s, rec := w.Store.Snapshot(), w.Intake.PendingPod(p)
	out, fit, scores := make([]plugin.Verdict, plugintest.BenchNodes), make([]cluster.NodeIdx, 0, plugintest.BenchNodes), make([]int64, plugintest.BenchNodes)
	newcomer := w.Intake.Pod(plugintest.Pod("newcomer", podLabels("app", "web-1"), plugintest.OnNode(plugintest.NodeName(17))))
	b.ReportAllocs()
	for b.Loop() {
		w.Store.DeletePod(newcomer.UID)
		w.Store.SetPod(newcomer)
		clear(out)
		if f := pl.PrepareFilter(s, rec).Filter; f != nil {
			f.Column(s, 0, plugintest.BenchNodes, plugin.TagOf(1), out)
		}
		fit = fit[:0]
		for n, v := range out {
			if v == plugin.Fits {
				fit = append(fit, cluster.NodeIdx(n))
			}
		}
		if score, err := pl.PrepareUncached(s, rec, fit); err == nil && score != nil {
			score.Rows(s, fit, scores[:len(fit)])
			score.Normalize(s, fit, scores[:len(fit)])
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/plugintest.BenchNodes, "ns/node")
}

var (
	overWeb1 = func(c *v1.TopologySpreadConstraint) {
		c.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web-1"}}
	}
	benchHard = []plugintest.PodOption{spreadOver(v1.LabelTopologyZone, 5, overWeb1), spreadOver(v1.LabelHostname, 1, overWeb1)}
	benchSoft = []plugintest.PodOption{spreadOver(v1.LabelTopologyZone, 5, overWeb1, softly), spreadOver(v1.LabelHostname, 1, overWeb1, softly)}
)

func BenchmarkSpreadHard(b *testing.B)        { benchSpread(b, false, spreadBenchPod(benchHard...)) }
func BenchmarkSpreadHardKeyless(b *testing.B) { benchSpread(b, true, spreadBenchPod(benchHard...)) }
func BenchmarkSpreadSoft(b *testing.B)        { benchSpread(b, false, spreadBenchPod(benchSoft...)) }
func BenchmarkSpreadSystemDefault(b *testing.B) {
	benchSpread(b, false, spreadBenchPod())
}

// A node's heartbeat that changes no label, with the counters of 50 workloads over both keys.
func BenchmarkSpreadCountersNodeUpdate(b *testing.B) {
	w, pl := spreadBench(false), systemSpreading()
	s := w.Store.Snapshot()
	for i := range 50 {
		over := func(c *v1.TopologySpreadConstraint) {
			c.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint("web-", i)}}
		}
		pl.PrepareFilter(s, w.Intake.PendingPod(plugintest.Pod("p", spreadOver(v1.LabelTopologyZone, 1, over), spreadOver(v1.LabelHostname, 1, over))))
	}
	n := w.Intake.Node(plugintest.Node(plugintest.NodeName(5), namedHost, inZone("z2")))
	b.ReportAllocs()
	for b.Loop() {
		w.Store.SetNode(n)
	}
}
