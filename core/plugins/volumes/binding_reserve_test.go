// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"fmt"
	"slices"
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
	"github.com/kumiki-scheduler/kumiki/record"
)

// bindingStory is a cluster with a local volume and a class that makes volumes, and a pod with a claim for each.
type bindingStory struct {
	*plugintest.Cluster
	t  *testing.T
	pl *VolumeBinding
}

func newBindingStory(t *testing.T) *bindingStory {
	w := plugintest.NewCluster().With(plugintest.Node("n", plugintest.Labels(zone, "a")), plugintest.Node("m", plugintest.Labels(zone, "b")),
		storageClass("local", noProvisioner, later), storageClass("made", disk, later),
		offered("pv", "2Gi", "local"), wants("local", "1Gi", "local"), wants("other", "1Gi", "local"), wants("made", "1Gi", "made"))
	return &bindingStory{w, t, binding()}
}

// reserves decides for a pod with these claims, which asked to go to a node.
func (b *bindingStory) reserves(name, nodeName string, claims ...string) plugin.Reserved {
	b.Store.Begin()
	defer b.Store.Commit()
	trial := b.Store.Trial()
	defer trial.Commit()
	n, _ := trial.Snapshot().Find(nodeName)
	p := b.Intake.PendingPod(plugintest.Pod(name, mountsClaims(claims...)))
	b.pl.PrepareFilter(trial.Snapshot(), p)
	trial.Assume(p, n)
	return b.pl.Reserve(trial, p, n)
}

func (b *bindingStory) mustReserve(name, nodeName string, claims ...string) plugin.Reservation {
	b.t.Helper()
	got := b.reserves(name, nodeName, claims...)
	if got.Hold == nil {
		b.t.Fatalf("pod %s holds nothing: %+v", name, got)
	}
	return got.Hold
}

func (b *bindingStory) releases(h plugin.Reservation, written bool) {
	b.Store.Begin()
	defer b.Store.Commit()
	trial := b.Store.Trial()
	defer trial.Commit()
	if writes := h.Release(trial, written); len(writes) != 0 {
		b.t.Errorf("releasing writes %v", writes)
	}
}

// ready says in words what a reservation waits for.
func (b *bindingStory) ready(h plugin.Reservation, at record.Time) string {
	switch r := h.Ready(b.Store.Snapshot(), at); {
	case r.Err != nil:
		return r.Err.Error()
	case r.Reject != "":
		return "reject: " + r.Reject
	case r.Ready:
		return "ready"
	default:
		return fmt.Sprintf("until %d", r.Again/record.Second)
	}
}

func atVersion[T cluster.Object](obj T, version string) T {
	obj.SetResourceVersion(version)
	return obj
}

// What is written for a pod with a claim for a free volume and one for a volume to be made, and what others see
// meanwhile. Mutants: volume-not-assumed, volume-node-not-assumed.
func TestVolumesAreTakenAtOnce(t *testing.T) {
	b := newBindingStory(t)
	h := b.mustReserve("first", "n", "made", "local")
	pv := cluster.Target{Kind: cluster.KindVolume, Name: "pv", UID: "uid-pv", ResourceVersion: "1"}
	want := []cluster.Write{
		cluster.BindVolume{Target: pv, Claim: cluster.Target{Kind: cluster.KindClaim, Namespace: "ns", Name: "local", UID: "uid-local", ResourceVersion: "1"}, ByController: true},
		cluster.SelectNode{Target: cluster.Target{Kind: cluster.KindClaim, Namespace: "ns", Name: "made", UID: "uid-made", ResourceVersion: "1"}, Node: "n"},
	}
	if got := h.Writes(); !slices.Equal(got, want) {
		t.Errorf("writes\n%+v, want\n%+v", got, want)
	}
	assumed, _ := cluster.Find[*v1.PersistentVolume](b.Store.Snapshot(), "", "pv")
	wantRef := v1.ObjectReference{Kind: "PersistentVolumeClaim", APIVersion: "v1", Namespace: "ns", Name: "local", UID: "uid-local", ResourceVersion: "1"}
	if ref := assumed.Spec.ClaimRef; ref == nil || *ref != wantRef || assumed.Annotations[annBoundByController] != "yes" {
		t.Errorf("assumed %+v, %v", ref, assumed.Annotations)
	}
	if seen, _ := cluster.FindAPI[*v1.PersistentVolume](b.Store.Snapshot(), "", "pv"); seen.Spec.ClaimRef != nil || seen.Annotations != nil {
		t.Errorf("the volume of the API server was changed: %+v", seen)
	}

	if got := b.Verdict(t, b.pl, plugintest.Pod("second", mountsClaims("other")), "n"); got != nothingFound {
		t.Errorf("another claim sees the volume: %q", got)
	}
	if got := b.Verdict(t, b.pl, plugintest.Pod("second", mountsClaims("local")), "m"); got != "" {
		t.Errorf("the same claim does not find its volume: %q", got)
	}
	for on, want := range map[string]string{"n": "", "m": nothingFound} {
		if got := b.Verdict(t, b.pl, plugintest.Pod("second", mountsClaims("made")), on); got != want {
			t.Errorf("the claim that was told its node, on %s: %q, want %q", on, got, want)
		}
	}
	if got := b.reserves("second", "n", "other"); got.Hold != nil || got.Reject != nothingFound[1:] {
		t.Errorf("a decision that came too late: %+v", got)
	}
}

