// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// volumeBenchWorld is a cluster of 5,000 nodes in 3 zones; each has 8 pods with a claim of its own, attached, and a
// driver that can take 25 volumes; on every tenth it can take 9, so that these are counted exactly. On every fifth one pod has
// an in-tree disk too.
func volumeBenchWorld() *world {
	w := newWorld()
	for i := range benchNodes {
		n := fmt.Sprintf("n%04d", i)
		limit := 25
		if i%10 == 0 {
			limit = 9
		}
		w.with(node(n, label(zone, fmt.Sprint("z", i%3))), csiNode(n, disk, limit))
		for k := range 8 {
			name := fmt.Sprintf("c%d-%d", i, k)
			w.with(storageClaim(name, name), volume(name, disk, zone, fmt.Sprint("z", i%3)), attachment(name, n, disk, name),
				pod(name, onNode(n), mountsClaims(name), func(p *v1.Pod) {
					if k == 0 && i%5 == 0 {
						mountsEBS("vol-"+n, false)(p)
					}
				}))
		}
	}
	return w.with(storageClaim("wanted", "wanted"), volume("wanted", disk, zone, "z1"))
}

func benchVolumes(b *testing.B, pl Filter, p *v1.Pod) {
	w := volumeBenchWorld()
	s := w.store.Snapshot()
	pending := w.intake.Pod(p)
	verdicts := make([]Verdict, s.Rows())
	b.ReportAllocs()
	for b.Loop() {
		clear(verdicts)
		if f := pl.PrepareFilter(s, pending).Filter; f != nil {
			f.Column(s, 0, cluster.NodeIdx(s.Rows()), TagOf(3), verdicts)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchNodes, "ns/node")
}

func BenchmarkVolumeRestrictionsDisk(b *testing.B) {
	benchVolumes(b, VolumeRestrictions{}, pod("p", mountsEBS("vol", false)))
}

func BenchmarkVolumeRestrictionsClaim(b *testing.B) {
	benchVolumes(b, VolumeRestrictions{}, pod("p", mountsClaims("wanted")))
}

func BenchmarkNodeVolumeLimits(b *testing.B) {
	benchVolumes(b, NewNodeVolumeLimits(nil), pod("p", mountsClaims("wanted")))
}

func BenchmarkVolumeZone(b *testing.B) {
	benchVolumes(b, VolumeZone{}, pod("p", mountsClaims("wanted")))
}
