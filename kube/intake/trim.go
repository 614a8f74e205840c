// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"fmt"
	"reflect"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourceapi "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// readAnnotations are the annotations that any code here reads, on any kind. All others are dropped at intake: they
// may be large, and what is not kept cannot reach a recording.
var readAnnotations = map[string]bool{
	"pv.kubernetes.io/bind-completed":               true,
	"pv.kubernetes.io/bound-by-controller":          true,
	"pv.kubernetes.io/migrated-to":                  true,
	"pv.kubernetes.io/provisioned-by":               true,
	"volume.kubernetes.io/selected-node":            true,
	"volume.kubernetes.io/storage-provisioner":      true,
	"volume.beta.kubernetes.io/storage-provisioner": true,
	v1.BetaStorageClassAnnotation:                   true,
	"storageclass.kubernetes.io/is-default-class":   true,
	v1.MigratedPluginsAnnotationKey:                 true,
	resourceapi.PodResourceClaimAnnotation:          true,
	resourceapi.ExtendedResourceClaimAnnotation:     true,
}

// Trim makes what is kept of an object: what the scheduler reads, without managed fields, templates, parameters of
// drivers and references to secrets. The object itself stays as it is; the result shares parts of it.
func Trim(obj cluster.Object) cluster.Object {
	switch o := obj.(type) {
	case *v1.Namespace:
		return &v1.Namespace{ObjectMeta: meta(&o.ObjectMeta)}
	case *v1.Service:
		return &v1.Service{ObjectMeta: unlabelled(&o.ObjectMeta), Spec: v1.ServiceSpec{Selector: o.Spec.Selector}}
	case *v1.ReplicationController:
		return &v1.ReplicationController{ObjectMeta: unlabelled(&o.ObjectMeta),
			Spec: v1.ReplicationControllerSpec{Selector: o.Spec.Selector}}
	case *appsv1.ReplicaSet:
		return &appsv1.ReplicaSet{ObjectMeta: unlabelled(&o.ObjectMeta),
			Spec: appsv1.ReplicaSetSpec{Selector: o.Spec.Selector}}
	case *appsv1.StatefulSet:
		return &appsv1.StatefulSet{ObjectMeta: unlabelled(&o.ObjectMeta),
			Spec: appsv1.StatefulSetSpec{Selector: o.Spec.Selector}}
	case *v1.PersistentVolumeClaim:
		return trimClaim(o)
	case *v1.PersistentVolume:
		return trimVolume(o)
	case *storagev1.StorageClass:
		return &storagev1.StorageClass{ObjectMeta: unlabelled(&o.ObjectMeta), Provisioner: o.Provisioner,
			VolumeBindingMode: o.VolumeBindingMode, AllowedTopologies: o.AllowedTopologies}
	case *storagev1.CSINode:
		return &storagev1.CSINode{ObjectMeta: unlabelled(&o.ObjectMeta), Spec: o.Spec}
	case *storagev1.CSIDriver:
		spec := o.Spec
		spec.TokenRequests = nil
		return &storagev1.CSIDriver{ObjectMeta: unlabelled(&o.ObjectMeta), Spec: spec}
	case *storagev1.CSIStorageCapacity:
		return &storagev1.CSIStorageCapacity{ObjectMeta: unlabelled(&o.ObjectMeta), NodeTopology: o.NodeTopology,
			StorageClassName: o.StorageClassName, Capacity: o.Capacity, MaximumVolumeSize: o.MaximumVolumeSize}
	case *storagev1.VolumeAttachment:
		return trimAttachment(o)
	case *resourceapi.ResourceClaim:
		return trimDeviceClaim(o)
	case *resourceapi.ResourceSlice:
		return &resourceapi.ResourceSlice{ObjectMeta: unlabelled(&o.ObjectMeta), Spec: o.Spec}
	case *resourceapi.DeviceClass:
		return &resourceapi.DeviceClass{ObjectMeta: unlabelled(&o.ObjectMeta), Spec: o.Spec}
	case *resourceapi.DeviceTaintRule:
		return &resourceapi.DeviceTaintRule{ObjectMeta: unlabelled(&o.ObjectMeta), Spec: o.Spec}
	case *policyv1.PodDisruptionBudget:
		return &policyv1.PodDisruptionBudget{ObjectMeta: unlabelled(&o.ObjectMeta),
			Spec: policyv1.PodDisruptionBudgetSpec{Selector: o.Spec.Selector},
			Status: policyv1.PodDisruptionBudgetStatus{DisruptionsAllowed: o.Status.DisruptionsAllowed,
				DisruptedPods: o.Status.DisruptedPods}}
	}
	panic(fmt.Sprintf("kube: nothing is known of a %T", obj))
}