// A new version of an object ends what was assumed of it.
func TestNewVersionsEndAssumptions(t *testing.T) {
	b := newBindingStory(t)
	b.mustReserve("first", "n", "made", "local")
	b.With(offered("pv", "2Gi", "local"), wants("made", "1Gi", "made")) // seen again, as they were
	if got := b.Verdict(t, b.pl, plugintest.Pod("second", mountsClaims("other")), "n"); got != nothingFound {
		t.Errorf("the volume came free by being seen again: %q", got)
	}
	b.With(atVersion(offered("pv", "2Gi", "local"), "2"), atVersion(wants("made", "1Gi", "made"), "2"))
	for claim, on := range map[string]string{"other": "n", "made": "m"} {
		if got := b.Verdict(t, b.pl, plugintest.Pod("second", mountsClaims(claim)), on); got != "" {
			t.Errorf("%s, on %s: %q", claim, on, got)
		}
	}
}

// What was supposed for a pod that failed is undone. Mutant: volume-not-restored.
func TestReleasedVolumesAreFree(t *testing.T) {
	for _, written := range []bool{false, true} {
		b := newBindingStory(t)
		h := b.mustReserve("first", "n", "made", "local")
		b.releases(h, written)
		for claim, on := range map[string]string{"other": "n", "made": "m"} {
			if got := b.Verdict(t, b.pl, plugintest.Pod("second", mountsClaims(claim)), on); got != "" {
				t.Errorf("%s, on %s: %q", claim, on, got)
			}
		}
	}
	b := newBindingStory(t)
	h := b.mustReserve("first", "n", "made")
	again := b.mustReserve("second", "n", "made") // they share the claim
	b.releases(h, false)
	if got := b.Verdict(t, b.pl, plugintest.Pod("third", mountsClaims("made")), "m"); got != nothingFound {
		t.Errorf("what the second pod supposed is gone: %q", got)
	}
	b.Store.DeleteObject(cluster.KindClaim, cluster.ObjectKey{Namespace: "ns", Name: "made"})
	b.releases(again, false) // of what is gone there is nothing to take back
}

// A pod whose volumes are all bound, or that has none, holds nothing.
func TestNothingToReserve(t *testing.T) {
	b := newBindingStory(t)
	b.With(wants("bound", "1Gi", "local", hasVolume("pv")))
	for i, claims := range [][]string{nil, {"bound"}} {
		if got := b.reserves(fmt.Sprint("p", i), "n", claims...); got != (plugin.Reserved{}) {
			t.Errorf("claims %v: %+v", claims, got)
		}
	}
	if got := b.reserves("second", "n", "gone"); got != (plugin.Reserved{Reject: `persistentvolumeclaim "gone" not found`}) {
		t.Errorf("a claim that is gone: %+v", got)
	}
}

