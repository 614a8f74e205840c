// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"encoding/json"
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

// preconditions are the metadata of a patch that only the version of a target takes.
func preconditions(t cluster.Target) map[string]any {
	m := map[string]any{"uid": t.UID}
	if t.ResourceVersion != "" {
		m["resourceVersion"] = t.ResourceVersion
	}
	return m
}

func (w *Writer) bindVolume(b cluster.BindVolume) error {
	metadata := preconditions(b.Target)
	if b.ByController {
		metadata["annotations"] = map[string]any{boundByController: "yes"}
	}
	body, err := json.Marshal(map[string]any{"metadata": metadata, "spec": map[string]any{"claimRef": map[string]any{
		"kind": "PersistentVolumeClaim", "apiVersion": "v1", "namespace": b.Claim.Namespace, "name": b.Claim.Name, "uid": b.Claim.UID,
		"resourceVersion": b.Claim.ResourceVersion, "fieldPath": nil,
	}}})
	if err != nil {
		return fmt.Errorf("binding volume %s: %w", b.Name, err)
	}
	api := w.client.CoreV1().PersistentVolumes()
	patch := func(ctx context.Context) error {
		_, err := api.Patch(ctx, b.Name, types.MergePatchType, body, metav1.PatchOptions{})
		return err
	}
	return carry(w, change[*v1.PersistentVolume]{
		what:  fmt.Sprintf("binding volume %s to claim %s", b.Name, targetName(b.Claim)),
		blind: patch,
		read: func(ctx context.Context) (*v1.PersistentVolume, error) {
			return api.Get(ctx, b.Name, metav1.GetOptions{})
		},
		judge: func(pv *v1.PersistentVolume) (bool, error) {
			ref := pv.Spec.ClaimRef
			if string(pv.UID) == string(b.UID) && ref != nil && string(ref.UID) == string(b.Claim.UID) &&
				(!b.ByController || pv.Annotations[boundByController] != "") {
				return true, nil
			}
			return false, sameVersion(b.Target, pv)
		},
		send: func(ctx context.Context, _ *v1.PersistentVolume) error { return patch(ctx) },
	})
}

func (w *Writer) selectNode(s cluster.SelectNode) error {
	metadata := preconditions(s.Target)
	metadata["annotations"] = map[string]any{selectedNode: s.Node}
	body, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return fmt.Errorf("choosing a node for claim %s: %w", targetName(s.Target), err)
	}
	api := w.client.CoreV1().PersistentVolumeClaims(s.Namespace)
	patch := func(ctx context.Context) error {
		_, err := api.Patch(ctx, s.Name, types.MergePatchType, body, metav1.PatchOptions{})
		return err
	}
	return carry(w, change[*v1.PersistentVolumeClaim]{
		what:  fmt.Sprintf("choosing node %s for the volume of claim %s", s.Node, targetName(s.Target)),
		blind: patch,
		read: func(ctx context.Context) (*v1.PersistentVolumeClaim, error) {
			return api.Get(ctx, s.Name, metav1.GetOptions{})
		},
		judge: func(claim *v1.PersistentVolumeClaim) (bool, error) {
			if string(claim.UID) == string(s.UID) && claim.Annotations[selectedNode] == s.Node {
				return true, nil
			}
			return false, sameVersion(s.Target, claim)
		},
		send: func(ctx context.Context, _ *v1.PersistentVolumeClaim) error { return patch(ctx) },
	})
}
