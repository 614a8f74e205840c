// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
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
		{"a volume that is everywhere", volume("pv", disk), node("n", label(zone, "a")), true},
		{"the same zone", volume("pv", disk, zone, "a"), node("n", label(zone, "a")), true},
		{"another zone", volume("pv", disk, zone, "a"), node("n", label(zone, "b")), false},
		{"one of its zones", volume("pv", disk, zone, "a__b"), node("n", label(zone, "b")), true},
		{"none of its zones", volume("pv", disk, zone, "a__b"), node("n", label(zone, "c")), false},
		{"zones with spaces", volume("pv", disk, zone, "a__ b "), node("n", label(zone, "b")), true},
		{"an empty zone in the list", volume("pv", disk, zone, "a__"), node("n", label(zone, "b")), true},
		{"an empty zone", volume("pv", disk, zone, ""), node("n", label(zone, "b")), true},
		{"one underscore is part of a name", volume("pv", disk, zone, "a_b"), node("n", label(zone, "a")), false},
		{"the zone fits, the region does not", volume("pv", disk, zone, "a", region, "r"), node("n", label(zone, "a", region, "q")), false},
		{"a node without labels", volume("pv", disk, zone, "a"), node("n"), true},
		{"a node with another of the labels", volume("pv", disk, zone, "a"), node("n", label(region, "r")), false},
		{"a node with a label that does not matter", volume("pv", disk, zone, "a"), node("n", label("zone", "b")), true},
		{"beta labels on both", volume("pv", disk, betaZone, "a"), node("n", label(betaZone, "a")), true},
		{"a beta label, and a node with its heir", volume("pv", disk, betaZone, "a"), node("n", label(zone, "a")), true},
		{"a beta label, and a node elsewhere by its heir", volume("pv", disk, betaRegion, "a"), node("n", label(region, "b")), false},
		{"a beta label that the node has otherwise", volume("pv", disk, betaZone, "a"), node("n", label(betaZone, "b", zone, "a")), false},
		{"a new label, and a node with the beta one", volume("pv", disk, zone, "a"), node("n", label(betaZone, "a")), false},
	} {
		t.Run(story.name, func(t *testing.T) {
			want := elsewhere
			if story.fits {
				want = ""
			}
			w := newWorld().with(story.node, storageClaim("c", "pv"), story.volume)
			if got := w.verdictOf(t, VolumeZone{}, pod("p", mountsClaims("c")), "n"); got != want {
				t.Errorf("one row: got %q, want %q", got, want)
			}
			for i := range longRange { // from here on the column form works on bitmaps
				w.with(node(nodeName(int(i))))
			}
			if got := w.verdictOf(t, VolumeZone{}, pod("p", mountsClaims("c")), "n"); got != want {
				t.Errorf("many rows: got %q, want %q", got, want)
			}
		})
	}
}

// Claims that lead to no volume. Mutant: zone-unbound-waits.
func TestVolumeZoneFollowsClaims(t *testing.T) {
	w := newWorld().with(node("n", label(zone, "b")),
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
		if got := w.verdictOf(t, VolumeZone{}, pod("p", mountsClaims(story.claim)), "n"); got != story.want {
			t.Errorf("%s: got %q, want %q", story.name, got, story.want)
		}
	}
	if got := w.verdictOf(t, VolumeZone{}, pod("p", mountsEphemeral), "n"); got != "" {
		t.Errorf("a generic ephemeral volume is not looked at: got %q", got)
	}
	if got := w.verdictOf(t, VolumeZone{}, pod("p", mountsClaims("later", "bound")), "n"); got != elsewhere {
		t.Errorf("one waits, one is bound: got %q", got)
	}
}

// Mutants: zone-hint-any-class, zone-hint-any-claim, zone-hint-any-volume.
func TestVolumeZoneWakes(t *testing.T) {
	waiting := cluster.NewIntake().Pod(pod("waiting", mountsClaims("one"), mountsEphemeral))
	classAdded, nodeEvent := Event{Resource: StorageClassObject, Action: Add}, Event{Resource: NodeObject, Action: Add | UpdateNodeLabel}
	claimEvent, volumeEvent := Event{Resource: ClaimObject, Action: Add | Update}, Event{Resource: VolumeObject, Action: Add | Update}
	updated := func(before, after *v1.PersistentVolume) Change { return Change{OldObject: before, NewObject: after} }
	claimUpdate, volumeUpdate := Event{Resource: ClaimObject, Action: Update}, Event{Resource: VolumeObject, Action: Update}
	tellHints(t, VolumeZone{}, waiting, []hintStory{
		{"a class that waits", classAdded, Change{NewObject: storageClass("c", disk, storagev1.VolumeBindingWaitForFirstConsumer)}, QueueHint},
		{"a class that does not", classAdded, Change{NewObject: storageClass("c", disk, storagev1.VolumeBindingImmediate)}, SkipHint},
		{"a class that does not say", classAdded, Change{NewObject: storageClass("c", disk, "")}, SkipHint},
		{"a node comes", Event{Resource: NodeObject, Action: Add}, Change{}, QueueHint},
		{"a node's labels change", Event{Resource: NodeObject, Action: UpdateNodeLabel}, Change{}, QueueHint},
		{"the claim comes", Event{Resource: ClaimObject, Action: Add}, Change{NewObject: storageClaim("one", "")}, QueueHint},
		{"the claim is bound", claimUpdate, Change{OldObject: storageClaim("one", ""), NewObject: storageClaim("one", "pv")}, QueueHint},
		{"another claim is bound", claimUpdate, Change{OldObject: storageClaim("two", ""), NewObject: storageClaim("two", "pv")}, SkipHint},
		{"that of an ephemeral volume", claimUpdate, Change{OldObject: storageClaim("waiting-v1", ""), NewObject: storageClaim("waiting-v1", "pv")}, SkipHint},
		{"a volume comes", Event{Resource: VolumeObject, Action: Add}, Change{NewObject: volume("pv", disk)}, QueueHint},
		{"a volume moves", volumeUpdate, updated(volume("pv", disk, zone, "a"), volume("pv", disk, zone, "b")), QueueHint},
		{"a volume spreads", volumeUpdate, updated(volume("pv", disk, zone, "a"), volume("pv", disk, zone, "a__b")), QueueHint},
		{"its zones change places", volumeUpdate, updated(volume("pv", disk, zone, "b__a"), volume("pv", disk, zone, "a__b__a")), SkipHint},
		{"another label changes", volumeUpdate, updated(volume("pv", disk, zone, "a"), volume("pv", disk, zone, "a", "x", "y")), SkipHint},
	})
	listensTo(t, VolumeZone{}, classAdded, nodeEvent, claimEvent, volumeEvent)
}