// A volume that the user gave to the claim stays the user's; one that names it fully is only checked. Mutant:
// volume-always-by-controller.
func TestVolumesBoundBeforehand(t *testing.T) {
	for _, story := range []struct {
		name         string
		pv           *v1.PersistentVolume
		byController bool
		waits        bool // for its own write to come back
	}{
		{"free", offered("pv", "2Gi", "local"), true, true},
		{"named, without UID", offered("pv", "2Gi", "local", claimedBy("local", "")), false, true},
		{"named, with UID", offered("pv", "2Gi", "local", claimedBy("local", "uid-local")), false, false},
	} {
		t.Run(story.name, func(t *testing.T) {
			b := newBindingStory(t)
			b.With(story.pv)
			h := b.mustReserve("first", "n", "local")
			if w := h.Writes()[0].(cluster.BindVolume); w.ByController != story.byController {
				t.Errorf("by controller: %v", w.ByController)
			}
			assumed, _ := cluster.Find[*v1.PersistentVolume](b.Store.Snapshot(), "", "pv")
			if _, marked := assumed.Annotations[annBoundByController]; marked != story.byController || assumed.Spec.ClaimRef.UID != "uid-local" {
				t.Errorf("assumed %+v, %v", assumed.Spec.ClaimRef, assumed.Annotations)
			}
			b.With(wants("local", "1Gi", "local", hasVolume("pv")))
			want := "ready"
			if story.waits {
				want = "until 600"
			}
			if got := b.ready(h, 0); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// The way of a pod with two claims to its volumes, when all goes well. Mutants: volume-stale-counts, volume-half-bound.
func TestVolumesBecomeReady(t *testing.T) {
	b := newBindingStory(t)
	h := b.mustReserve("first", "n", "made", "local")
	pv := offered("pv", "2Gi", "local", claimedBy("local", "uid-local"))
	mine := noteOnClaim(annSelectedNode, "n")
	for _, step := range []struct {
		what string
		seen cluster.Object
		want string
	}{
		{"nothing seen yet", nil, "until 601"},
		{"the volume, as written", atVersion(pv.DeepCopy(), "2"), "until 601"},
		{"its claim names it", wants("local", "1Gi", "local", func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv" }), "until 601"},
		{"its claim is bound", wants("local", "1Gi", "local", hasVolume("pv")), "until 601"},
		{"the other claim, as written", atVersion(wants("made", "1Gi", "made", mine), "2"), "until 601"},
		{"bound to a volume that is not seen yet", atVersion(wants("made", "1Gi", "made", mine, hasVolume("new")), "3"), "until 601"},
		{"the new volume", offered("new", "1Gi", "made", only(within(zone, "a"))), "ready"},
	} {
		if step.seen != nil {
			b.With(step.seen)
		}
		if got := b.ready(h, record.Second); got != step.want {
			t.Errorf("%s: got %q, want %q", step.what, got, step.want)
		}
	}
}

// What ends the wait. Mutants: volume-no-timeout, volume-node-gone-ignored, volume-unbind-ignored,
// volume-deselect-ignored, volume-conflict-ignored.
func TestVolumesThatFail(t *testing.T) {
	taken := func(o ...volumeOption) cluster.Object {
		return atVersion(offered("pv", "2Gi", "local", append([]volumeOption{claimedBy("local", "uid-local")}, o...)...), "2")
	}
	made := func(o ...claimOption) cluster.Object { return atVersion(wants("made", "1Gi", "made", o...), "2") }
	mine := noteOnClaim(annSelectedNode, "n")
	drop := func(k cluster.Kind, ns, name string) func(b *bindingStory) {
		return func(b *bindingStory) { b.Store.DeleteObject(k, cluster.ObjectKey{Namespace: ns, Name: name}) }
	}
	see := func(objects ...any) func(b *bindingStory) { return func(b *bindingStory) { b.With(objects...) } }
	for _, story := range []struct {
		name, claim string
		then        func(b *bindingStory)
		at          record.Time
		want        string
	}{
		{"in time", "local", see(), 600*record.Second - 1, "until 600"},
		{"too late", "local", see(), 600 * record.Second, "context deadline exceeded"},
		{"the node is gone", "local", func(b *bindingStory) { b.Store.DeleteNode("n") }, 0, `failed to get node "n": node "n" not found`},
		{"the volume is gone", "local", drop(cluster.KindVolume, "", "pv"), 0, `failed to check binding: persistentvolumes "pv" not found`},
		{"its claim is gone", "local", drop(cluster.KindClaim, "ns", "local"), 0, `failed to check binding: persistentvolumeclaims "ns/local" not found`},
		{"the volume was taken back", "local", see(atVersion(offered("pv", "2Gi", "local"), "2")), 0, `ClaimRef got reset for pv "pv"`},
		{"the volume lost the UID", "local", see(atVersion(offered("pv", "2Gi", "local", claimedBy("local", "")), "2")), 0, `ClaimRef got reset for pv "pv"`},
		{"the volume cannot be reached any more", "local", see(taken(only(within(zone, "b")))), 0, `pv "pv" node affinity doesn't match node "n": no matching NodeSelectorTerms`},
		{"the node has moved", "local", see(taken(only(within(zone, "a"))), plugintest.Node("n", plugintest.Labels(zone, "b"))), 0, `pv "pv" node affinity doesn't match node "n": no matching NodeSelectorTerms`},
		{"the claim to be served is gone", "made", drop(cluster.KindClaim, "ns", "made"), 0, `failed to check provisioning pvc: persistentvolumeclaims "ns/made" not found`},
		{"the provisioner gave up", "made", see(made(noteOnClaim("else", "x"))), 0, `provisioning failed for PVC "made"`},
		{"the provisioner gave up, and nothing is left", "made", see(made()), 0, `selectedNode annotation reset for PVC "made"`},
		{"it is being made for another node", "made", see(made(noteOnClaim(annSelectedNode, "m"))), 0, `provisioning failed for PVC "made"`},
		{"it was made elsewhere", "made", see(made(mine, hasVolume("new")), offered("new", "1Gi", "made", only(within(zone, "b")))), 0,
			`pv "new" node affinity doesn't match node "n": no matching NodeSelectorTerms`},
	} {
		t.Run(story.name, func(t *testing.T) {
			b := newBindingStory(t)
			h := b.mustReserve("first", "n", story.claim)
			if got := b.ready(h, 0); got != "until 600" {
				t.Fatalf("at first: %q", got)
			}
			story.then(b)
			want := story.want
			if want != "until 600" {
				want = "binding volumes: " + want
			}
			if got := b.ready(h, story.at); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

// With a time-out of 0 nothing that has to be waited for comes about, as upstream has it.
func TestVolumesWithoutPatience(t *testing.T) {
	b := newBindingStory(t)
	b.pl = plugintest.Must(NewVolumeBinding(VolumeBindingArgs{}))
	h := b.mustReserve("first", "n", "local")
	if got := b.ready(h, 5); got != "binding volumes: context deadline exceeded" {
		t.Errorf("got %q", got)
	}
}

// In-tree volumes are checked in their CSI form while they are bound, too.
func TestVolumesMigrateWhileBinding(t *testing.T) {
	b := newBindingStory(t)
	b.pl = binding().WithMigration(movedDisks{}).(*VolumeBinding)
	ebs := func(id string, o ...volumeOption) *v1.PersistentVolume {
		return inTree(offered("pv", "2Gi", "local", o...), v1.PersistentVolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: id}})
	}
	handsOver := csiNode("n")
	handsOver.Annotations = map[string]string{v1.MigratedPluginsAnnotationKey: ebsPlugin}
	b.With(handsOver, ebs("vol"))
	h := b.mustReserve("first", "n", "local") // free volumes are chosen by their in-tree form
	for id, want := range map[string]string{
		"vol": `binding volumes: pv "pv" node affinity doesn't match node "n": no matching NodeSelectorTerms`,
		"bad": "binding volumes: failed to translate pv to csi: could not translate pv: no such disk",
	} {
		b.With(atVersion(ebs(id, claimedBy("local", "uid-local")), "2"))
		if got := b.ready(h, 0); got != want {
			t.Errorf("%s: got %q, want %q", id, got, want)
		}
	}
}
