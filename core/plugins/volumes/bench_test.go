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

// volumeBenchWorld is a cluster of 5,000 nodes in 3 zones; each has 8 pods with a claim of its own, attached, and a
// driver that can take 25 volumes; on every tenth it can take 9, so that these are counted exactly. On every fifth
// one pod has an in-tree disk too.
func volumeBenchWorld() *plugintest.Cluster {
	w := plugintest.NewCluster()
	for i := range plugintest.BenchNodes {
		n := fmt.Sprintf("n%04d", i)
		limit := 25
		if i%10 == 0 {
			limit = 9
		}
		w.With(plugintest.Node(n, plugintest.Labels(zone, fmt.Sprint("z", i%3))), csiNode(n, disk, limit))
		for k := range 8 {
			name := fmt.Sprintf("c%d-%d", i, k)
			w.With(storageClaim(name, name), volume(name, disk, zone, fmt.Sprint("z", i%3)), attachment(name, n, disk, name),
				plugintest.Pod(name, plugintest.OnNode(n), mountsClaims(name), func(p *v1.Pod) {
					if k == 0 && i%5 == 0 {
						mountsEBS("vol-"+n, false)(p)
					}
				}))
		}
	}
	return w.With(storageClaim("wanted", "wanted"), volume("wanted", disk, zone, "z1"))
}

func benchVolumes(b *testing.B, pl plugin.Filter, p *v1.Pod) {
	w := volumeBenchWorld()
	s := w.Store.Snapshot()
	pending := w.Intake.Pod(p)
	verdicts := make([]plugin.Verdict, s.Rows())
	b.ReportAllocs()
	for b.Loop() {
		clear(verdicts)
		if f := pl.PrepareFilter(s, pending).Filter; f != nil {
			f.Column(s, 0, cluster.NodeIdx(s.Rows()), plugin.TagOf(3), verdicts)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/plugintest.BenchNodes, "ns/node")
}

func BenchmarkVolumeRestrictionsDisk(b *testing.B) {
	benchVolumes(b, VolumeRestrictions{}, plugintest.Pod("p", mountsEBS("vol", false)))
}

func BenchmarkVolumeRestrictionsClaim(b *testing.B) {
	benchVolumes(b, VolumeRestrictions{}, plugintest.Pod("p", mountsClaims("wanted")))
}

func BenchmarkNodeVolumeLimits(b *testing.B) {
	benchVolumes(b, NewNodeVolumeLimits(nil), plugintest.Pod("p", mountsClaims("wanted")))
}

func BenchmarkVolumeZone(b *testing.B) {
	benchVolumes(b, VolumeZone{}, plugintest.Pod("p", mountsClaims("wanted")))
}
