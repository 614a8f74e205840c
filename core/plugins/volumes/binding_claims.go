// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"fmt"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// The annotations by which the scheduler, the volume controller and provisioners talk about claims and volumes
// (upstream: component-helpers/storage/volume).
const (
	annBindCompleted     = "pv.kubernetes.io/bind-completed"
	annBoundByController = "pv.kubernetes.io/bound-by-controller"
	annSelectedNode      = "volume.kubernetes.io/selected-node"
)

// noProvisioner is the provisioner of classes whose volumes are made by hand.
const noProvisioner = "kubernetes.io/no-provisioner"

// claimName is the claim behind a volume of a pod; empty for volumes without one. ephemeral is set if the claim is
// made for the pod alone.
func claimName(p *cluster.Pod, vol *v1.Volume) (name string, ephemeral bool) {
	switch {
	case vol.PersistentVolumeClaim != nil:
		return vol.PersistentVolumeClaim.ClaimName, false
	case vol.Ephemeral != nil:
		return p.EphemeralClaim(vol.Name), true
	}
	return "", false
}

// hasClaim reports whether a volume of a pod is a claim.
func hasClaim(vol *v1.Volume) bool { return vol.PersistentVolumeClaim != nil || vol.Ephemeral != nil }

// unusableClaim is why the pod must wait for one of its claims, whatever the node; any reports whether it has claims.
func unusableClaim(s cluster.Snapshot, p *cluster.Pod) (reject string, any bool) {
	for i := range p.Spec.Volumes {
		vol := &p.Spec.Volumes[i]
		if !hasClaim(vol) {
			continue
		}
		any = true
		name, ephemeral := claimName(p, vol)
		claim, ok := cluster.FindAPI[*v1.PersistentVolumeClaim](s, p.Namespace, name)
		switch {
		case !ok && ephemeral:
			return fmt.Sprintf("waiting for ephemeral volume controller to create the persistentvolumeclaim %q",
				name), true
		case !ok:
			return fmt.Sprintf("persistentvolumeclaim %q not found", name), true
		case claim.Status.Phase == v1.ClaimLost:
			return fmt.Sprintf("persistentvolumeclaim %q bound to non-existent persistentvolume %q", name,
				claim.Spec.VolumeName), true
		case claim.DeletionTimestamp != nil:
			return fmt.Sprintf("persistentvolumeclaim %q is being deleted", name), true
		case ephemeral && !ownsClaim(p, claim):
			return fmt.Sprintf("PVC %s/%s was not created for pod %s/%s (pod is not owner)", claim.Namespace,
				claim.Name, p.Namespace, p.Name), true
		}
	}
	return "", any
}

// ownsClaim reports whether a claim is that of an ephemeral volume of this very pod.
func ownsClaim(p *cluster.Pod, claim *v1.PersistentVolumeClaim) bool {
	owner := metav1.GetControllerOfNoCopy(claim)
	return owner != nil && string(owner.UID) == string(p.UID)
}

// podClaims are the claims of a pod that can be used, by what is to be done about them, in the order of its volumes. A
// claim that two volumes name is there twice.
type podClaims struct {
	bound   []*v1.PersistentVolumeClaim
	delayed []*v1.PersistentVolumeClaim // unbound, waiting for their first consumer
	// immediate counts claims that the volume controller should have bound already.
	immediate int
}

func claimsOf(s cluster.Snapshot, p *cluster.Pod) (c podClaims, err error) {
	for i := range p.Spec.Volumes {
		vol := &p.Spec.Volumes[i]
		if !hasClaim(vol) {
			continue
		}
		name, _ := claimName(p, vol)
		claim, ok := cluster.Find[*v1.PersistentVolumeClaim](s, p.Namespace, name)
		if !ok {
			panic(cluster.Broken(fmt.Sprintf("claim %s/%s, which was there just now, is gone", p.Namespace, name)))
		}
		if fullyBound(claim) {
			c.bound = append(c.bound, claim)
			continue
		}
		waits, err := waitsForConsumer(s, claim)
		switch {
		case err != nil:
			return c, err
		case waits && claim.Spec.VolumeName == "":
			c.delayed = append(c.delayed, claim)
		default: // a claim that names its volume is the volume controller's to bind
			c.immediate++
		}
	}
	return c, nil
}

// fullyBound reports whether the volume controller is done with a claim.
func fullyBound(claim *v1.PersistentVolumeClaim) bool {
	return claim.Spec.VolumeName != "" && metav1.HasAnnotation(claim.ObjectMeta, annBindCompleted)
}

// waitsForConsumer reports whether a claim is to be bound once its pod has a node. A claim without a class, or of a
// class that does not exist, is not.
func waitsForConsumer(s cluster.Snapshot, claim *v1.PersistentVolumeClaim) (bool, error) {
	name := classOfClaim(claim)
	if name == "" {
		return false, nil
	}
	class, ok := cluster.Find[*storagev1.StorageClass](s, "", name)
	if !ok {
		return false, nil
	}
	if class.VolumeBindingMode == nil {
		return false, fmt.Errorf("VolumeBindingMode not set for StorageClass %q", name)
	}
	return *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer, nil
}

// volumeClass is the storage class of a volume. The annotation is older than the field and wins.
func volumeClass(pv *v1.PersistentVolume) string {
	if class, found := pv.Annotations[v1.BetaStorageClassAnnotation]; found {
		return class
	}
	return pv.Spec.StorageClassName
}
