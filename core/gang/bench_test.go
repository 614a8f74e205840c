// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"fmt"
	"syscall"
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
)

// farm is a cluster of 5,000 nodes of four cores in racks of 50 and zones of 10 racks.
func farm(b *testing.B) *world {
	w := newWorld(b)
	for i := range 5000 {
		w.node(fmt.Sprintf("n%05d", i), map[string]string{host: fmt.Sprintf("n%05d", i),
			rack: fmt.Sprintf("r%03d", i/50), zone: fmt.Sprintf("z%d", i/500)}, nil)
	}
	return w
}

// fill puts a pod on each node but the last so many, which leaves a quarter of a core.
func fill(w *world, but int) {
	s := w.store.Snapshot()
	for row := range s.Rows() - but {
		p := pod(fmt.Sprintf("old%d", row), map[string]string{"cpu": "3750m"})
		p.Spec.NodeName = s.NodeName(cluster.NodeIdx(row))
		w.store.SetPod(w.intake.Pod(p))
	}
}

// measure tells what an answer costs: the time that passes, and that of the processor, which a busy machine changes
// least.
func measure(b *testing.B, w *world, want gang.Verdict, gangs ...gang.Need) {
	once := func() {
		w.store.Begin()
		for _, need := range gangs {
			if a := w.place(need); a.Verdict != want {
				b.Fatalf("%v after %d searches: %s %s", a.Verdict, a.Tried, a.Why.Message, a.Proof)
			}
		}
		w.store.Abort()
	}
	once() // what is kept of kinds of pods is there afterwards
	b.ReportAllocs()
	var before, after syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &before)
	for b.Loop() {
		once()
	}
	syscall.Getrusage(syscall.RUSAGE_SELF, &after)
	used := after.Utime.Nano() + after.Stime.Nano() - before.Utime.Nano() - before.Stime.Nano()
	b.ReportMetric(float64(used)/float64(b.N)/1e6, "cpu-ms/op")
}

func asks(cpu string) *v1.Pod { return pod("m"+cpu, map[string]string{"cpu": cpu, "memory": "1Gi"}) }

// BenchmarkIdentical places 500 members that are alike on 5,000 nodes; the goal is 8 ms.
func BenchmarkIdentical(b *testing.B) {
	w := farm(b)
	measure(b, w, gang.Placed, all(w.members(500, asks("1"))))
}

// BenchmarkManyGangs places 1,000 gangs of 8 on 5,000 nodes one after the other; the goal is 400 ms.
func BenchmarkManyGangs(b *testing.B) {
	w := farm(b)
	var gangs []gang.Need
	for i := range 1000 {
		like := asks("1")
		like.Name = fmt.Sprintf("g%d", i)
		gangs = append(gangs, all(w.members(8, like)))
	}
	measure(b, w, gang.Placed, gangs...)
}

// different are 64 members of 16 kinds, the small ones first.
func different(w *world) []*cluster.Pod {
	var members []*cluster.Pod
	for k := range 16 {
		members = append(members, w.members(4, pod(fmt.Sprintf("k%d", k),
			map[string]string{"cpu": fmt.Sprintf("%dm", 250*(k+1)), "memory": fmt.Sprintf("%dGi", 1+(k*7)%16)}))...)
	}
	return members
}

// BenchmarkDifferent places a gang of 64 members of 16 kinds on 5,000 nodes that are empty, and where all but 50 are
// nearly full.
func BenchmarkDifferent(b *testing.B) {
	for name, but := range map[string]int{"empty": 5000, "full": 50} {
		b.Run(name, func(b *testing.B) {
			w := farm(b)
			fill(w, but)
			measure(b, w, gang.Placed, all(different(w)))
		})
	}
}

// templates are members each of which is made from a template of its own: other labels, and, if so wished, other
// amounts.
func templates(w *world, n int, amounts bool) (members []*cluster.Pod) {
	for i := range n {
		like := asks("1")
		if amounts {
			like = asks(fmt.Sprintf("%dm", 500+i))
		}
		like.Name = fmt.Sprintf("t%03d", i)
		like.Labels = map[string]string{"index": fmt.Sprint(i)}
		members = append(members, w.members(1, like)...)
	}
	return members
}

