// SPDX-License-Identifier: Apache-2.0

package intake

import (
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// unwritten reports whether an object may yet be updated before a bind: a claim that has no devices, a volume or claim
// that is not bound. An update sends the whole object, of which the engine has a part, so these are kept in full,
// without managed fields: the API server leaves those as they are when an update names none. What is bound or
// allocated, nearly all there is in a cluster, is not.
func unwritten(obj metav1.Object) bool {
	switch o := obj.(type) {
	case *resourceapi.ResourceClaim:
		return o.Status.Allocation == nil
	case *v1.PersistentVolumeClaim:
		return o.Spec.VolumeName == ""
	case *v1.PersistentVolume:
		return o.Status.Phase == v1.VolumePending || o.Status.Phase == v1.VolumeAvailable || o.Status.Phase == ""
	}
	return false
}

// keepUnwritten makes rows keep the full objects that may yet be written, if they are of such a kind.
func keepUnwritten(t *rows[cluster.Object]) {
	switch t.kind {
	case cluster.KindDeviceClaim, cluster.KindClaim, cluster.KindVolume:
		t.whole, t.wanted = map[objectKey]metav1.Object{}, unwritten
	}
}
