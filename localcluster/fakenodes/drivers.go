// SPDX-License-Identifier: Apache-2.0

package fakenodes

import (
	"context"
	"fmt"
	"log/slog"
	"slices"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"

	"github.com/kumiki-scheduler/kumiki/localcluster/nodespec"
)

// publish creates what drivers publish about a node; the node owns it.
func publish(ctx context.Context, client kubernetes.Interface, name string, d nodespec.Drivers) error {
	if d.CSINode == nil && len(d.Slices) == 0 {
		return nil
	}
	var owner []metav1.OwnerReference
	err := insist(ctx, "read node "+name, func() error {
		node, err := client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
		if err == nil {
			owner = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: name, UID: node.UID}}
		}
		return err
	})
	if err != nil {
		return err
	}
	if d.CSINode != nil {
		d.CSINode.OwnerReferences = owner
		err = insist(ctx, "create CSINode "+name, func() error {
			_, err := client.StorageV1().CSINodes().Create(ctx, d.CSINode, metav1.CreateOptions{})
			return err
		})
	}
	for _, slice := range d.Slices {
		if err != nil {
			break
		}
		slice.OwnerReferences = owner
		err = insist(ctx, "create ResourceSlice "+slice.Name, func() error {
			_, err := client.ResourceV1().ResourceSlices().Create(ctx, slice, metav1.CreateOptions{})
			return err
		})
	}
	return err
}

const (
	provisionedBy  = "volume.kubernetes.io/storage-provisioner"
	selectedNode   = "volume.kubernetes.io/selected-node"
	madeByDriver   = "pv.kubernetes.io/provisioned-by"
	provisionCount = 4
	// failParameter of a StorageClass makes its driver unable to make volumes:
	// it gives the choice of the node back to the scheduler each time.
	failParameter = "fail"
)

// provisioner makes volumes as CSI drivers' provisioners do, when the volume
// controller names one of its drivers on a claim, and deletes them when their
// claim is gone.
type provisioner struct {
	client  kubernetes.Interface
	drivers []string
	queue   workqueue.TypedRateLimitingInterface[types.NamespacedName]
}

// provisionVolumes works until ctx ends.
func provisionVolumes(ctx context.Context, client kubernetes.Interface, drivers []string) {
	p := &provisioner{client: client, drivers: drivers, queue: workqueue.NewTypedRateLimitingQueue(
		workqueue.NewTypedItemExponentialFailureRateLimiter[types.NamespacedName](firstRetry, longestRetry))}
	claims := client.CoreV1().PersistentVolumeClaims(metav1.NamespaceAll)
	go reflector("claims", &v1.PersistentVolumeClaim{}, claims.List, claims.Watch, "", shown[*v1.PersistentVolumeClaim](p.claimed)).RunWithContext(ctx)
	volumes := client.CoreV1().PersistentVolumes()
	go reflector("volumes", &v1.PersistentVolume{}, volumes.List, volumes.Watch, "", shown[*v1.PersistentVolume](p.freed)).RunWithContext(ctx)
	for range provisionCount {
		go p.work(ctx)
	}
	go func() {
		<-ctx.Done()
		p.queue.ShutDown()
	}()
}

// claimed queues a claim that waits for one of our drivers.
func (p *provisioner) claimed(claim *v1.PersistentVolumeClaim) {
	if claim.Spec.VolumeName == "" && slices.Contains(p.drivers, claim.Annotations[provisionedBy]) {
		p.queue.Add(types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name})
	}
}

// freed queues a volume that is to be deleted. A volume has no namespace; that
// is how a key tells the two apart.
func (p *provisioner) freed(pv *v1.PersistentVolume) {
	if p.done(pv) {
		p.queue.Add(types.NamespacedName{Name: pv.Name})
	}
}

// done reports whether a volume of ours is to be deleted: its claim is gone.
func (p *provisioner) done(pv *v1.PersistentVolume) bool {
	return pv.Status.Phase == v1.VolumeReleased && pv.Spec.PersistentVolumeReclaimPolicy == v1.PersistentVolumeReclaimDelete &&
		pv.Spec.CSI != nil && slices.Contains(p.drivers, pv.Spec.CSI.Driver)
}

