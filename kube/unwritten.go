// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// unwritten tells whether an object may yet be updated before a bind: a claim that has no devices, a volume or claim that is
// not bound. An update sends the whole object, of which the engine has a part, so these are kept in full, without managed
// fields: the API server leaves those as they are when an update names none. What is bound or allocated, nearly all there is
// in a cluster, is not.
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

// Unwritten is the newest full version of an object that may yet be written; nil where there is none. It must not be changed.
func (in *Inbox) Unwritten(kind cluster.Kind, target cluster.Target) metav1.Object {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, t := range in.objects {
		if t.kind != kind || t.wanted == nil {
			continue
		}
		if o := t.whole[objectKey{target.Namespace, target.Name}]; o != nil && string(o.GetUID()) == string(target.UID) {
			return o
		}
	}
	return nil
}

// watched is the object of a target as the watch has it, zero where that is not kept.
func watched[T metav1.Object](w *Writer, kind cluster.Kind, target cluster.Target) (obj T) {
	if w.unwritten != nil {
		obj, _ = w.unwritten(kind, target).(T)
	}
	return obj
}

// atFirst gives out what is known of an object, if anything is, and asks the API server from then on.
func atFirst[T comparable](have T, ask func(context.Context) (T, error)) func(context.Context) (T, error) {
	var none T
	return func(ctx context.Context) (T, error) {
		if obj := have; obj != none {
			have = none
			return obj, nil
		}
		return ask(ctx)
	}
}
