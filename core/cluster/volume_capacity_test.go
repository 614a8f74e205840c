// SPDX-License-Identifier: Apache-2.0

package cluster_test

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
)

// changeRoom makes a small change to the capacity for volumes that drivers have on nodes.
func changeRoom(t *rapid.T, s *cluster.Store, in *convert.Intake, version int) {
	node := fmt.Sprint("n", rapid.IntRange(0, 2).Draw(t, "node"))
	name := fmt.Sprint("x", rapid.IntRange(0, 4).Draw(t, "name"))
	meta := metav1.ObjectMeta{Name: node, ResourceVersion: fmt.Sprint(version)}
	switch rapid.IntRange(0, 8).Draw(t, "change") {
	case 0, 1:
		s.SetNode(in.Node(&v1.Node{ObjectMeta: meta}))
	case 2:
		s.DeleteNode(node)
	case 3, 4:
		csi := &storagev1.CSINode{ObjectMeta: meta}
		for _, driver := range rapid.SliceOfN(rapid.SampledFrom([]string{"disk", "net"}), 0, 3).Draw(t, "drivers") {
			d := storagev1.CSINodeDriver{Name: driver}
			if limit := int32(rapid.IntRange(-1, 7).Draw(t, "limit")); limit >= 0 {
				d.Allocatable = &storagev1.VolumeNodeResources{Count: &limit}
			}
			csi.Spec.Drivers = append(csi.Spec.Drivers, d)
		}
		s.SetObject(csi)
	case 5:
		s.DeleteObject(cluster.KindCSINode, cluster.ObjectKey{Name: node})
	case 6:
		s.SetObject(&storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name,
			ResourceVersion: meta.ResourceVersion},
			Spec: storagev1.VolumeAttachmentSpec{NodeName: node}})
	case 7:
		p := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, UID: types.UID(name)}}
		p.Spec.NodeName, p.Spec.Volumes = node, drawVolumes(t)
		s.SetPod(in.Pod(p))
	case 8:
		s.DeletePod(cluster.UID(name))
		s.DeleteObject(cluster.KindAttachment, cluster.ObjectKey{Name: name})
	}
}

// TestRowsThatAreShortOfVolumes runs random histories, some rolled back and some only supposed, and compares the rows
// that are short of capacity with a check of each node. Mutants: an undo, an attachment, a node added after its
// CSINode, or a deleted one, which does not reach the sets.
func TestRowsThatAreShortOfVolumes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s, in := cluster.NewStore(), convert.NewIntake()
		for step := range rapid.IntRange(1, 20).Draw(t, "transactions") {
			what := rapid.IntRange(0, 3).Draw(t, "end")
			end := s.Commit
			if what == 0 {
				end = s.Suppose().End
			} else {
				s.Begin()
			}
			for range rapid.IntRange(0, 4).Draw(t, "steps") {
				changeRoom(t, s, in, step)
			}
			compareRoom(t, s.Snapshot())
			if what == 1 {
				end = s.Abort
			}
			end()
			compareRoom(t, s.Snapshot())
		}
	})
}

func compareRoom(t *rapid.T, snap cluster.Snapshot) {
	for _, driver := range []string{"disk", "net", "none"} {
		for n := range cluster.NodeIdx(snap.Rows() + 64) {
			if got, want := snap.ShortOfVolumes(driver).Has(n), isShort(snap, driver, n); got != want {
				t.Fatalf("row %d is short of room for volumes of %s: %v, want %v", n, driver, got, want)
			}
		}
	}
	for n := range cluster.NodeIdx(snap.Rows() + 64) {
		if _, special := snap.VolumesOn(n); snap.SpecialVolumes().Has(n) != (special > 0) {
			t.Fatalf("row %d has %d special volumes", n, special)
		}
	}
}

func isShort(snap cluster.Snapshot, driver string, n cluster.NodeIdx) bool {
	if int(n) >= snap.Rows() || snap.Node(n) == nil {
		return false
	}
	csi, ok := cluster.FindAPI[*storagev1.CSINode](snap, "", snap.NodeName(n))
	if !ok {
		return false
	}
	volumes, _ := snap.VolumesOn(n)
	for _, d := range csi.Spec.Drivers {
		if d.Name == driver && d.Allocatable != nil &&
			volumes+len(snap.AttachmentsOn(snap.NodeName(n)))+cluster.VolumeHeadroom > int(*d.Allocatable.Count) {
			return true
		}
	}
	return false
}
