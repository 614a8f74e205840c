// SPDX-License-Identifier: Apache-2.0

package plugintest

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

const BenchNodes = 5000

// BenchCluster is a cluster of 5,000 nodes in 3 zones with 2 pods each: a tenth of the nodes is tainted, a tenth
// dislikes pods, half hold an image, a quarter has a host port taken and devices.
func BenchCluster() *Cluster {
	w := NewCluster()
	for i := range BenchNodes {
		n := Node(fmt.Sprintf("n%04d", i), Labels("zone", fmt.Sprint("z", i%3), "rank", fmt.Sprint(i%100)),
			Allocatable("cpu", fmt.Sprint(4+i%60), "memory", fmt.Sprintf("%dGi", 16+i%200)))
		if i%10 == 1 {
			Taint("dedicated", "db", v1.TaintEffectNoSchedule)(n)
		}
		if i%10 == 2 {
			Taint("slow", "", v1.TaintEffectPreferNoSchedule)(n)
		}
		if i%2 == 0 {
			HasImage("app:1", 700)(n)
		}
		if i%4 == 0 {
			Allocatable("example.com/gpu", "8")(n)
		}
		w.With(n)
		for k := range 2 {
			p := Pod(fmt.Sprintf("p%d-%d", i, k), Requests("cpu", fmt.Sprintf("%dm", 100+i%900), "memory",
				fmt.Sprintf("%dMi", 64+(i*7)%900)), OnNode(n.Name))
			if i%4 == 0 && k == 0 {
				HostPort("", v1.ProtocolTCP, 8080)(p)
			}
			w.With(p)
		}
	}
	return w
}

// benchPods name what a pod asks of the plugins under test.
func benchPods() map[string]*v1.Pod {
	return map[string]*v1.Pod{
		"plain": Pod("plain", Requests("cpu", "200m", "memory", "1Gi"), Image("app:1"),
			Toleration("slow", v1.TolerationOpExists, "", "")),
		"gpu": Pod("gpu", Requests("cpu", "200m", "memory", "1Gi", "example.com/gpu", "1")),
		"picky": Pod("picky", Requests("cpu", "1"), NodeSelector("zone", "z1"),
			RequiredAffinity(Term(Expression("rank", v1.NodeSelectorOpNotIn, "7"))),
			PreferredAffinity(10, Term(Expression("zone", v1.NodeSelectorOpIn, "z1", "z2"))), PreferredAffinity(3,
				Term(Expression("rank", v1.NodeSelectorOpExists)))),
		"numbers": Pod("numbers", RequiredAffinity(Term(Expression("rank", v1.NodeSelectorOpGt, "50")))),
		"port":    Pod("port", HostPort("", v1.ProtocolTCP, 9090)),
		"taken":   Pod("taken", HostPort("", v1.ProtocolTCP, 8080)),
		"whale":   Pod("whale", Requests("cpu", "60", "memory", "1Gi")),
	}
}

func BenchColumn(b *testing.B, pl plugin.Plugin, podName string) {
	w := BenchCluster()
	s := w.Store.Snapshot()
	all := Prepare(s, w.Intake.PendingPod(benchPods()[podName]), []plugin.Plugin{pl})[0]
	verdicts, scores := make([]plugin.Verdict, s.Rows()), make([]int64, s.Rows())
	run := func(name string, lo, hi cluster.NodeIdx, column func(lo, hi cluster.NodeIdx)) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				column(lo, hi)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(hi-lo), "ns/node")
		})
	}
	filter := func(lo, hi cluster.NodeIdx) {
		clear(verdicts[lo:hi])
		all.Filter.Column(s, lo, hi, plugin.TagOf(3), verdicts)
	}
	score := func(lo, hi cluster.NodeIdx) { all.Score.Column(s, lo, hi, scores) }
	if all.Filter != nil {
		run("filter/"+podName+"/all", 0, BenchNodes, filter)
		run("filter/"+podName+"/one", 777, 778, filter)
	}
	if all.Score != nil {
		run("score/"+podName+"/all", 0, BenchNodes, score)
		run("score/"+podName+"/one", 777, 778, score)
	}
}