func (p *provisioner) remove(ctx context.Context, name string) error {
	pv, err := p.client.CoreV1().PersistentVolumes().Get(ctx, name, metav1.GetOptions{})
	if err != nil || !p.done(pv) {
		return err
	}
	return p.client.CoreV1().PersistentVolumes().Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &pv.UID}})
}

func (p *provisioner) work(ctx context.Context) {
	for {
		key, shutdown := p.queue.Get()
		if shutdown {
			return
		}
		step := p.provision
		if key.Namespace == "" {
			step = func(ctx context.Context, key types.NamespacedName) error { return p.remove(ctx, key.Name) }
		}
		if err := step(ctx, key); err != nil && !apierrors.IsNotFound(err) {
			slog.Warn("make or delete volume", "object", key.String(), "err", err)
			p.queue.AddRateLimited(key)
		} else {
			p.queue.Forget(key)
		}
		p.queue.Done(key)
	}
}

// provision makes the volume of a claim, if it is wanted now.
func (p *provisioner) provision(ctx context.Context, key types.NamespacedName) error {
	claim, err := p.client.CoreV1().PersistentVolumeClaims(key.Namespace).Get(ctx, key.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	driver := claim.Annotations[provisionedBy]
	if claim.Spec.VolumeName != "" || claim.DeletionTimestamp != nil || claim.Spec.StorageClassName == nil || !slices.Contains(p.drivers, driver) {
		return nil
	}
	class, err := p.client.StorageV1().StorageClasses().Get(ctx, *claim.Spec.StorageClassName, metav1.GetOptions{})
	if err != nil {
		return err
	}
	node := claim.Annotations[selectedNode]
	if node == "" && class.VolumeBindingMode != nil && *class.VolumeBindingMode == storagev1.VolumeBindingWaitForFirstConsumer {
		return nil
	}
	if class.Parameters[failParameter] != "" {
		if node == "" {
			return nil
		}
		delete(claim.Annotations, selectedNode)
		_, err := p.client.CoreV1().PersistentVolumeClaims(key.Namespace).Update(ctx, claim, metav1.UpdateOptions{})
		return err
	}
	affinity, err := p.reachable(ctx, driver, node)
	if err != nil {
		return err
	}
	_, err = p.client.CoreV1().PersistentVolumes().Create(ctx, volumeFor(claim, class, affinity), metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// reachable is from where a volume can be reached that is made for a node: what
// the driver says of the node's topology.
func (p *provisioner) reachable(ctx context.Context, driver, name string) (*v1.VolumeNodeAffinity, error) {
	if name == "" {
		return nil, nil
	}
	csi, err := p.client.StorageV1().CSINodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	node, err := p.client.CoreV1().Nodes().Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	for _, d := range csi.Spec.Drivers {
		if d.Name != driver {
			continue
		}
		var term v1.NodeSelectorTerm
		for _, key := range d.TopologyKeys {
			term.MatchExpressions = append(term.MatchExpressions,
				v1.NodeSelectorRequirement{Key: key, Operator: v1.NodeSelectorOpIn, Values: []string{node.Labels[key]}})
		}
		return &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: []v1.NodeSelectorTerm{term}}}, nil
	}
	return nil, fmt.Errorf("node %s has no driver %s", name, driver)
}

// volumeFor is the volume of a claim; the volume controller binds the two.
func volumeFor(claim *v1.PersistentVolumeClaim, class *storagev1.StorageClass, affinity *v1.VolumeNodeAffinity) *v1.PersistentVolume {
	name := "pvc-" + string(claim.UID)
	reclaim := v1.PersistentVolumeReclaimDelete
	if class.ReclaimPolicy != nil {
		reclaim = *class.ReclaimPolicy
	}
	return &v1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{madeByDriver: class.Provisioner}},
		Spec: v1.PersistentVolumeSpec{
			Capacity:                      v1.ResourceList{v1.ResourceStorage: claim.Spec.Resources.Requests[v1.ResourceStorage]},
			AccessModes:                   claim.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: reclaim,
			StorageClassName:              class.Name,
			VolumeMode:                    claim.Spec.VolumeMode,
			NodeAffinity:                  affinity,
			ClaimRef: &v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: claim.Namespace, Name: claim.Name,
				UID: claim.UID, ResourceVersion: claim.ResourceVersion},
			PersistentVolumeSource: v1.PersistentVolumeSource{CSI: &v1.CSIPersistentVolumeSource{Driver: class.Provisioner, VolumeHandle: name}},
		},
	}
}
