// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

// Which changes wake a pod with a claim "c", an ephemeral volume and an inline volume of driver disk. Mutants:
// volume-hint-any-class, volume-hint-any-namespace, volume-hint-any-claim, volume-hint-any-csi-node,
// volume-hint-any-driver, volume-hint-shrunk.
func TestVolumeBindingHints(t *testing.T) {
	no := false
	zonal := allowing(storageClass("c", disk, later), zone, "a")
	empty := storageClass("c", disk, later)
	empty.AllowedTopologies = []v1.TopologySelectorTerm{}
	handsOver := csiNode("n", disk, 3)
	handsOver.Annotations = map[string]string{v1.MigratedPluginsAnnotationKey: ebsPlugin}
	mute := func(name string, tells *bool) *storagev1.CSIDriver {
		return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: storagev1.CSIDriverSpec{StorageCapacity: tells}}
	}
	elsewhere := storageClaim("c", "")
	elsewhere.Namespace = "else"
	event := func(r Resource, a Action) Event { return Event{Resource: r, Action: a} }
	change := func(old, now cluster.Object) Change { return Change{OldObject: old, NewObject: now} }
	pl := binding()
	waiting := newWorld().intake.PendingPod(pod("p", mountsClaims("c"), mountsEphemeral, mounts(v1.VolumeSource{CSI: &v1.CSIVolumeSource{Driver: disk}})))
	tellHints(t, pl, waiting, []hintStory{
		{"a class comes", event(StorageClassObject, Add), change(nil, zonal), QueueHint},
		{"a class allows more", event(StorageClassObject, Update), change(zonal, allowing(zonal.DeepCopy(), zone, "b")), QueueHint},
		{"a class changes otherwise", event(StorageClassObject, Update), change(zonal, zonal.DeepCopy()), SkipHint},
		{"a class allows all as before", event(StorageClassObject, Update), change(storageClass("c", disk, later), empty), SkipHint},

		{"its claim comes", event(ClaimObject, Add), change(nil, storageClaim("c", "")), QueueHint},
		{"its claim changes", event(ClaimObject, Update), change(storageClaim("c", ""), storageClaim("c", "pv")), QueueHint},
		{"the claim of its ephemeral volume comes", event(ClaimObject, Add), change(nil, storageClaim("p-v1", "")), QueueHint},
		{"another claim comes", event(ClaimObject, Add), change(nil, storageClaim("d", "")), SkipHint},
		{"a claim named like its inline volume", event(ClaimObject, Add), change(nil, storageClaim("p-v2", "")), SkipHint},
		{"its claim's namesake comes", event(ClaimObject, Add), change(nil, elsewhere), SkipHint},

		{"a volume comes", event(VolumeObject, Add), change(nil, volume("pv", disk)), QueueHint},
		{"a volume changes", event(VolumeObject, Update), change(volume("pv", disk), volume("pv", disk)), QueueHint},
		{"a node comes", event(NodeObject, Add), Change{}, QueueHint},
		{"a node is labelled", event(NodeObject, UpdateNodeLabel), Change{}, QueueHint},

		{"a CSINode comes", event(CSINodeObject, Add), change(nil, csiNode("n")), QueueHint},
		{"a CSINode hands a kind over", event(CSINodeObject, Update), change(csiNode("n", disk, 3), handsOver), QueueHint},
		{"a CSINode changes otherwise", event(CSINodeObject, Update), change(csiNode("n", disk, 3), csiNode("n", disk, 4)), SkipHint},

		{"its driver stops telling", event(CSIDriverObject, Update), change(telling(disk), mute(disk, nil)), QueueHint},
		{"its driver says that it does not tell", event(CSIDriverObject, Update), change(telling(disk), mute(disk, &no)), QueueHint},
		{"its driver begins to tell", event(CSIDriverObject, Update), change(mute(disk, &no), telling(disk)), SkipHint},
		{"its driver changes otherwise", event(CSIDriverObject, Update), change(telling(disk), telling(disk)), SkipHint},
		{"another driver stops telling", event(CSIDriverObject, Update), change(telling(net), mute(net, nil)), SkipHint},

		{"room comes", event(CapacityObject, Add), change(nil, room("r", "c", "1Gi", nil)), QueueHint},
		{"room grows", event(CapacityObject, Update), change(room("r", "c", "1Gi", nil), room("r", "c", "2Gi", nil)), QueueHint},
		{"room shrinks", event(CapacityObject, Update), change(room("r", "c", "2Gi", nil), room("r", "c", "1Gi", nil)), SkipHint},
		{"room stays", event(CapacityObject, Update), change(room("r", "c", "2Gi", nil), room("r", "c", "2048Mi", nil)), SkipHint},
		{"room becomes known", event(CapacityObject, Update), change(room("r", "c", "", nil), room("r", "c", "1", nil)), QueueHint},
		{"room becomes unknown", event(CapacityObject, Update), change(room("r", "c", "1Gi", nil), room("r", "c", "", nil)), SkipHint},
		{"the largest volume shrinks while room grows", event(CapacityObject, Update),
			change(room("r", "c", "4Gi", nil), atMost(room("r", "c", "9Gi", nil), "3Gi")), SkipHint},
	})
	listensTo(t, pl, event(StorageClassObject, Add|Update), event(ClaimObject, Add|Update), event(VolumeObject, Add|Update),
		event(NodeObject, Add|UpdateNodeLabel), event(CSINodeObject, Add|Update), event(CSIDriverObject, Update), event(CapacityObject, Add|Update))
}
