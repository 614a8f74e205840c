// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

// bindingBenchWorld is a cluster of 5,000 nodes in 3 zones, with a free local volume on each, 5,000 zonal volumes, and
// storage with capacity on each node.
func bindingBenchWorld() *plugintest.Cluster {
	w := plugintest.NewCluster().With(storageClass("local", noProvisioner, later), storageClass("zonal", noProvisioner, later),
		storageClass("made", net, later), storageClass("tight", disk, later), telling(disk),
		wants("local", "1Gi", "local"), wants("zonal", "1Gi", "zonal"), wants("made", "1Gi", "made"), wants("tight", "1Gi", "tight"),
		wants("bound-local", "1Gi", "bound", hasVolume("bound-local")), wants("bound-zonal", "1Gi", "bound", hasVolume("bound-zonal")),
		offered("bound-local", "1Gi", "bound", only(within("host", "n0777"))), offered("bound-zonal", "1Gi", "bound", only(within(zone, "z1"))))
	for i := range plugintest.BenchNodes {
		n, z := fmt.Sprintf("n%04d", i), fmt.Sprint("z", i%3)
		w.With(plugintest.Node(n, plugintest.Labels("host", n, zone, z)), offered("local-"+n, fmt.Sprintf("%dGi", 1+i%50), "local", only(within("host", n))),
			offered("zonal-"+n, fmt.Sprintf("%dGi", 1+i%50), "zonal", only(within(zone, z))), room("room-"+n, "tight", "10Gi", where("host", n)))
	}
	return w
}

// One decision: preparing, and looking at all nodes.
func BenchmarkVolumeBinding(b *testing.B) {
	w := bindingBenchWorld()
	s := w.Store.Snapshot()
	for _, claim := range []string{"bound-local", "bound-zonal", "made", "tight", "local", "zonal"} {
		b.Run(claim, func(b *testing.B) {
			pl, p := binding(), w.Intake.PendingPod(plugintest.Pod("p", mountsClaims(claim)))
			verdicts := make([]plugin.Verdict, s.Rows())
			decide := func() {
				clear(verdicts)
				pl.PrepareFilter(s, p).Filter.Column(s, 0, cluster.NodeIdx(s.Rows()), plugin.TagOf(3), verdicts)
			}
			decide() // what is parsed once for all decisions
			b.ReportAllocs()
			for b.Loop() {
				decide()
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/plugintest.BenchNodes, "ns/node")
		})
	}
}

// One row, prepared: what a decision costs per node where volumes are sought.
func BenchmarkVolumeBindingRow(b *testing.B) {
	w := bindingBenchWorld()
	s := w.Store.Snapshot()
	for _, claim := range []string{"local", "zonal", "tight"} {
		b.Run(claim, func(b *testing.B) {
			f := binding().PrepareFilter(s, w.Intake.PendingPod(plugintest.Pod("p", mountsClaims(claim)))).Filter.(*volumeFilter)
			f.columns(s)
			n := cluster.NodeIdx(777)
			b.ReportAllocs()
			for b.Loop() {
				f.quickly(s, s.Node(n))
			}
		})
	}
}

// The plain form, for one node.
func BenchmarkVolumeBindingPlain(b *testing.B) {
	w := bindingBenchWorld()
	s := w.Store.Snapshot()
	v := s.View(777)
	for _, claim := range []string{"bound-local", "local"} {
		b.Run(claim, func(b *testing.B) {
			f := binding().PrepareFilter(s, w.Intake.PendingPod(plugintest.Pod("p", mountsClaims(claim)))).Filter
			b.ReportAllocs()
			for b.Loop() {
				f.Plain(s, v)
			}
		})
	}
}

// A burst of pods with a local volume each: deciding, reserving, one after another.
func BenchmarkVolumeBindingBurst(b *testing.B) {
	w := bindingBenchWorld()
	for i := range plugintest.BenchNodes {
		w.With(wants(fmt.Sprint("burst", i), "1Gi", "local"))
	}
	pl, i := binding(), 0
	verdicts := make([]plugin.Verdict, plugintest.BenchNodes)
	b.ReportAllocs()
	for b.Loop() {
		if i == plugintest.BenchNodes {
			b.StopTimer()
			for n := range plugintest.BenchNodes {
				name := fmt.Sprintf("local-n%04d", n)
				w.Store.SetObject(offered(name, fmt.Sprintf("%dGi", 1+n%50), "local", only(within("host", fmt.Sprintf("n%04d", n))), func(pv *v1.PersistentVolume) { pv.ResourceVersion = "2" }))
			}
			i = 0
			b.StartTimer()
		}
		p := w.Intake.PendingPod(plugintest.Pod(fmt.Sprint("p", i), mountsClaims(fmt.Sprint("burst", i))))
		w.Store.Begin()
		trial := w.Store.Trial()
		s := trial.Snapshot()
		clear(verdicts)
		pl.PrepareFilter(s, p).Filter.Column(s, 0, cluster.NodeIdx(s.Rows()), plugin.TagOf(3), verdicts)
		if got := pl.Reserve(trial, p, cluster.NodeIdx(i)); got.Hold == nil {
			b.Fatalf("pod %d: %+v", i, got)
		}
		trial.Commit()
		w.Store.Commit()
		i++
	}
}
