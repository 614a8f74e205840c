// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"fmt"
	"testing"

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
