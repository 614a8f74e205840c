// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
)

// TestWhatMayBeWrittenIsKeptInFull, and no longer than that: claims without devices, volumes and claims that are not
// bound. Catches an Inbox that keeps all claims (allocatedKept).
func TestWhatMayBeWrittenIsKeptInFull(t *testing.T) {
	in := NewInbox(func(object string, problem any) { t.Errorf("%s: %v", object, problem) }, cluster.KindDeviceClaim, cluster.KindClaim, cluster.KindVolume)
	claims, volumes, devices := kubetest.VolumeClaim("c", "uc", "6"), kubetest.Volume(), kubetest.DeviceClaim("5")
	volumes.Status.Phase = v1.VolumeAvailable
	devices.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "who"}}
	target := map[cluster.Kind]cluster.Target{
		cluster.KindClaim: {Namespace: "ns", Name: "c", UID: "uc"}, cluster.KindVolume: {Name: "v", UID: "uv"},
		cluster.KindDeviceClaim: {Namespace: "ns", Name: "d", UID: "ud"},
	}
	observe := func(obj cluster.Object) {
		for _, rows := range in.objects {
			if rows.kind == cluster.KindOf(obj) {
				newObjectStore(in, rows).Update(obj)
			}
		}
	}
	check := func(when string, want bool) {
		t.Helper()
		for kind, of := range target {
			if got := in.Unwritten(kind, of); (got != nil) != want {
				t.Errorf("%s: %s is kept: %v", when, kind, got != nil)
			} else if got != nil && len(got.GetManagedFields()) > 0 {
				t.Errorf("%s: %s is kept with managed fields", when, kind)
			}
			of.UID = "another"
			if in.Unwritten(kind, of) != nil {
				t.Errorf("%s: %s is taken for another", when, kind)
			}
		}
	}
	observe(claims)
	observe(volumes)
	observe(devices)
	check("new", true)
	bound, taken := kubetest.VolumeClaim("c", "uc", "7"), kubetest.Volume()
	bound.Spec.VolumeName, taken.ResourceVersion, taken.Status.Phase = "v", "7", v1.VolumeBound
	observe(bound)
	observe(taken)
	observe(kubetest.AllocatedClaim("7", "up"))
	check("bound", false)
	observe(kubetest.DeviceClaim("8"))
	observe(kubetest.VolumeClaim("c", "uc", "8"))
	observe(kubetest.Volume())
	check("free again", true)
	for _, rows := range in.objects {
		store := newObjectStore(in, rows)
		for key := range rows.rows {
			store.Delete(&metav1.ObjectMeta{Namespace: key.namespace, Name: key.name})
		}
	}
	newPodStore(in).Replace(nil, "9")
	newNodeStore(in).Replace(nil, "9")
	for _, rows := range in.objects {
		newObjectStore(in, rows).Replace(nil, "9")
	}
	in.Take(nil, 100)
	check("gone", false)
}
