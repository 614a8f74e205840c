// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/internal/nodematch"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

const (
	zone, region         = v1.LabelTopologyZone, v1.LabelTopologyRegion
	betaZone, betaRegion = v1.LabelFailureDomainBetaZone, v1.LabelFailureDomainBetaRegion
	elsewhere            = "!node(s) had no available volume zone"
)

// Which nodes are where a volume is. Mutants: zone-one-value, zone-unlabelled-rejected, zone-no-heir, zone-resolvable,
// zone-column-heir-only.
func TestVolumeZoneFilters(t *testing.T) {
	for _, story := range []struct {
		name   string
		volume *v1.PersistentVolume
		node   *v1.Node
		fits   bool
	}{
		{"a volume that is everywhere", volume("pv", disk), plugintest.Node("n", plugintest.Labels(zone, "a")), true},
		{"the same zone", volume("pv", disk, zone, "a"), plugintest.Node("n", plugintest.Labels(zone, "a")), true},
		{"another zone", volume("pv", disk, zone, "a"), plugintest.Node("n", plugintest.Labels(zone, "b")), false},
		{"one of its zones", volume("pv", disk, zone, "a__b"), plugintest.Node("n", plugintest.Labels(zone, "b")), true},
		{"none of its zones", volume("pv", disk, zone, "a__b"), plugintest.Node("n", plugintest.Labels(zone, "c")), false},
		{"zones with spaces", volume("pv", disk, zone, "a__ b "), plugintest.Node("n", plugintest.Labels(zone, "b")), true},
		{"an empty zone in the list", volume("pv", disk, zone, "a__"), plugintest.Node("n", plugintest.Labels(zone, "b")), true},
		{"an empty zone", volume("pv", disk, zone, ""), plugintest.Node("n", plugintest.Labels(zone, "b")), true},
		{"one underscore is part of a name", volume("pv", disk, zone, "a_b"), plugintest.Node("n", plugintest.Labels(zone, "a")), false},
		{"the zone fits, the region does not", volume("pv", disk, zone, "a", region, "r"), plugintest.Node("n", plugintest.Labels(zone, "a", region, "q")), false},
		{"a node without labels", volume("pv", disk, zone, "a"), plugintest.Node("n"), true},
		{"a node with another of the labels", volume("pv", disk, zone, "a"), plugintest.Node("n", plugintest.Labels(region, "r")), false},
		{"a node with a label that does not matter", volume("pv", disk, zone, "a"), plugintest.Node("n", plugintest.Labels("zone", "b")), true},
		{"beta labels on both", volume("pv", disk, betaZone, "a"), plugintest.Node("n", plugintest.Labels(betaZone, "a")), true},
		{"a beta label, and a node with its heir", volume("pv", disk, betaZone, "a"), plugintest.Node("n", plugintest.Labels(zone, "a")), true},
		{"a beta label, and a node elsewhere by its heir", volume("pv", disk, betaRegion, "a"), plugintest.Node("n", plugintest.Labels(region, "b")), false},
		{"a beta label that the node has otherwise", volume("pv", disk, betaZone, "a"), plugintest.Node("n", plugintest.Labels(betaZone, "b", zone, "a")), false},
		{"a new label, and a node with the beta one", volume("pv", disk, zone, "a"), plugintest.Node("n", plugintest.Labels(betaZone, "a")), false},
	} {
		t.Run(story.name, func(t *testing.T) {
			want := elsewhere
			if story.fits {
				want = ""
			}
			w := plugintest.NewCluster().With(story.node, storageClaim("c", "pv"), story.volume)
			if got := w.Verdict(t, VolumeZone{}, plugintest.Pod("p", mountsClaims("c")), "n"); got != want {
				t.Errorf("one row: got %q, want %q", got, want)
			}
			for i := range nodematch.LongRange { // from here on the column form works on bitmaps
				w.With(plugintest.Node(plugintest.NodeName(int(i))))
			}
			if got := w.Verdict(t, VolumeZone{}, plugintest.Pod("p", mountsClaims("c")), "n"); got != want {
				t.Errorf("many rows: got %q, want %q", got, want)
			}
		})
	}
}

