// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/kube/kubetest"
)

// TestAVolumeIsAskedForAndWaitedFor goes the way of a claim whose volume is made where its pod goes: the node is
// written on the claim, nothing is bound before the volume is there, and then the pod is bound to that node, whatever
// time it took. The next leader finds nothing to undo.
func TestAVolumeIsAskedForAndWaitedFor(t *testing.T) {
	pod := kubetest.PendingPod("p", "u1")
	pod.Spec.Volumes = []v1.Volume{{Name: "v", VolumeSource: v1.VolumeSource{PersistentVolumeClaim: &v1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}}}}
	api := kubetest.NewAPIServer(pod)
	mode, class := storagev1.VolumeBindingWaitForFirstConsumer, "late"
	c := kubetest.VolumeClaim("c", "uc", "5")
	c.Spec.StorageClassName = &class
	c.Status.Phase = v1.ClaimPending
	if err := api.Tracker().Add(c); err != nil {
		t.Fatal(err)
	}
	if err := api.Tracker().Add(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class, UID: "us", ResourceVersion: "1"},
		Provisioner: "disk.example.com", VolumeBindingMode: &mode}); err != nil {
		t.Fatal(err)
	}
	wholeScenario(t, false, api, func(t *testing.T, w *whole) {
		w.after(time.Minute)
		claims := api.Clientset.CoreV1().PersistentVolumeClaims("ns")
		got, err := claims.Get(t.Context(), "c", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		node := got.Annotations["volume.kubernetes.io/selected-node"]
		if node == "" || w.on("ns/p") != "" {
			t.Fatalf("the claim names node %q, the pod is on %q", node, w.on("ns/p"))
		}
		if got := kubetest.Value(t, w.reg, "scheduler_schedule_attempts_total"); got != 0 {
			t.Errorf("%v attempts have ended, want none: this one waits", got)
		}

		volume := &v1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: "made", UID: "um", ResourceVersion: "6"},
			Spec: v1.PersistentVolumeSpec{ClaimRef: &v1.ObjectReference{Namespace: "ns", Name: "c", UID: "uc"}, StorageClassName: class}}
		if _, err := api.Clientset.CoreV1().PersistentVolumes().Create(t.Context(), volume, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		got.ResourceVersion, got.Spec.VolumeName, got.Status.Phase = "7", "made", v1.ClaimBound
		got.Annotations["pv.kubernetes.io/bind-completed"] = "yes"
		if _, err := claims.Update(t.Context(), got, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		w.after(time.Second)
		if w.on("ns/p") != node {
			t.Errorf("the pod is on %q, its volume on %q", w.on("ns/p"), node)
		}
		if got := kubetest.Value(t, w.reg, "scheduler_framework_extension_point_duration_seconds", "extension_point=PreBind", "status=Success"); got != 1 {
			t.Errorf("%v runs of PreBind are counted, want 1", got)
		}
		if got := kubetest.Value(t, w.reg, "scheduler_pod_scheduling_attempts"); got != 1 {
			t.Errorf("%v pods are counted with their attempts, want 1", got)
		}
	}, func(o *wholeOptions) {
		o.kinds = []cluster.Kind{cluster.KindClaim, cluster.KindVolume, cluster.KindStorageClass, cluster.KindCSINode, cluster.KindCSIDriver,
			cluster.KindCapacity, cluster.KindAttachment}
	})
}
