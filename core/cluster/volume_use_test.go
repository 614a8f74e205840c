// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// drawVolumes gives a pod volumes of a few claims and kinds.
func drawVolumes(t *rapid.T) []v1.Volume {
	var volumes []v1.Volume
	for i := range rapid.IntRange(0, 2).Draw(t, "volumes") {
		v := v1.Volume{Name: fmt.Sprint("v", i)}
		switch rapid.IntRange(0, 3).Draw(t, "kind") {
		case 0:
			v.Ephemeral = &v1.EphemeralVolumeSource{}
		case 1:
			v.ISCSI = &v1.ISCSIVolumeSource{IQN: "iqn"}
		default:
			v.PersistentVolumeClaim = &v1.PersistentVolumeClaimVolumeSource{
				ClaimName: rapid.SampledFrom([]string{"c0", "c1", ""}).Draw(t, "claim")}
		}
		volumes = append(volumes, v)
	}
	return volumes
}

// compareVolumes holds what the store says of volumes against a look at all pods.
func compareVolumes(t *rapid.T, snap cluster.Snapshot) {
	used := map[string]bool{}
	for row := range snap.Rows() {
		n, volumes, special := cluster.NodeIdx(row), 0, 0
		var with []*cluster.Pod
		snap.EachPod(n, func(p *cluster.Pod, _ bool) {
			if len(p.Spec.Volumes) != 0 {
				with = append(with, p)
			}
			for _, v := range p.Spec.Volumes {
				volumes++
				if v.Ephemeral != nil || v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == "" {
					special++
				}
				if v.PersistentVolumeClaim != nil && snap.Node(n) != nil {
					used[v.PersistentVolumeClaim.ClaimName] = true
				}
			}
		})
		if gotVolumes, gotSpecial := snap.VolumesOn(n); gotVolumes != volumes || gotSpecial != special {
			t.Fatalf("row %d: store counts %d volumes, %d special, there are %d and %d", n, gotVolumes, gotSpecial,
				volumes, special)
		}
		var got []*cluster.Pod
		snap.EachPodWithVolumes(n, func(p *cluster.Pod) bool { got = append(got, p); return true })
		if !slices.Equal(got, with) {
			t.Fatalf("row %d: store lists %d pods with volumes, there are %d, or in another order", n, len(got),
				len(with))
		}
	}
	for _, claim := range []string{"c0", "c1", ""} {
		if got := snap.ClaimUsed(cluster.ObjectKey{Namespace: "default", Name: claim}); got != used[claim] {
			t.Fatalf("claim %q in use: store %v, pods %v", claim, got, used[claim])
		}
	}
	if snap.ClaimUsed(cluster.ObjectKey{Namespace: "other", Name: "c0"}) {
		t.Fatalf("a claim of another namespace is in use")
	}
}

// TestAttachmentsAreThoseOfTheNode runs random histories of attachments, some rolled back, and compares the lists
// with a scan of all objects. Mutant: an undo that does not reach the lists.
func TestAttachmentsAreThoseOfTheNode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := cluster.NewStore()
		for version := range rapid.IntRange(1, 8).Draw(t, "transactions") {
			s.Begin()
			for range rapid.IntRange(0, 5).Draw(t, "steps") {
				name := fmt.Sprint("a", rapid.IntRange(0, 4).Draw(t, "attachment"))
				if rapid.Bool().Draw(t, "delete") {
					s.DeleteObject(cluster.KindAttachment, cluster.ObjectKey{Name: name})
				} else {
					s.SetObject(&storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: name,
						ResourceVersion: fmt.Sprint(version)},
						Spec: storagev1.VolumeAttachmentSpec{NodeName: fmt.Sprint("n",
							rapid.IntRange(0, 2).Draw(t, "node"))}})
				}
			}
			if rapid.Bool().Draw(t, "abort") {
				s.Abort()
			} else {
				s.Commit()
			}
			snap := s.Snapshot()
			want := map[string]int{} // node name -> attachments
			cluster.Each(snap, func(va *storagev1.VolumeAttachment) bool {
				want[va.Spec.NodeName]++
				if !slices.Contains(snap.AttachmentsOn(va.Spec.NodeName), va) {
					t.Fatalf("attachment %s is not listed on %s", va.Name, va.Spec.NodeName)
				}
				return true
			})
			for _, node := range []string{"n0", "n1", "n2"} {
				if got := len(snap.AttachmentsOn(node)); got != want[node] {
					t.Fatalf("%d attachments on %s, there are %d", got, node, want[node])
				}
			}
		}
	})
}