// Claims that lead to no volume. Mutant: zone-unbound-waits.
func TestVolumeZoneFollowsClaims(t *testing.T) {
	w := plugintest.NewCluster().With(plugintest.Node("n", plugintest.Labels(zone, "b")),
		storageClass("now", disk, storagev1.VolumeBindingImmediate), storageClass("later", disk, storagev1.VolumeBindingWaitForFirstConsumer),
		storageClass("unset", disk, ""),
		storageClaim("bound", "pv"), volume("pv", disk, zone, "a"), storageClaim("lost", "gone"), storageClaim("none", ""),
		storageClaim("now", "", ofClass("now")), storageClaim("later", "", ofClass("later")), storageClaim("unset", "", ofClass("unset")),
		storageClaim("classless", "", ofClass("gone")))
	for _, story := range []struct{ name, claim, want string }{
		{"bound", "bound", elsewhere},
		{"bound to a volume that is gone", "lost", `!persistentvolume "gone" not found`},
		{"no such claim", "gone", `!persistentvolumeclaim "gone" not found`},
		{"a claim without a name", "", "!PersistentVolumeClaim had no name"},
		{"neither volume nor class", "none", "!PersistentVolumeClaim had no pv name and storageClass name"},
		{"a class that does not exist", "classless", `!storageclass.storage.k8s.io "gone" not found`},
		{"a class that does not say when", "unset", `!VolumeBindingMode not set for StorageClass "unset"`},
		{"bound at once, but not yet", "now", "!PersistentVolume had no name"},
		{"bound when the pod is placed", "later", ""},
	} {
		if got := w.Verdict(t, VolumeZone{}, plugintest.Pod("p", mountsClaims(story.claim)), "n"); got != story.want {
			t.Errorf("%s: got %q, want %q", story.name, got, story.want)
		}
	}
	if got := w.Verdict(t, VolumeZone{}, plugintest.Pod("p", mountsEphemeral), "n"); got != "" {
		t.Errorf("a generic ephemeral volume is not looked at: got %q", got)
	}
	if got := w.Verdict(t, VolumeZone{}, plugintest.Pod("p", mountsClaims("later", "bound")), "n"); got != elsewhere {
		t.Errorf("one waits, one is bound: got %q", got)
	}
}

// Mutants: zone-hint-any-class, zone-hint-any-claim, zone-hint-any-volume.
func TestVolumeZoneWakes(t *testing.T) {
	waiting := convert.NewIntake().Pod(plugintest.Pod("waiting", mountsClaims("one"), mountsEphemeral))
	classAdded, nodeEvent := plugin.Event{Resource: plugin.StorageClassObject, Action: plugin.Add}, plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add | plugin.UpdateNodeLabel}
	claimEvent, volumeEvent := plugin.Event{Resource: plugin.ClaimObject, Action: plugin.Add | plugin.Update}, plugin.Event{Resource: plugin.VolumeObject, Action: plugin.Add | plugin.Update}
	updated := func(before, after *v1.PersistentVolume) plugin.Change {
		return plugin.Change{OldObject: before, NewObject: after}
	}
	claimUpdate, volumeUpdate := plugin.Event{Resource: plugin.ClaimObject, Action: plugin.Update}, plugin.Event{Resource: plugin.VolumeObject, Action: plugin.Update}
	plugintest.CheckHints(t, VolumeZone{}, waiting, []plugintest.HintCase{
		{Name: "a class that waits", Event: classAdded, Change: plugin.Change{NewObject: storageClass("c", disk, storagev1.VolumeBindingWaitForFirstConsumer)}, Want: plugin.QueueHint},
		{Name: "a class that does not", Event: classAdded, Change: plugin.Change{NewObject: storageClass("c", disk, storagev1.VolumeBindingImmediate)}, Want: plugin.SkipHint},
		{Name: "a class that does not say", Event: classAdded, Change: plugin.Change{NewObject: storageClass("c", disk, "")}, Want: plugin.SkipHint},
		{Name: "a node comes", Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}, Change: plugin.Change{}, Want: plugin.QueueHint},
		{Name: "a node's labels change", Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.UpdateNodeLabel}, Change: plugin.Change{}, Want: plugin.QueueHint},
		{Name: "the claim comes", Event: plugin.Event{Resource: plugin.ClaimObject, Action: plugin.Add}, Change: plugin.Change{NewObject: storageClaim("one", "")}, Want: plugin.QueueHint},
		{Name: "the claim is bound", Event: claimUpdate, Change: plugin.Change{OldObject: storageClaim("one", ""), NewObject: storageClaim("one", "pv")}, Want: plugin.QueueHint},
		{Name: "another claim is bound", Event: claimUpdate, Change: plugin.Change{OldObject: storageClaim("two", ""), NewObject: storageClaim("two", "pv")}, Want: plugin.SkipHint},
		{Name: "that of an ephemeral volume", Event: claimUpdate, Change: plugin.Change{OldObject: storageClaim("waiting-v1", ""), NewObject: storageClaim("waiting-v1", "pv")}, Want: plugin.SkipHint},
		{Name: "a volume comes", Event: plugin.Event{Resource: plugin.VolumeObject, Action: plugin.Add}, Change: plugin.Change{NewObject: volume("pv", disk)}, Want: plugin.QueueHint},
		{Name: "a volume moves", Event: volumeUpdate, Change: updated(volume("pv", disk, zone, "a"), volume("pv", disk, zone, "b")), Want: plugin.QueueHint},
		{Name: "a volume spreads", Event: volumeUpdate, Change: updated(volume("pv", disk, zone, "a"), volume("pv", disk, zone, "a__b")), Want: plugin.QueueHint},
		{Name: "its zones change places", Event: volumeUpdate, Change: updated(volume("pv", disk, zone, "b__a"), volume("pv", disk, zone, "a__b__a")), Want: plugin.SkipHint},
		{Name: "another label changes", Event: volumeUpdate, Change: updated(volume("pv", disk, zone, "a"), volume("pv", disk, zone, "a", "x", "y")), Want: plugin.SkipHint},
	})
	plugintest.CheckEvents(t, VolumeZone{}, classAdded, nodeEvent, claimEvent, volumeEvent)
}
