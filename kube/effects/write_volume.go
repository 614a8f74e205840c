// SPDX-License-Identifier: Apache-2.0

package effects

import (
	"context"
	"fmt"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

const (
	boundByController = "pv.kubernetes.io/bound-by-controller"
	selectedNode      = "volume.kubernetes.io/selected-node"
)

func targetName(t cluster.Target) string {
	if t.Namespace == "" {
		return t.Name
	}
	return t.Namespace + "/" + t.Name
}

// sameVersion tells why an object is not the version that a write is meant for, nil when it is.
func sameVersion(t cluster.Target, is metav1.Object) error {
	switch {
	case string(is.GetUID()) != string(t.UID):
		return fmt.Errorf("%s %s is another object by now", t.Kind, targetName(t))
	case t.ResourceVersion != "" && is.GetResourceVersion() != t.ResourceVersion:
		return fmt.Errorf("%s %s has changed since it was looked at", t.Kind, targetName(t))
	}
	return nil
}

// bindVolume updates the volume, as upstream does; its version is the precondition.
func (w *objectWriter) bindVolume(b cluster.BindVolume) error {
	api := w.client.CoreV1().PersistentVolumes()
	read := func(ctx context.Context) (*v1.PersistentVolume, error) {
		return api.Get(ctx, b.Name, metav1.GetOptions{})
	}
	return carry(w, change[*v1.PersistentVolume]{
		what: fmt.Sprintf("binding volume %s to claim %s", b.Name, targetName(b.Claim)),
		read: atFirst(ofVersion(b.Target, watched[*v1.PersistentVolume](w, cluster.KindVolume, b.Target)), read),
		judge: func(pv *v1.PersistentVolume) (bool, error) {
			ref := pv.Spec.ClaimRef
			if string(pv.UID) == string(b.UID) && ref != nil && string(ref.UID) == string(b.Claim.UID) &&
				(!b.ByController || pv.Annotations[boundByController] != "") {
				return true, nil
			}
			return false, sameVersion(b.Target, pv)
		},
		send: func(ctx context.Context, pv *v1.PersistentVolume) error {
			pv = pv.DeepCopy()
			pv.Spec.ClaimRef = &v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1",
				Namespace: b.Claim.Namespace, Name: b.Claim.Name, UID: types.UID(b.Claim.UID),
				ResourceVersion: b.Claim.ResourceVersion}
			if b.ByController {
				metav1.SetMetaDataAnnotation(&pv.ObjectMeta, boundByController, "yes")
			}
			_, err := api.Update(ctx, pv, metav1.UpdateOptions{})
			return err
		},
	})
}

// selectNode updates the claim, as upstream does; its version is the precondition.
func (w *objectWriter) selectNode(s cluster.SelectNode) error {
	api := w.client.CoreV1().PersistentVolumeClaims(s.Namespace)
	read := func(ctx context.Context) (*v1.PersistentVolumeClaim, error) {
		return api.Get(ctx, s.Name, metav1.GetOptions{})
	}
	return carry(w, change[*v1.PersistentVolumeClaim]{
		what: fmt.Sprintf("choosing node %s for the volume of claim %s", s.Node, targetName(s.Target)),
		read: atFirst(ofVersion(s.Target, watched[*v1.PersistentVolumeClaim](w, cluster.KindClaim, s.Target)), read),
		judge: func(claim *v1.PersistentVolumeClaim) (bool, error) {
			if string(claim.UID) == string(s.UID) && claim.Annotations[selectedNode] == s.Node {
				return true, nil
			}
			return false, sameVersion(s.Target, claim)
		},
		send: func(ctx context.Context, claim *v1.PersistentVolumeClaim) error {
			claim = claim.DeepCopy()
			metav1.SetMetaDataAnnotation(&claim.ObjectMeta, selectedNode, s.Node)
			_, err := api.Update(ctx, claim, metav1.UpdateOptions{})
			return err
		},
	})
}

// ofVersion is what is known of an object if it is the version that is to be written: another may be older than that
// one.
func ofVersion[T interface {
	comparable
	metav1.Object
}](t cluster.Target, have T) T {
	var none T
	if have == none || have.GetResourceVersion() != t.ResourceVersion {
		return none
	}
	return have
}
