// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

const benchNodes = 5000

// benchWorld is a cluster of 5,000 nodes in 3 zones with 2 pods each: a tenth of the nodes is tainted, a tenth dislikes
// pods, half hold an image, a quarter has a host port taken and devices.
func benchWorld() *world {
	w := newWorld()
	for i := range benchNodes {
		n := node(fmt.Sprintf("n%04d", i), label("zone", fmt.Sprint("z", i%3), "rank", fmt.Sprint(i%100)),
			offers("cpu", fmt.Sprint(4+i%60), "memory", fmt.Sprintf("%dGi", 16+i%200)))
		if i%10 == 1 {
			taint("dedicated", "db", v1.TaintEffectNoSchedule)(n)
		}
		if i%10 == 2 {
			taint("slow", "", v1.TaintEffectPreferNoSchedule)(n)
		}
		if i%2 == 0 {
			holds("app:1", 700)(n)
		}
		if i%4 == 0 {
			offers("example.com/gpu", "8")(n)
		}
		w.with(n)
		for k := range 2 {
			p := pod(fmt.Sprintf("p%d-%d", i, k), asks("cpu", fmt.Sprintf("%dm", 100+i%900), "memory", fmt.Sprintf("%dMi", 64+(i*7)%900)), onNode(n.Name))
			if i%4 == 0 && k == 0 {
				hostPort("", v1.ProtocolTCP, 8080)(p)
			}
			w.with(p)
		}
	}
	return w
}

// benchPods name what a pod asks of the plugins under test.
func benchPods() map[string]*v1.Pod {
	return map[string]*v1.Pod{
		"plain": pod("plain", asks("cpu", "200m", "memory", "1Gi"), image("app:1"), tolerate("slow", v1.TolerationOpExists, "", "")),
		"gpu":   pod("gpu", asks("cpu", "200m", "memory", "1Gi", "example.com/gpu", "1")),
		"picky": pod("picky", asks("cpu", "1"), selector("zone", "z1"), required(term(expr("rank", v1.NodeSelectorOpNotIn, "7"))),
			preferred(10, term(expr("zone", v1.NodeSelectorOpIn, "z1", "z2"))), preferred(3, term(expr("rank", v1.NodeSelectorOpExists)))),
		"numbers": pod("numbers", required(term(expr("rank", v1.NodeSelectorOpGt, "50")))),
		"port":    pod("port", hostPort("", v1.ProtocolTCP, 9090)),
		"taken":   pod("taken", hostPort("", v1.ProtocolTCP, 8080)),
		"whale":   pod("whale", asks("cpu", "60", "memory", "1Gi")),
	}
}

func benchColumn(b *testing.B, pl Plugin, podName string) {
	w := benchWorld()
	s := w.store.Snapshot()
	all := prepareAll(s, w.intake.PendingPod(benchPods()[podName]), []Plugin{pl})[0]
	verdicts, scores := make([]Verdict, s.Rows()), make([]int64, s.Rows())
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
		all.filter.Column(s, lo, hi, TagOf(3), verdicts)
	}
	score := func(lo, hi cluster.NodeIdx) { all.score.Column(s, lo, hi, scores) }
	if all.filter != nil {
		run("filter/"+podName+"/all", 0, benchNodes, filter)
		run("filter/"+podName+"/one", 777, 778, filter)
	}
	if all.score != nil {
		run("score/"+podName+"/all", 0, benchNodes, score)
		run("score/"+podName+"/one", 777, 778, score)
	}
}

func fitWith(strategy Strategy) *NodeResourcesFit {
	args := DefaultFitArgs()
	if args.Strategy = strategy; strategy == RequestedToCapacityRatio {
		args.Shape = []ShapePoint{{0, 0}, {100, 10}}
	}
	return must(NewNodeResourcesFit(args))
}

func BenchmarkColumnFit(b *testing.B) {
	for _, name := range []string{"plain", "gpu", "port", "whale"} {
		benchColumn(b, fitWith(LeastAllocated), name)
	}
}

func BenchmarkColumnFitMost(b *testing.B) { benchColumn(b, fitWith(MostAllocated), "plain") }
func BenchmarkColumnFitRatio(b *testing.B) {
	benchColumn(b, fitWith(RequestedToCapacityRatio), "plain")
}

func BenchmarkColumnBalanced(b *testing.B) {
	benchColumn(b, must(NewNodeResourcesBalancedAllocation(DefaultBalancedArgs())), "plain")
}

func BenchmarkColumnBalancedThree(b *testing.B) {
	benchColumn(b, must(NewNodeResourcesBalancedAllocation(BalancedArgs{append(DefaultBalancedArgs().Resources, WeightedResource{"example.com/gpu", 1})})), "gpu")
}

func BenchmarkColumnTaintToleration(b *testing.B)   { benchColumn(b, TaintToleration{}, "plain") }
func BenchmarkColumnNodeUnschedulable(b *testing.B) { benchColumn(b, NodeUnschedulable{}, "plain") }

func BenchmarkColumnNodePorts(b *testing.B) {
	benchColumn(b, NodePorts{}, "port")
	benchColumn(b, NodePorts{}, "taken")
}

func BenchmarkColumnNodeAffinity(b *testing.B) {
	benchColumn(b, must(NewNodeAffinity(NodeAffinityArgs{})), "picky")
	benchColumn(b, must(NewNodeAffinity(NodeAffinityArgs{})), "numbers")
}

func BenchmarkColumnImageLocality(b *testing.B) {
	benchColumn(b, ImageLocality{}, "plain")
	benchColumn(b, ImageLocality{}, "gpu")
}
