// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
)

// farm is a cluster of n nodes in racks of 50 and zones of 10 racks.
func farm(b *testing.B, n int) *world {
	w := newWorld(b)
	for i := range n {
		w.node(fmt.Sprintf("n%05d", i), map[string]string{
			"kubernetes.io/hostname": fmt.Sprintf("n%05d", i), "rack": fmt.Sprintf("r%03d", i/50), "topology.kubernetes.io/zone": fmt.Sprintf("z%d", i/500)}, nil)
	}
	return w
}

func placed(b *testing.B, a gang.Answer) {
	if a.Verdict != gang.Placed {
		b.Fatalf("%v after %d tries: %s", a.Verdict, a.Tried, a.Why.Message)
	}
}

// BenchmarkIdentical places 500 members that are alike on 5,000 nodes; the goal is 8 ms.
func BenchmarkIdentical(b *testing.B) {
	w := farm(b, 5000)
	members := w.members(500, pod("m", map[string]string{"cpu": "1", "memory": "1Gi"}))
	for b.Loop() {
		w.try(gang.Need{Members: members, Quorum: len(members)}, func(a gang.Answer) { placed(b, a) })
	}
}

// BenchmarkManyGangs places 1,000 gangs of 8 on 5,000 nodes one after the other; the goal is 400 ms.
func BenchmarkManyGangs(b *testing.B) {
	w := farm(b, 5000)
	var gangs [][]*cluster.Pod
	for i := range 1000 {
		gangs = append(gangs, w.members(8, pod(fmt.Sprintf("g%d", i), map[string]string{"cpu": "1", "memory": "1Gi"})))
	}
	for b.Loop() {
		w.store.Begin()
		for _, members := range gangs {
			placed(b, w.place(gang.Need{Members: members, Quorum: len(members)}))
		}
		w.store.Abort()
	}
}

// different are 64 members of 16 kinds, the small ones first.
func different(w *world) []*cluster.Pod {
	var members []*cluster.Pod
	for k := range 16 {
		members = append(members, w.members(4, pod(fmt.Sprintf("k%d", k), map[string]string{"cpu": fmt.Sprintf("%dm", 250*(k+1)), "memory": fmt.Sprintf("%dGi", 1+(k*7)%16)}))...)
	}
	return members
}

// BenchmarkDifferent places a gang of 64 members of 16 kinds on 5,000 nodes.
func BenchmarkDifferent(b *testing.B) {
	w := farm(b, 5000)
	members := different(w)
	for b.Loop() {
		w.try(gang.Need{Members: members, Quorum: len(members)}, func(a gang.Answer) { placed(b, a) })
	}
}

// fill puts a pod on each node that leaves cpu thousandths of a core, but for the last so many nodes.
func fill(w *world, left int, but int) {
	s := w.store.Snapshot()
	for row := range s.Rows() - but {
		p := pod(fmt.Sprintf("old%d", row), map[string]string{"cpu": fmt.Sprintf("%dm", 4000-left)})
		p.Spec.NodeName = s.NodeName(cluster.NodeIdx(row))
		w.store.SetPod(w.intake.Pod(p))
	}
}

// BenchmarkDifferentTight does the same where only 50 nodes have more than a quarter of a core left.
func BenchmarkDifferentTight(b *testing.B) {
	w := farm(b, 5000)
	fill(w, 250, 50)
	members := different(w)
	for b.Loop() {
		w.try(gang.Need{Members: members, Quorum: len(members)}, func(a gang.Answer) { placed(b, a) })
	}
}

// BenchmarkBlocked is what a gang costs that has no room: 500 members alike, or 64 of 16 kinds, on 5,000 nodes that are
// nearly full; and one that no pass over the nodes could ever hold.
func BenchmarkBlocked(b *testing.B) {
	w := farm(b, 5000)
	fill(w, 250, 40)
	alike := w.members(500, pod("m", map[string]string{"cpu": "1", "memory": "1Gi"}))
	large := w.members(5001, pod("l", map[string]string{"cpu": "3", "memory": "1Gi"}))
	apart := pod("a", map[string]string{"cpu": "1"})
	apart.Labels = map[string]string{"app": "a"}
	apart.Spec.Affinity = &v1.Affinity{PodAntiAffinity: &v1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{
		{LabelSelector: &metav1.LabelSelector{MatchLabels: apart.Labels}, TopologyKey: host}}}}
	for name, c := range map[string]struct {
		members []*cluster.Pod
		want    gang.Verdict
	}{
		"alike": {alike, gang.NoRoom}, "different": {append(different(w), w.members(140, pod("k", map[string]string{"cpu": "1"}))...), gang.NoRoom},
		"apart": {w.members(50, apart), gang.NoRoom}, "never": {large, gang.NeverFits}, "packing": {append(different(w), w.members(20, pod("k", map[string]string{"cpu": "1200m"}))...), gang.GaveUp},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				w.try(gang.Need{Members: c.members, Quorum: len(c.members)}, func(a gang.Answer) {
					if a.Verdict != c.want {
						b.Fatalf("%v after %d searches: %s", a.Verdict, a.Tried, a.Proof)
					}
				})
			}
		})
	}
}

// BenchmarkRack places gangs of 64 where all members must be in one of 100 racks of 50 nodes, most of which are full.
func BenchmarkRack(b *testing.B) {
	w := farm(b, 5000)
	fill(w, 250, 200)
	members := w.members(64, pod("m", map[string]string{"cpu": "1", "memory": "1Gi"}))
	mixed := different(w)
	for name, need := range map[string]gang.Need{
		"required":  {Members: members, Quorum: 64, Topology: []cluster.GangTopology{{Key: "rack", Required: true}}},
		"preferred": {Members: members, Quorum: 64, Topology: []cluster.GangTopology{{Key: zone}, {Key: "rack"}}},
		"different": {Members: mixed, Quorum: 64, Topology: []cluster.GangTopology{{Key: "rack", Required: true}}},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				w.try(need, func(a gang.Answer) { placed(b, a) })
			}
		})
	}
}
