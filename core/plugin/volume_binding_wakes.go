// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// Wakes on all that binds volumes, makes them, says where they can be, or lets a node come into reach.
func (*VolumeBinding) Wakes() []Wake {
	return []Wake{
		{Event: Event{Resource: StorageClassObject, Action: Add | Update}, Hint: volumeClassHint},
		{Event: Event{Resource: ClaimObject, Action: Add | Update}, Hint: volumeClaimHint},
		{Event: Event{Resource: VolumeObject, Action: Add | Update}},
		{Event: Event{Resource: NodeObject, Action: Add | UpdateNodeLabel}},
		{Event: Event{Resource: CSINodeObject, Action: Add | Update}, Hint: volumeCSINodeHint},
		{Event: Event{Resource: CSIDriverObject, Action: Update}, Hint: volumeDriverHint},
		{Event: Event{Resource: CapacityObject, Action: Add | Update}, Hint: volumeCapacityHint},
	}
}

// versions are the objects of a change; old is nil for a new object.
func versions[T cluster.Object](ch Change) (old, now T) {
	old, _ = ch.OldObject.(T)
	now, _ = ch.NewObject.(T)
	return old, now
}

// volumeClassHint: of a class that exists only the allowed topologies can change to any effect.
func volumeClassHint(_ *cluster.Pod, ch Change) Hint {
	old, now := versions[*storagev1.StorageClass](ch)
	if old == nil || !equality.Semantic.DeepEqual(old.AllowedTopologies, now.AllowedTopologies) {
		return QueueHint
	}
	return SkipHint
}

// volumeClaimHint: any change of one of the pod's own claims.
func volumeClaimHint(p *cluster.Pod, ch Change) Hint {
	_, now := versions[*v1.PersistentVolumeClaim](ch)
	if p.Namespace != now.Namespace {
		return SkipHint
	}
	for i := range p.Spec.Volumes {
		vol := &p.Spec.Volumes[i]
		if name, _ := claimName(p, vol); hasClaim(vol) && name == now.Name {
			return QueueHint
		}
	}
	return SkipHint
}

// volumeCSINodeHint: on which nodes a volume counts in its CSI form.
func volumeCSINodeHint(_ *cluster.Pod, ch Change) Hint {
	old, now := versions[*storagev1.CSINode](ch)
	if old == nil || old.Annotations[v1.MigratedPluginsAnnotationKey] != now.Annotations[v1.MigratedPluginsAnnotationKey] {
		return QueueHint
	}
	return SkipHint
}

// volumeDriverHint: a driver that stops telling its capacity. Only inline CSI volumes are looked at, as upstream does,
// though it is claims whose capacity is checked.
func volumeDriverHint(p *cluster.Pod, ch Change) Hint {
	old, now := versions[*storagev1.CSIDriver](ch)
	for i := range p.Spec.Volumes {
		if csi := p.Spec.Volumes[i].CSI; csi != nil && csi.Driver == now.Name && (tellsRoom(old) && !tellsRoom(now)) {
			return QueueHint
		}
	}
	return SkipHint
}

func tellsRoom(d *storagev1.CSIDriver) bool {
	return d != nil && d.Spec.StorageCapacity != nil && *d.Spec.StorageCapacity
}

// volumeCapacityHint: storage that can hold a larger volume than before.
func volumeCapacityHint(_ *cluster.Pod, ch Change) Hint {
	old, now := versions[*storagev1.CSIStorageCapacity](ch)
	if old == nil {
		return QueueHint
	}
	was, is := volumeLimit(old), volumeLimit(now)
	if is != nil && (was == nil || is.Value() > was.Value()) {
		return QueueHint
	}
	return SkipHint
}