// BenchmarkTemplates places 500 members each of which has a template of its own, on empty nodes and where all but 400
// are nearly full, and finds that there is no place for them; the goal is 100 ms.
func BenchmarkTemplates(b *testing.B) {
	for _, c := range []struct {
		name    string
		amounts bool
		free    int
		want    gang.Verdict
	}{{"labels", false, 5000, gang.Placed}, {"amounts", true, 5000, gang.Placed}, {"full", true, 400, gang.Placed},
		{"blocked", true, 40, gang.Unschedulable}} {
		b.Run(c.name, func(b *testing.B) {
			w := farm(b)
			fill(w, c.free)
			measure(b, w, c.want, all(templates(w, 500, c.amounts)))
		})
		b.Run(c.name+"-unknown", func(b *testing.B) { // nothing is known of the templates yet
			w := farm(b)
			fill(w, c.free)
			w.forgets = true
			measure(b, w, c.want, all(templates(w, 500, c.amounts)))
		})
	}
}

// onePerNode is a pod that bears no other of its kind on its node.
func onePerNode() *v1.Pod {
	p := apart(asks("1"), "a")
	p.Spec.Affinity.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution[0].TopologyKey = host
	return p
}

// BenchmarkWide places 500 members that have to do with each other: one on each node, or spread over zones.
func BenchmarkWide(b *testing.B) {
	spread := asks("1")
	spread.Labels = map[string]string{"app": "s"}
	spread.Spec.TopologySpreadConstraints = []v1.TopologySpreadConstraint{{MaxSkew: 1, TopologyKey: zone,
		WhenUnsatisfiable: v1.DoNotSchedule,
		LabelSelector:     &metav1.LabelSelector{MatchLabels: spread.Labels}}}
	for name, like := range map[string]*v1.Pod{"apart": onePerNode(), "spread": spread} {
		b.Run(name, func(b *testing.B) {
			w := farm(b)
			measure(b, w, gang.Placed, all(w.members(500, like)))
		})
	}
}

// BenchmarkRack places gangs of 64 where all members must be in one of 100 racks of 50 nodes, most of which are
// nearly full, or should be; and one of 500 in one of 10 zones.
func BenchmarkRack(b *testing.B) {
	w := farm(b)
	fill(w, 200)
	required := cluster.GangTopology{Key: rack, Required: true}
	for name, need := range map[string]gang.Need{
		"required":  all(w.members(64, asks("1")), required),
		"different": all(different(w), required),
		"preferred": all(w.members(64, asks("1")), cluster.GangTopology{Key: zone}, cluster.GangTopology{Key: rack}),
		"zone":      all(w.members(500, asks("250m")), cluster.GangTopology{Key: zone, Required: true}),
	} {
		b.Run(name, func(b *testing.B) { measure(b, w, gang.Placed, need) })
	}
}

// BenchmarkBlocked is what an attempt costs that finds nothing, on 5,000 nodes that are nearly full: members alike and
// different, one on each node, more than the empty cluster holds, and a packing that is hard to find or to exclude.
func BenchmarkBlocked(b *testing.B) {
	w := farm(b)
	fill(w, 40)
	for name, c := range map[string]struct {
		members []*cluster.Pod
		want    gang.Verdict
	}{
		"alike":     {w.members(500, asks("1")), gang.Unschedulable},
		"different": {append(different(w), w.members(140, asks("1"))...), gang.Unschedulable},
		"apart":     {w.members(50, onePerNode()), gang.Unschedulable},
		"never":     {w.members(5001, asks("3")), gang.NeverFits},
		"packing":   {append(different(w), w.members(20, asks("1200m"))...), gang.GaveUp},
	} {
		b.Run(name, func(b *testing.B) { measure(b, w, c.want, all(c.members)) })
	}
}

// BenchmarkBlockedNear is the same for 64 members that must be in one zone, each of which has capacity for 40.
func BenchmarkBlockedNear(b *testing.B) {
	w := farm(b)
	for row := range w.store.Snapshot().Rows() {
		if row%50 != 0 {
			p := pod(fmt.Sprintf("old%d", row), map[string]string{"cpu": "3750m"})
			p.Spec.NodeName = w.store.Snapshot().NodeName(cluster.NodeIdx(row))
			w.store.SetPod(w.intake.Pod(p))
		}
	}
	like := near(asks("1"), "m")
	like.Labels = map[string]string{"app": "m"}
	b.Run("alike", func(b *testing.B) { measure(b, w, gang.GaveUp, all(w.members(64, like))) })
	worker, leader := near(asks("500m"), "m"), asks("1")
	leader.Labels = like.Labels
	b.Run("leader", func(b *testing.B) {
		measure(b, w, gang.GaveUp, all(append(w.members(100, worker), w.members(1, leader)...)))
	})
}
