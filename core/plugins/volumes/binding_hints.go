// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
)

// Wakes on all that binds volumes, makes them, says where they can be, or lets a node come into reach.
func (*VolumeBinding) Wakes() []plugin.Wake {
	return []plugin.Wake{
		{Event: plugin.Event{Resource: plugin.StorageClassObject, Action: plugin.Add | plugin.Update},
			Hint: volumeClassHint},
		{Event: plugin.Event{Resource: plugin.ClaimObject, Action: plugin.Add | plugin.Update}, Hint: volumeClaimHint},
		{Event: plugin.Event{Resource: plugin.VolumeObject, Action: plugin.Add | plugin.Update}},
		{Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add | plugin.UpdateNodeLabel}},
		{Event: plugin.Event{Resource: plugin.CSINodeObject, Action: plugin.Add | plugin.Update},
			Hint: volumeCSINodeHint},
		{Event: plugin.Event{Resource: plugin.CSIDriverObject, Action: plugin.Update}, Hint: volumeDriverHint},
		{Event: plugin.Event{Resource: plugin.CapacityObject, Action: plugin.Add | plugin.Update},
			Hint: volumeCapacityHint},
	}
}

// versions are the objects of a change; old is nil for a new object.
func versions[T cluster.Object](ch plugin.Change) (old, now T) {
	old, _ = ch.OldObject.(T)
	now, _ = ch.NewObject.(T)
	return old, now
}

// volumeClassHint: of a class that exists only the allowed topologies can change to any effect.
func volumeClassHint(_ *cluster.Pod, ch plugin.Change) plugin.Hint {
	old, now := versions[*storagev1.StorageClass](ch)
	if old == nil || !equality.Semantic.DeepEqual(old.AllowedTopologies, now.AllowedTopologies) {
		return plugin.QueueHint
	}
	return plugin.SkipHint
}

// volumeClaimHint: any change of one of the pod's own claims.
func volumeClaimHint(p *cluster.Pod, ch plugin.Change) plugin.Hint {
	_, now := versions[*v1.PersistentVolumeClaim](ch)
	if p.Namespace != now.Namespace {
		return plugin.SkipHint
	}
	for i := range p.Spec.Volumes {
		vol := &p.Spec.Volumes[i]
		if name, _ := claimName(p, vol); hasClaim(vol) && name == now.Name {
			return plugin.QueueHint
		}
	}
	return plugin.SkipHint
}

// volumeCSINodeHint: on which nodes a volume counts in its CSI form.
func volumeCSINodeHint(_ *cluster.Pod, ch plugin.Change) plugin.Hint {
	old, now := versions[*storagev1.CSINode](ch)
	const key = v1.MigratedPluginsAnnotationKey
	if old == nil || old.Annotations[key] != now.Annotations[key] {
		return plugin.QueueHint
	}
	return plugin.SkipHint
}

// volumeDriverHint: a driver that stops telling its capacity. Only inline CSI volumes are looked at, as upstream does,
// though it is claims whose capacity is checked.
func volumeDriverHint(p *cluster.Pod, ch plugin.Change) plugin.Hint {
	old, now := versions[*storagev1.CSIDriver](ch)
	for i := range p.Spec.Volumes {
		csi := p.Spec.Volumes[i].CSI
		if csi != nil && csi.Driver == now.Name && reportsCapacity(old) && !reportsCapacity(now) {
			return plugin.QueueHint
		}
	}
	return plugin.SkipHint
}

func reportsCapacity(d *storagev1.CSIDriver) bool {
	return d != nil && d.Spec.StorageCapacity != nil && *d.Spec.StorageCapacity
}

// volumeCapacityHint: storage that can hold a larger volume than before.
func volumeCapacityHint(_ *cluster.Pod, ch plugin.Change) plugin.Hint {
	old, now := versions[*storagev1.CSIStorageCapacity](ch)
	if old == nil {
		return plugin.QueueHint
	}
	was, is := volumeLimit(old), volumeLimit(now)
	if is != nil && (was == nil || is.Value() > was.Value()) {
		return plugin.QueueHint
	}
	return plugin.SkipHint
}
