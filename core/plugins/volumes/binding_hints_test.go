// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
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
	event := func(r plugin.Resource, a plugin.Action) plugin.Event { return plugin.Event{Resource: r, Action: a} }
	change := func(old, now cluster.Object) plugin.Change { return plugin.Change{OldObject: old, NewObject: now} }
	pl := binding()
	waiting := plugintest.NewCluster().Intake.PendingPod(plugintest.Pod("p", mountsClaims("c"), mountsEphemeral, mounts(v1.VolumeSource{CSI: &v1.CSIVolumeSource{Driver: disk}})))
	plugintest.CheckHints(t, pl, waiting, []plugintest.HintCase{
		{Name: "a class comes", Event: event(plugin.StorageClassObject, plugin.Add), Change: change(nil, zonal), Want: plugin.QueueHint},
		{Name: "a class allows more", Event: event(plugin.StorageClassObject, plugin.Update), Change: change(zonal, allowing(zonal.DeepCopy(), zone, "b")), Want: plugin.QueueHint},
		{Name: "a class changes otherwise", Event: event(plugin.StorageClassObject, plugin.Update), Change: change(zonal, zonal.DeepCopy()), Want: plugin.SkipHint},
		{Name: "a class allows all as before", Event: event(plugin.StorageClassObject, plugin.Update), Change: change(storageClass("c", disk, later), empty), Want: plugin.SkipHint},

		{Name: "its claim comes", Event: event(plugin.ClaimObject, plugin.Add), Change: change(nil, storageClaim("c", "")), Want: plugin.QueueHint},
		{Name: "its claim changes", Event: event(plugin.ClaimObject, plugin.Update), Change: change(storageClaim("c", ""), storageClaim("c", "pv")), Want: plugin.QueueHint},
		{Name: "the claim of its ephemeral volume comes", Event: event(plugin.ClaimObject, plugin.Add), Change: change(nil, storageClaim("p-v1", "")), Want: plugin.QueueHint},
		{Name: "another claim comes", Event: event(plugin.ClaimObject, plugin.Add), Change: change(nil, storageClaim("d", "")), Want: plugin.SkipHint},
		{Name: "a claim named like its inline volume", Event: event(plugin.ClaimObject, plugin.Add), Change: change(nil, storageClaim("p-v2", "")), Want: plugin.SkipHint},
		{Name: "its claim's namesake comes", Event: event(plugin.ClaimObject, plugin.Add), Change: change(nil, elsewhere), Want: plugin.SkipHint},

		{Name: "a volume comes", Event: event(plugin.VolumeObject, plugin.Add), Change: change(nil, volume("pv", disk)), Want: plugin.QueueHint},
		{Name: "a volume changes", Event: event(plugin.VolumeObject, plugin.Update), Change: change(volume("pv", disk), volume("pv", disk)), Want: plugin.QueueHint},
		{Name: "a node comes", Event: event(plugin.NodeObject, plugin.Add), Change: plugin.Change{}, Want: plugin.QueueHint},
		{Name: "a node is labelled", Event: event(plugin.NodeObject, plugin.UpdateNodeLabel), Change: plugin.Change{}, Want: plugin.QueueHint},

		{Name: "a CSINode comes", Event: event(plugin.CSINodeObject, plugin.Add), Change: change(nil, csiNode("n")), Want: plugin.QueueHint},
		{Name: "a CSINode hands a kind over", Event: event(plugin.CSINodeObject, plugin.Update), Change: change(csiNode("n", disk, 3), handsOver), Want: plugin.QueueHint},
		{Name: "a CSINode changes otherwise", Event: event(plugin.CSINodeObject, plugin.Update), Change: change(csiNode("n", disk, 3), csiNode("n", disk, 4)), Want: plugin.SkipHint},

		{Name: "its driver stops telling", Event: event(plugin.CSIDriverObject, plugin.Update), Change: change(telling(disk), mute(disk, nil)), Want: plugin.QueueHint},
		{Name: "its driver says that it does not tell", Event: event(plugin.CSIDriverObject, plugin.Update), Change: change(telling(disk), mute(disk, &no)), Want: plugin.QueueHint},
		{Name: "its driver begins to tell", Event: event(plugin.CSIDriverObject, plugin.Update), Change: change(mute(disk, &no), telling(disk)), Want: plugin.SkipHint},
		{Name: "its driver changes otherwise", Event: event(plugin.CSIDriverObject, plugin.Update), Change: change(telling(disk), telling(disk)), Want: plugin.SkipHint},
		{Name: "another driver stops telling", Event: event(plugin.CSIDriverObject, plugin.Update), Change: change(telling(net), mute(net, nil)), Want: plugin.SkipHint},

		{Name: "room comes", Event: event(plugin.CapacityObject, plugin.Add), Change: change(nil, room("r", "c", "1Gi", nil)), Want: plugin.QueueHint},
		{Name: "room grows", Event: event(plugin.CapacityObject, plugin.Update), Change: change(room("r", "c", "1Gi", nil), room("r", "c", "2Gi", nil)), Want: plugin.QueueHint},
		{Name: "room shrinks", Event: event(plugin.CapacityObject, plugin.Update), Change: change(room("r", "c", "2Gi", nil), room("r", "c", "1Gi", nil)), Want: plugin.SkipHint},
		{Name: "room stays", Event: event(plugin.CapacityObject, plugin.Update), Change: change(room("r", "c", "2Gi", nil), room("r", "c", "2048Mi", nil)), Want: plugin.SkipHint},
		{Name: "room becomes known", Event: event(plugin.CapacityObject, plugin.Update), Change: change(room("r", "c", "", nil), room("r", "c", "1", nil)), Want: plugin.QueueHint},
		{Name: "room becomes unknown", Event: event(plugin.CapacityObject, plugin.Update), Change: change(room("r", "c", "1Gi", nil), room("r", "c", "", nil)), Want: plugin.SkipHint},
		{Name: "the largest volume shrinks while room grows", Event: event(plugin.CapacityObject, plugin.Update),
			Change: change(room("r", "c", "4Gi", nil), atMost(room("r", "c", "9Gi", nil), "3Gi")), Want: plugin.SkipHint},
	})
	plugintest.CheckEvents(t, pl, event(plugin.StorageClassObject, plugin.Add|plugin.Update), event(plugin.ClaimObject, plugin.Add|plugin.Update), event(plugin.VolumeObject, plugin.Add|plugin.Update),
		event(plugin.NodeObject, plugin.Add|plugin.UpdateNodeLabel), event(plugin.CSINodeObject, plugin.Add|plugin.Update), event(plugin.CSIDriverObject, plugin.Update), event(plugin.CapacityObject, plugin.Add|plugin.Update))
}
