// SPDX-License-Identifier: Apache-2.0

package cluster

import "testing"

// TestABoundPodCountsInItsGroupOnceThatCanBeRead: pods of a drop-in are bound one by one before pod groups can be
// read, and count in their group after. An annotation that is edited on a bound pod makes it no member (answer A19).
// Mutants: the group is not learnt; an edit is.
func TestABoundPodCountsInItsGroupOnceThatCanBeRead(t *testing.T) {
	for source, want := range map[GangSource]int{GangOfGroup: 1, GangOfAnnotation: 0, GangOfSigs: 0} {
		boundBefore(t, source, want, func(*Pod) {})
		boundBefore(t, source, want, func(p *Pod) { // its amounts change with it
			spec := *p.Spec
			p.Spec = &spec
		})
	}
}

// boundBefore binds a pod that declares no gang, and declares it afterwards.
func boundBefore(t *testing.T, source GangSource, want int, change func(*Pod)) {
	t.Helper()
	s := NewStore()
	s.SetNode(&Node{Name: "n"})
	before := &Pod{UID: "u", Namespace: "ns", Name: "p", NodeName: "n", Spec: &PodSpec{}}
	s.SetPod(before)
	after := *before
	key := GangKey{source, "ns", "g"}
	after.Gang = &GangMark{Key: key}
	change(&after)
	s.SetPod(&after)
	s.SetPod(&after)
	if got := s.Snapshot().GangHolds(key); got != want {
		t.Errorf("%s: %d pods of the gang hold capacity, want %d", source, got, want)
	}
	s.DeletePod(before.UID)
	if got := s.Snapshot().GangHolds(key); got != 0 {
		t.Errorf("%s: %d pods that are gone hold capacity", source, got)
	}
}
