// SPDX-License-Identifier: Apache-2.0

package place_test

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/place"
)

// TestPodsWithVolumesAreRanked places pods with claims while drivers on some nodes run out of places, and asks two
// Placers for the same pods: one that takes a filter at its word that no node is too full, and one that looks at each
// row. Enough decisions must have been made without reading rows. It catches: a filter that is passed over though
// it rejects a row.
func TestPodsWithVolumesAreRanked(t *testing.T) {
	var made paths
	prof := defaultProfile(t)
	rapid.Check(t, func(t *rapid.T) { volumeTwins(t, prof, &made) })
	if 2*made[place.Ranked] < made[place.Scanned] {
		t.Errorf("%d decisions by rank, %d by scan", made[place.Ranked], made[place.Scanned])
	}
}

func volumeTwins(t *rapid.T, prof place.Profile, made *paths) {
	const driver = "disk.example.com"
	s, in := cluster.NewStore(), convert.NewIntake()
	nodes := rapid.IntRange(2, 6).Draw(t, "nodes")
	most := rapid.SampledFrom([]int{2, 12}).Draw(t, "largest limit")
	limit := func(i int) {
		n := int32(rapid.IntRange(most/2, most).Draw(t, "limit"))
		s.SetObject(&storagev1.CSINode{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("n%d", i)}, Spec: storagev1.CSINodeSpec{
			Drivers: []storagev1.CSINodeDriver{{Name: driver, Allocatable: &storagev1.VolumeNodeResources{Count: &n}}}}})
	}
	for i := range nodes {
		s.SetNode(in.Node(groupNode(t, i)))
		limit(i)
	}
	fast, slow := place.New(prof, noMeter{}, 1<<20), place.New(prof, noMeter{}, 1<<20)
	place.LookAtEachRow(slow)
	for i := range rapid.IntRange(5, 25).Draw(t, "decisions") {
		name := fmt.Sprint("p", i)
		pv := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}}
		pv.Spec.CSI = &v1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: name}
		s.SetObject(pv)
		s.SetObject(&v1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name,
			Annotations: map[string]string{"pv.kubernetes.io/bind-completed": "yes"}}, Spec: v1.PersistentVolumeClaimSpec{VolumeName: name}})
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(fmt.Sprint("u", i))}}
		p.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: name}}}}
		rec := in.Pod(p)
		seed := rapid.Uint64().Draw(t, "seed")
		got := fast.Place(s.Snapshot(), rec, promised{}, place.Draw(seed, 1))
		want := slow.Place(s.Snapshot(), rec, promised{}, place.Draw(seed, 1))
		made[got.Path]++
		sameOutcome(t, s.Snapshot(), fast, slow, got, want)
		if got.Node != cluster.NoNode {
			p.Spec.NodeName = s.Snapshot().NodeName(got.Node)
			s.SetPod(in.Pod(p))
		}
		switch rapid.IntRange(0, 9).Draw(t, "change") {
		case 0:
			limit(rapid.IntRange(0, nodes-1).Draw(t, "node"))
		case 1:
			s.DeletePod(cluster.UID(fmt.Sprint("u", rapid.IntRange(0, i).Draw(t, "gone"))))
		case 2:
			s.SetObject(&storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.VolumeAttachmentSpec{
				Attacher: driver, NodeName: fmt.Sprintf("n%d", rapid.IntRange(0, nodes-1).Draw(t, "node")),
				Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &name}}})
		}
	}
}
