// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

const (
	later, now   = storagev1.VolumeBindingWaitForFirstConsumer, storagev1.VolumeBindingImmediate
	outOfReach   = "!node(s) didn't match PersistentVolume's node affinity"
	nothingFound = "!node(s) didn't find available persistent volumes to bind"
	tooLittle    = "!node(s) did not have enough free storage"
	vanished     = "!node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
	unbound      = "!pod has unbound immediate PersistentVolumeClaims"
)

func binding() *VolumeBinding { return plugintest.Must(NewVolumeBinding(DefaultVolumeBindingArgs())) }

type (
	claimOption  = func(*v1.PersistentVolumeClaim)
	volumeOption = func(*v1.PersistentVolume)
)

// wants is a claim in namespace ns for a volume of this size and class, once and read-write.
func wants(name, size, class string, options ...claimOption) *v1.PersistentVolumeClaim {
	c := storageClaim(name, "", ofClass(class), asksFor(size), modes(v1.ReadWriteOnce))
	c.UID, c.ResourceVersion = types.UID("uid-"+name), "1"
	for _, o := range options {
		o(c)
	}
	return c
}

func asksFor(size string) claimOption {
	return func(c *v1.PersistentVolumeClaim) {
		c.Spec.Resources.Requests = v1.ResourceList{v1.ResourceStorage: apiresource.MustParse(size)}
	}
}

func modes(m ...v1.PersistentVolumeAccessMode) claimOption {
	return func(c *v1.PersistentVolumeClaim) { c.Spec.AccessModes = m }
}

// hasVolume makes a claim fully bound.
func hasVolume(volume string) claimOption {
	return func(c *v1.PersistentVolumeClaim) {
		c.Spec.VolumeName, c.Status.Phase = volume, v1.ClaimBound
		noteOnClaim(annBindCompleted, "yes")(c)
	}
}

func noteOnClaim(key, value string) claimOption {
	return func(c *v1.PersistentVolumeClaim) { metav1.SetMetaDataAnnotation(&c.ObjectMeta, key, value) }
}

func selecting(key, value string) claimOption {
	return func(c *v1.PersistentVolumeClaim) {
		c.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	}
}

// offered is a free volume of this size and class.
func offered(name, size, class string, options ...volumeOption) *v1.PersistentVolume {
	pv := volume(name, "")
	pv.UID, pv.ResourceVersion = types.UID("uid-"+name), "1"
	pv.Spec.StorageClassName, pv.Status.Phase = class, v1.VolumeAvailable
	pv.Spec.Capacity = v1.ResourceList{v1.ResourceStorage: apiresource.MustParse(size)}
	pv.Spec.AccessModes = []v1.PersistentVolumeAccessMode{v1.ReadWriteOnce, v1.ReadOnlyMany}
	for _, o := range options {
		o(pv)
	}
	return pv
}

// only lets a volume be reached from nodes that match one of the terms.
func only(terms ...v1.NodeSelectorTerm) volumeOption {
	return func(pv *v1.PersistentVolume) {
		pv.Spec.NodeAffinity = &v1.VolumeNodeAffinity{Required: &v1.NodeSelector{NodeSelectorTerms: terms}}
	}
}

// within is a term for nodes with one of these values of a label.
func within(key string, values ...string) v1.NodeSelectorTerm {
	return plugintest.Term(plugintest.Expression(key, v1.NodeSelectorOpIn, values...))
}

// claimedBy makes a volume name a claim of namespace ns, with its UID or, if empty, without.
func claimedBy(name, uid string) volumeOption {
	return func(pv *v1.PersistentVolume) {
		pv.Spec.ClaimRef = &v1.ObjectReference{Kind: "PersistentVolumeClaim", Namespace: "ns", Name: name, UID: types.UID(uid)}
	}
}

func labelled(key, value string) volumeOption {
	return func(pv *v1.PersistentVolume) { pv.Labels[key] = value }
}

// allowing lets a class make volumes only where a label has one of these values.
func allowing(c *storagev1.StorageClass, key string, values ...string) *storagev1.StorageClass {
	c.AllowedTopologies = append(c.AllowedTopologies, v1.TopologySelectorTerm{
		MatchLabelExpressions: []v1.TopologySelectorLabelRequirement{{Key: key, Values: values}}})
	return c
}

// telling is a driver that publishes storage capacity.
func telling(name string) *storagev1.CSIDriver {
	yes := true
	return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSIDriverSpec{StorageCapacity: &yes}}
}

// `room` is storage of a class with so much free, for nodes with these labels.
func room(name, class, free string, on *metav1.LabelSelector) *storagev1.CSIStorageCapacity {
	c := &storagev1.CSIStorageCapacity{ObjectMeta: metav1.ObjectMeta{Namespace: "storage", Name: name}, StorageClassName: class, NodeTopology: on}
	if free != "" {
		q := apiresource.MustParse(free)
		c.Capacity = &q
	}
	return c
}

func where(key, value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
}

func atMost(c *storagev1.CSIStorageCapacity, size string) *storagev1.CSIStorageCapacity {
	q := apiresource.MustParse(size)
	c.MaximumVolumeSize = &q
	return c
}
