// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/resource"
)

// rows is what a store shows of its rows, pods and resources, in order.
func rows(s cluster.Snapshot) string {
	text := fmt.Sprintf("revision %d, %d nodes, %d pods, resources", s.Revision(), s.Nodes(), s.PodCount())
	for id := resource.Fixed; int(id) < s.Names().Len(); id++ {
		text += " " + string(s.Names().Name(id))
	}
	for n := range cluster.NodeIdx(s.Rows()) {
		text += fmt.Sprintf("\n%d %q %p", n, s.NodeName(n), s.Node(n))
		s.EachPod(n, func(p *cluster.Pod, assumed bool) {
			key, in := s.HeldGang(p.UID)
			text += fmt.Sprintf(" %p/%v/%v/%v", p, assumed, key, in)
		})
	}
	return text
}

// restored returns a new store with the facts of another one.
func restored(t interface{ Fatal(...any) }, s *cluster.Store) *cluster.Store {
	again := cluster.NewStore()
	if err := again.Restore(s.State()); err != nil {
		t.Fatal(err)
	}
	return again
}

// TestARestoredStoreIsItsModel runs random histories, in which the store is replaced now and then by one that is
// restored from its State. It shows the same rows in the same order, and gives the next nodes the same ones.
func TestARestoredStoreIsItsModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		in, s := convert.NewIntake(), cluster.NewStore()
		m := &model{map[string]*cluster.Node{}, map[cluster.UID]modelPod{}}
		for range rapid.IntRange(1, 12).Draw(t, "transactions") {
			s.Begin()
			for range rapid.IntRange(0, 6).Draw(t, "steps") {
				change(t, in, s, m)
			}
			s.Commit()
			again := restored(t, s)
			if want, got := rows(s.Snapshot()), rows(again.Snapshot()); got != want {
				t.Fatalf("restored\n%s\nwant\n%s", got, want)
			}
			next := drawNode(t, in)
			next.Name = "next"
			for _, each := range []*cluster.Store{s, again} {
				each.SetNode(next)
			}
			if want, got := rows(s.Snapshot()), rows(again.Snapshot()); got != want {
				t.Fatalf("with another node\n%s\nwant\n%s", got, want)
			}
			m.nodes["next"] = next
			s = again
			compare(t, s, m)
			if err := s.CheckInvariants(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestAPodThatWasInNoGangStaysSo: a pod that names a gang since it has a node is in none, also when a trial has taken it
// off its node and put it back. Without HeldPod.Apart the restored store takes it for a member then.
func TestAPodThatWasInNoGangStaysSo(t *testing.T) {
	key := cluster.GangKey{Source: cluster.GangOfAnnotation, Namespace: "ns", Name: "g"}
	s := cluster.NewStore()
	s.SetNode(&cluster.Node{Name: "n"})
	pod := &cluster.Pod{UID: "u", Namespace: "ns", Name: "p", NodeName: "n", Spec: &cluster.PodSpec{}}
	s.SetPod(pod)
	named := *pod
	named.Spec, named.Gang = &cluster.PodSpec{Priority: 1}, &cluster.GangMark{Key: key}
	s.SetPod(&named)
	for _, each := range []*cluster.Store{s, restored(t, s)} {
		each.Begin()
		trial := each.Trial()
		trial.Evict("u")
		trial.Discard()
		each.Commit()
		if holds := each.Snapshot().GangHolds(key); holds != 0 {
			t.Errorf("%d pods of the gang hold capacity", holds)
		}
	}
}
