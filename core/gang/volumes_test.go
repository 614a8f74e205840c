// SPDX-License-Identifier: Apache-2.0

package gang_test

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/gang"
	"github.com/kumiki-scheduler/kumiki/core/place"
)

// withDisks is a world of nodes with one local disk each, and the default profile with its reservers.
func withDisks(t tester, nodes int) *world {
	w := newWorld(t)
	prof, reservers := defaults(t)
	w.reservers = reservers
	w.placer = place.New(place.Profile{Filters: prof.Filters}, noMeter{}, place.DefaultClassBytes)
	later := storagev1.VolumeBindingWaitForFirstConsumer
	w.store.SetObject(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: "local"},
		Provisioner: "kubernetes.io/no-provisioner", VolumeBindingMode: &later})
	for i := range nodes {
		name := fmt.Sprintf("n%d", i)
		w.node(name, map[string]string{host: name}, nil)
		w.store.SetObject(&v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "disk-" + name,
			UID: types.UID("disk-" + name)}, Spec: v1.PersistentVolumeSpec{
			StorageClassName: "local", Capacity: list(map[string]string{"storage": "10Gi"}),
			AccessModes:            []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			PersistentVolumeSource: v1.PersistentVolumeSource{Local: &v1.LocalVolumeSource{Path: "/disk"}},
			NodeAffinity: &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{{
				MatchExpressions: []v1.NodeSelectorRequirement{{Key: host, Operator: v1.NodeSelectorOpIn,
					Values: []string{name}}}}}}}},
			Status: v1.PersistentVolumeStatus{Phase: v1.VolumeAvailable}})
	}
	return w
}

// withClaim is a member with a claim of its own, which a local disk must satisfy.
func (w *world) withClaim(i int) *cluster.Pod {
	name, class := fmt.Sprintf("m%d", i), "local"
	w.store.SetObject(&v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name,
		UID: types.UID("claim-" + name)},
		Spec: v1.PersistentVolumeClaimSpec{StorageClassName: &class,
			AccessModes: []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce},
			Resources:   v1.VolumeResourceRequirements{Requests: list(map[string]string{"storage": "5Gi"})}}})
	p := pod(name, cores(1))
	p.Spec.Volumes = []v1.Volume{{Name: "v",
		VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
	return w.intake.Pod(p)
}

// taken lists the disks that somebody is supposed to have.
func (w *world) taken() (names []string) {
	cluster.Each(w.store.Snapshot(), func(pv *v1.PersistentVolume) bool {
		if pv.Spec.ClaimRef != nil {
			names = append(names, pv.Name)
		}
		return true
	})
	return names
}

// disksOfMembers: each member takes the disk of its node, so that the next one is placed elsewhere (A21); with one
// member too many, no disk is taken, and the verdict is not NeverFits. Mutant: holdsKept concerns what plugins
// reserve outside of the store; what they assume about objects ends with the trial.
func disksOfMembers(t tester) {
	w := withDisks(t, 3)
	var members []*cluster.Pod
	for i := range 4 {
		members = append(members, w.withClaim(i))
	}
	w.try(all(members[:3]), func(a gang.Answer) {
		if a.Verdict != gang.Placed || len(w.taken()) != 3 || len(a.Holds[2]) != 1 ||
			len(a.Holds[2][0].Hold.Writes()) != 1 {
			t.Errorf("%v on %v: %s; disks taken: %v", a.Verdict, a.Nodes, a.Why.Message, w.taken())
		}
	})
	w.try(all(members), func(a gang.Answer) {
		if a.Verdict != gang.GaveUp || a.Most != 3 || len(w.taken()) != 0 || w.store.Snapshot().PodCount() != 0 {
			t.Errorf("one too many: %v, %d placed; disks taken: %v", a.Verdict, a.Most, w.taken())
		}
		want := "0/3 nodes are available: 3 node(s) didn't find available persistent volumes to bind."
		if a.Why.Message != want {
			t.Errorf("told %q, want %q", a.Why.Message, want)
		}
	})
}