// meta keeps what is read of an object's metadata. Owners stay: claims are checked against the pod that owns them.
func meta(m *metav1.ObjectMeta) metav1.ObjectMeta {
	out := metav1.ObjectMeta{
		Namespace: m.Namespace, Name: m.Name, UID: m.UID, ResourceVersion: m.ResourceVersion,
		CreationTimestamp: m.CreationTimestamp, DeletionTimestamp: m.DeletionTimestamp,
		Labels: m.Labels, OwnerReferences: m.OwnerReferences,
	}
	for key, value := range m.Annotations { // order: into a map
		if readAnnotations[key] {
			metav1.SetMetaDataAnnotation(&out, key, value)
		}
	}
	return out
}

func unlabelled(m *metav1.ObjectMeta) metav1.ObjectMeta {
	out := meta(m)
	out.Labels, out.OwnerReferences = nil, nil
	return out
}

func trimClaim(o *v1.PersistentVolumeClaim) *v1.PersistentVolumeClaim {
	spec := o.Spec
	spec.DataSource, spec.DataSourceRef = nil, nil
	out := &v1.PersistentVolumeClaim{ObjectMeta: meta(&o.ObjectMeta), Spec: spec,
		Status: v1.PersistentVolumeClaimStatus{Phase: o.Status.Phase}}
	out.Labels = nil
	return out
}

func trimVolume(o *v1.PersistentVolume) *v1.PersistentVolume {
	spec := o.Spec
	spec.MountOptions = nil
	spec.PersistentVolumeSource = trimSource(spec.PersistentVolumeSource)
	return &v1.PersistentVolume{ObjectMeta: meta(&o.ObjectMeta), Spec: spec,
		Status: v1.PersistentVolumeStatus{Phase: o.Status.Phase}}
}

// trimSource keeps where a volume is, not how to get at it.
func trimSource(s v1.PersistentVolumeSource) v1.PersistentVolumeSource {
	if s.CSI != nil {
		s.CSI = &v1.CSIPersistentVolumeSource{Driver: s.CSI.Driver, VolumeHandle: s.CSI.VolumeHandle}
	}
	if s.AzureFile != nil {
		file := *s.AzureFile
		file.SecretName, file.SecretNamespace = "", nil
		s.AzureFile = &file
	}
	if s.RBD != nil {
		disk := *s.RBD
		disk.SecretRef = nil
		s.RBD = &disk
	}
	if s.ISCSI != nil {
		disk := *s.ISCSI
		disk.SecretRef = nil
		s.ISCSI = &disk
	}
	if s.Cinder != nil {
		disk := *s.Cinder
		disk.SecretRef = nil
		s.Cinder = &disk
	}
	// No plugin looks into these; that the volume is there is all.
	s.CephFS, s.FlexVolume, s.ScaleIO, s.StorageOS, s.Quobyte, s.Glusterfs, s.NFS = nil, nil, nil, nil, nil, nil, nil
	return s
}

func trimAttachment(o *storagev1.VolumeAttachment) *storagev1.VolumeAttachment {
	out := &storagev1.VolumeAttachment{ObjectMeta: unlabelled(&o.ObjectMeta), Spec: o.Spec}
	if inline := o.Spec.Source.InlineVolumeSpec; inline != nil {
		out.Spec.Source.InlineVolumeSpec = &v1.PersistentVolumeSpec{
			PersistentVolumeSource: trimSource(inline.PersistentVolumeSource)}
	}
	return out
}

func trimDeviceClaim(o *resourceapi.ResourceClaim) *resourceapi.ResourceClaim {
	out := &resourceapi.ResourceClaim{ObjectMeta: meta(&o.ObjectMeta), Spec: o.Spec, Status: o.Status}
	out.Labels, out.Finalizers = nil, o.Finalizers
	out.Status.Devices = nil
	for _, d := range o.Status.Devices {
		d.Data, d.NetworkData = nil, nil
		out.Status.Devices = append(out.Status.Devices, d)
	}
	return out
}

// sameObject reports whether the engine would learn nothing from b. The resource version counts for the kinds that are
// written before a bind: it is the precondition of the write.
func sameObject(a, b cluster.Object) bool {
	if a.GetResourceVersion() == b.GetResourceVersion() && a.GetUID() == b.GetUID() && a.GetResourceVersion() != "" {
		return true
	}
	switch a.(type) {
	case *v1.PersistentVolumeClaim, *v1.PersistentVolume, *resourceapi.ResourceClaim:
		return reflect.DeepEqual(a, b)
	}
	version := a.GetResourceVersion()
	was := b.GetResourceVersion()
	b.SetResourceVersion(version)
	same := reflect.DeepEqual(a, b)
	b.SetResourceVersion(was)
	return same
}
