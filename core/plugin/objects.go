// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"slices"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// ObjectReader is a custom plugin that reads objects besides pods and nodes, at any extension point. Kinds returns
// their kinds. It is called after the plugin was made, so it may depend on arguments; it is constant from then on.
//
// A scheduler watches the kinds that the plugins of its profiles read, and no others: a plugin that does not name a
// kind finds no objects of it, unless another plugin reads the kind. The kinds of the events in Wakes are watched
// without being named here. The scheduler's account needs the right to list and watch the kinds. Objects of a watched
// kind have only the fields that the default plugins read, without most labels and annotations (intake.Trim).
//
// Only changes of the kinds that have an event (ClaimObject and so on) wake rejected pods. Pods that were rejected
// because of an object of another kind, such as a Namespace, are tried again at the next event that wakes them, or at
// the latest after the timeout for unschedulable pods.
type ObjectReader interface {
	Plugin
	Kinds() []cluster.Kind
}

// KindsOf returns the kinds of objects besides pods and nodes that a custom plugin declares: those of ObjectReader, and
// those whose events Wakes names. They are sorted, each once.
func KindsOf(pl Plugin) []cluster.Kind {
	var kinds []cluster.Kind
	if r, reads := pl.(ObjectReader); reads {
		kinds = slices.Clone(r.Kinds())
	}
	if w, wakes := pl.(Waker); wakes {
		for _, wake := range w.Wakes() {
			for kind, resource := range eventResources { // order: sorted below
				if wake.Event.Resource == resource {
					kinds = append(kinds, kind)
				}
			}
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

// eventResources are the kinds whose changes wake pods (upstream: eventhandlers.go).
var eventResources = map[cluster.Kind]Resource{ // kind -> as plugins register for it
	cluster.KindClaim:         ClaimObject,
	cluster.KindVolume:        VolumeObject,
	cluster.KindStorageClass:  StorageClassObject,
	cluster.KindCSINode:       CSINodeObject,
	cluster.KindCSIDriver:     CSIDriverObject,
	cluster.KindCapacity:      CapacityObject,
	cluster.KindAttachment:    AttachmentObject,
	cluster.KindDeviceClaim:   DeviceClaimObject,
	cluster.KindResourceSlice: ResourceSliceObject,
	cluster.KindDeviceClass:   DeviceClassObject,
}

// ResourceOf returns the resource of the events about objects of a kind; ok is false if their changes wake no pods.
func ResourceOf(kind cluster.Kind) (r Resource, ok bool) {
	r, ok = eventResources[kind]
	return r, ok
}
