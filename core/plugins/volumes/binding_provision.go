// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiresource "k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// canMake returns why no volume can be made for a claim on a node (upstream: binder.go, checkVolumeProvisions).
func canMake(s cluster.Snapshot, claim *v1.PersistentVolumeClaim, node *cluster.Node) plugin.Code {
	class := provisioningClass(s, claim)
	switch {
	case class == nil, !allows(class.AllowedTopologies, node.Labels):
		return volumeNoMatch | plugin.Unresolvable
	}
	if storage, told := storageFor(s, claim, class, node.Labels); told && storage == nil {
		return volumeNoRoom | plugin.Unresolvable
	}
	return plugin.Fit
}

// provisioningClass is the class of a claim, nil when it makes no volumes.
func provisioningClass(s cluster.Snapshot, claim *v1.PersistentVolumeClaim) *storagev1.StorageClass {
	class, ok := cluster.Find[*storagev1.StorageClass](s, "", classOfClaim(claim))
	if !ok || class.Provisioner == "" || class.Provisioner == noProvisioner {
		return nil
	}
	return class
}

// allows reports whether a class makes volumes for nodes with these labels: one of its terms must hold, if it has any.
// Terms that are empty or do not parse never hold.
func allows(terms []v1.TopologySelectorTerm, nodeLabels map[string]string) bool {
	for i := range terms {
		exprs := terms[i].MatchLabelExpressions
		holds := len(exprs) > 0
		for _, e := range exprs {
			r, err := labels.NewRequirement(e.Key, selection.In, e.Values)
			holds = holds && err == nil && r.Matches(labels.Set(nodeLabels))
		}
		if holds {
			return true
		}
	}
	return len(terms) == 0
}

// storageFor returns the first storage, by namespace and name, that a node with these labels reaches and that has
// capacity for a claim's volume; nil if there is none. told is false if no capacity is published.
func storageFor(s cluster.Snapshot, claim *v1.PersistentVolumeClaim, class *storagev1.StorageClass,
	nodeLabels map[string]string) (storage *storagev1.CSIStorageCapacity, told bool) {
	size, told := roomToCheck(s, claim, class)
	if !told {
		return nil, false
	}
	cluster.Each(s, func(c *storagev1.CSIStorageCapacity) bool {
		if !holdsVolume(c, class.Name, size) || c.NodeTopology == nil {
			return true
		}
		sel, err := metav1.LabelSelectorAsSelector(c.NodeTopology)
		if err == nil && sel.Matches(labels.Set(nodeLabels)) {
			storage = c
		}
		return storage == nil
	})
	return storage, true
}

// roomToCheck is the size in bytes of the volume for a claim; told is false if no capacity is published for it:
// the claim names no size, or the provisioner is no CSI driver that publishes capacities.
func roomToCheck(s cluster.Snapshot, claim *v1.PersistentVolumeClaim, class *storagev1.StorageClass) (size int64,
	told bool) {
	quantity, ok := claim.Spec.Resources.Requests[v1.ResourceStorage]
	if !ok {
		return 0, false
	}
	driver, ok := cluster.Find[*storagev1.CSIDriver](s, "", class.Provisioner)
	if !ok || !reportsCapacity(driver) {
		return 0, false
	}
	return quantity.Value(), true
}

// holdsVolume reports whether some storage is of a class and has capacity for a volume of size bytes.
func holdsVolume(c *storagev1.CSIStorageCapacity, class string, size int64) bool {
	limit := volumeLimit(c)
	return c.StorageClassName == class && limit != nil && limit.Value() >= size
}

// volumeLimit is the size of the largest volume that some storage can hold, nil when it does not say.
func volumeLimit(c *storagev1.CSIStorageCapacity) *apiresource.Quantity {
	if c.MaximumVolumeSize != nil {
		return c.MaximumVolumeSize
	}
	return c.Capacity
}
