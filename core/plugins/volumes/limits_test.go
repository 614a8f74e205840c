// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

const (
	full = "node(s) exceed max volume count"
	disk = "disk.example.com" // a CSI driver
	net  = "net.example.com"  // another
)

func mountsFile(p *v1.Pod) {
	mounts(v1.VolumeSource{AzureFile: &v1.AzureFileVolumeSource{ShareName: "share"}})(p)
}

// limitWorld has claims c0 to c3 with volumes of a driver, d0 with one of another driver, and a node with some of them.
func limitWorld(limit int, mounted ...string) *plugintest.Cluster {
	w := plugintest.NewCluster().With(plugintest.Node("n"), plugintest.Node("bare"), csiNode("n", disk, limit, net, 1, ebsDriver, 1, fileDriver, 0))
	for _, name := range []string{"c0", "c1", "c2", "c3"} {
		w.With(storageClaim(name, "pv-"+name), volume("pv-"+name, disk))
	}
	w.With(storageClaim("d0", "pv-d0"), volume("pv-d0", net))
	if len(mounted) != 0 {
		w.With(plugintest.Pod("there", mountsClaims(mounted...), plugintest.OnNode("n")))
	}
	return w
}

// What counts towards a driver's limit. Mutants: limits-column-blind, limits-shared-twice, limits-no-attachments,
// limits-attached-twice, limits-all-drivers.
func TestNodeVolumeLimitsCounts(t *testing.T) {
	for _, story := range []struct {
		name  string
		world *plugintest.Cluster
		pod   *v1.Pod
		want  string
	}{
		{"the last place", limitWorld(2, "c0"), plugintest.Pod("p", mountsClaims("c1")), ""},
		{"one too many", limitWorld(2, "c0", "c1"), plugintest.Pod("p", mountsClaims("c2")), full},
		{"two for one place", limitWorld(2, "c0"), plugintest.Pod("p", mountsClaims("c1", "c2")), full},
		{"a driver that can attach none", limitWorld(0), plugintest.Pod("p", mountsClaims("c0")), full},
		{"a volume that is there already", limitWorld(2, "c0", "c1"), plugintest.Pod("p", mountsClaims("c0")), ""},
		{"one that is there and one that is not", limitWorld(2, "c0", "c1"), plugintest.Pod("p", mountsClaims("c0", "c2")), full},
		{"one claim twice", limitWorld(1), plugintest.Pod("p", mountsClaims("c0", "c0")), ""},
		{"a limit that is exceeded, and nothing new", limitWorld(1, "c0", "c1"), plugintest.Pod("p", mountsClaims("c0")), ""},
		{"another driver's volumes do not count", limitWorld(2, "c0", "d0"), plugintest.Pod("p", mountsClaims("c1")), ""},
		{"each driver has its limit", limitWorld(9, "c0", "d0"), plugintest.Pod("p", mountsClaims("c1"), mountsClaims("d1")),
			"!looking up PVC ns/d1: persistentvolumeclaim \"d1\" not found"},
		{"a driver without a limit", limitWorld(-1, "c0", "c1"), plugintest.Pod("p", mountsClaims("c2")), ""},
		{"no volumes", limitWorld(0), plugintest.Pod("p"), ""},
		{"attached without a pod", limitWorld(2, "c0").With(attachment("a", "n", disk, "pv-c1")), plugintest.Pod("p", mountsClaims("c2")), full},
		{"attached for its pod", limitWorld(2, "c0").With(attachment("a", "n", disk, "pv-c0")), plugintest.Pod("p", mountsClaims("c2")), ""},
		{"attached twice", limitWorld(2).With(attachment("a", "n", disk, "pv-c0"), attachment("b", "n", disk, "pv-c0")), plugintest.Pod("p", mountsClaims("c2")), ""},
		{"attached already, not in use: counts as both", limitWorld(1).With(attachment("a", "n", disk, "pv-c0")), plugintest.Pod("p", mountsClaims("c0")), full},
		{"attached elsewhere", limitWorld(1).With(attachment("a", "m", disk, "pv-c0")), plugintest.Pod("p", mountsClaims("c0")), ""},
		{"attached by another driver", limitWorld(1).With(attachment("a", "n", net, "pv-c0")), plugintest.Pod("p", mountsClaims("c1")), ""},
		{"an attachment of nobody", limitWorld(1).With(attachment("a", "n", "", "pv-c0")), plugintest.Pod("p", mountsClaims("c1")), ""},
		{"an attachment of an inline volume", limitWorld(1).With(attachment("a", "n", disk, "")), plugintest.Pod("p", mountsClaims("c1")), ""},
		{"an attachment of a volume that is gone", limitWorld(1).With(attachment("a", "n", disk, "pv-gone")), plugintest.Pod("p", mountsClaims("c1")), ""},
		{"an attachment of a local volume", limitWorld(1).With(volume("local", ""), attachment("a", "n", disk, "local")), plugintest.Pod("p", mountsClaims("c1")), ""},
		{"a claim of a pod there that is gone", limitWorld(2, "c0", "gone"), plugintest.Pod("p", mountsClaims("c1")), ""},
	} {
		t.Run(story.name, func(t *testing.T) {
			pl := NewNodeVolumeLimits(fakeMigration{})
			if got := story.world.Verdict(t, pl, story.pod, "n"); got != story.want {
				t.Errorf("got %q, want %q", got, story.want)
			}
			want := story.want
			if want == full {
				want = "" // what fits there is unknown
			}
			if got := story.world.Verdict(t, pl, story.pod, "bare"); got != want {
				t.Errorf("on a node without CSINode: got %q, want %q", got, want)
			}
		})
	}
}

// Claims that are not bound yet, and those of generic ephemeral volumes, count too. Mutants: limits-bound-only,
// limits-no-ephemeral, limits-any-owner, limits-special-free.
func TestNodeVolumeLimitsCountsPromises(t *testing.T) {
	later := func(name string, o ...func(*v1.PersistentVolumeClaim)) *v1.PersistentVolumeClaim {
		return storageClaim(name, "", append(o, ofClass("slow"))...)
	}
	base := func(limit int, mounted ...string) *plugintest.Cluster {
		return limitWorld(limit, mounted...).With(storageClass("slow", disk, storagev1.VolumeBindingWaitForFirstConsumer),
			later("w0"), later("w1"), later("p-v0", ownedBy("uid-p")), later("q-v0", ownedBy("uid-other")), later("r-v0"))
	}
	notOwner := "PVC ns/q-v0 was not created for pod ns/q (pod is not owner)"
	for _, story := range []struct {
		name  string
		world *plugintest.Cluster
		pod   *v1.Pod
		want  string
	}{
		{"an unbound claim takes a place", base(1, "c0"), plugintest.Pod("p", mountsClaims("w0")), full},
		{"the unbound claim of a pod there", base(1, "w0"), plugintest.Pod("p", mountsClaims("c0")), full},
		{"one unbound claim twice", base(1, "w0"), plugintest.Pod("p", mountsClaims("w0")), ""},
		{"two unbound claims", base(1, "w0"), plugintest.Pod("p", mountsClaims("w1")), full},
		{"a claim without a class", base(0).With(storageClaim("none", "")), plugintest.Pod("p", mountsClaims("none")), ""},
		{"a class that does not exist", base(0).With(storageClaim("none", "", ofClass("gone"))), plugintest.Pod("p", mountsClaims("none")), ""},
		{"the class as an annotation", base(0).With(storageClaim("beta", "", ofClass("gone"), func(c *v1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{v1.BetaStorageClassAnnotation: "slow"}
		})), plugintest.Pod("p", mountsClaims("beta")), full},
		{"a volume that is gone falls back to the class", base(0).With(storageClaim("lost", "pv-lost", ofClass("slow"))), plugintest.Pod("p", mountsClaims("lost")), full},
		{"an ephemeral volume", base(1, "c0"), plugintest.Pod("p", mountsEphemeral), full},
		{"an ephemeral volume fits", base(1), plugintest.Pod("p", mountsEphemeral), ""},
		{"its claim is somebody else's", base(9), plugintest.Pod("q", mountsEphemeral), "error: " + notOwner},
		{"its claim is nobody's", base(9), plugintest.Pod("r", mountsEphemeral), "error: PVC ns/r-v0 was not created for pod ns/r (pod is not owner)"},
		{"its claim does not exist yet", base(9), plugintest.Pod("s", mountsEphemeral), `!looking up PVC ns/s-v0: persistentvolumeclaim "s-v0" not found`},
		{"a claim without a name", base(9), plugintest.Pod("p", mountsClaims("")), "error: PersistentVolumeClaim had no name"},
		{"a pod there whose claim is somebody else's", base(9).With(plugintest.Pod("q", mountsEphemeral, plugintest.OnNode("n"))), plugintest.Pod("p", mountsClaims("c0")), "error: " + notOwner},
		{"the same, and nothing to attach", base(9).With(plugintest.Pod("q", mountsEphemeral, plugintest.OnNode("n")), volume("local", ""), storageClaim("here", "local")), plugintest.Pod("p", mountsClaims("here")), ""},
		{"a pod there with a claim without a name", base(9, ""), plugintest.Pod("p", mountsClaims("c0")), "error: PersistentVolumeClaim had no name"},
	} {
		t.Run(story.name, func(t *testing.T) {
			if got := story.world.Verdict(t, NewNodeVolumeLimits(nil), story.pod, "n"); got != story.want {
				t.Errorf("got %q, want %q", got, story.want)
			}
		})
	}
}

// TestNodeVolumeLimitsNeedTheDriver: a node without a driver whose CSIDriver asks for that does not get its volumes.
func TestNodeVolumeLimitsNeedTheDriver(t *testing.T) {
	const missing = " CSI driver is not installed on the node"
	other := "other.csi"
	world := func(more ...any) *plugintest.Cluster {
		return limitWorld(2).With(storageClaim("o", "pv-o"), volume("pv-o", other)).With(more...)
	}
	for name, c := range map[string]struct {
		world *plugintest.Cluster
		claim string
		node  string
		want  string
	}{
		"no CSIDriver object":           {world(), "o", "n", ""},
		"the driver does not ask":       {world(telling(other)), "o", "n", ""},
		"the driver asks":               {world(needed(other, true)), "o", "n", other + missing},
		"the driver says no":            {world(needed(other, false)), "o", "n", ""},
		"the driver is there":           {world(needed(disk, true)), "c0", "n", ""},
		"the node has no CSINode":       {world(needed(disk, true)), "c0", "bare", disk + missing},
		"another driver asks":           {world(needed(other, true)), "c0", "n", ""},
		"it is there, and it is full":   {world(needed(disk, true), plugintest.Pod("there", mountsClaims("c1", "c2"), plugintest.OnNode("n"))), "c0", "n", full},
		"no CSINode, another one needs": {world(needed(other, true)), "c0", "bare", ""},
	} {
		t.Run(name, func(t *testing.T) {
			pod := plugintest.Pod("p", mountsClaims(c.claim))
			if got := c.world.Verdict(t, NewNodeVolumeLimits(nil), pod, c.node); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// Without NeedDrivers a node may lack the driver, with a Migration or without. It catches driversAlwaysNeeded.
func TestNodeVolumeLimitsNeedNoDriver(t *testing.T) {
	w := limitWorld(2).With(storageClaim("o", "pv-o"), volume("pv-o", "other"), needed("other", true))
	pl := plugintest.Must(MakeNodeVolumeLimits(NodeVolumeLimitsArgs{}))
	for _, pl := range []plugin.Filter{pl, pl.WithMigration(fakeMigration{}).(plugin.Filter)} {
		for _, node := range []string{"n", "bare"} {
			if got := w.Verdict(t, pl, plugintest.Pod("p", mountsClaims("o")), node); got != "" {
				t.Errorf("on %s: got %q", node, got)
			}
		}
	}
}

// needed is a CSI driver that a node must have, or need not.
func needed(name string, must bool) *storagev1.CSIDriver {
	return &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: storagev1.CSIDriverSpec{PreventPodSchedulingIfMissing: &must}}
}

// Volumes of in-tree kinds count for the drivers that took over. Mutant: limits-every-plugin.
func TestNodeVolumeLimitsCountsMigratedVolumes(t *testing.T) {
	base := func(there ...plugintest.PodOption) *plugintest.Cluster {
		w := limitWorld(9).With(
			storageClass("ebs", ebsPlugin, storagev1.VolumeBindingImmediate), storageClass("file", filePlugin, ""),
			storageClaim("old", "pv-old"), inTree(volume("pv-old", ""), v1.PersistentVolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol"}}),
			storageClaim("bad", "pv-bad"), inTree(volume("pv-bad", ""), v1.PersistentVolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "bad"}}),
			storageClaim("share", "pv-share"), inTree(volume("pv-share", ""), v1.PersistentVolumeSource{AzureFile: &v1.AzureFilePersistentVolumeSource{}}),
			storageClaim("later", "", ofClass("ebs")), storageClaim("files", "", ofClass("file")))
		return w.With(plugintest.Pod("there", append(there, plugintest.OnNode("n"))...))
	}
	for _, story := range []struct {
		name  string
		world *plugintest.Cluster
		pod   *v1.Pod
		want  string
	}{
		{"an inline disk takes the last place", base(), plugintest.Pod("p", mountsEBS("vol", false)), ""},
		{"two inline disks", base(mountsEBS("vol", false)), plugintest.Pod("p", mountsEBS("other", false)), full},
		{"one inline disk twice", base(mountsEBS("vol", false)), plugintest.Pod("p", mountsEBS("vol", false)), ""},
		{"the same disk by a claim", base(mountsEBS("vol", false)), plugintest.Pod("p", mountsClaims("old")), ""},
		{"another disk by a claim", base(mountsEBS("other", false)), plugintest.Pod("p", mountsClaims("old")), full},
		{"a claim that the driver will serve", base(mountsEBS("vol", false)), plugintest.Pod("p", mountsClaims("later")), full},
		{"an inline disk that cannot be read", base(), plugintest.Pod("p", mountsEBS("bad", false)), "error: converting volume(v0) from inline to csi: no such disk"},
		{"a volume that cannot be read is not counted", base(mountsEBS("vol", false)), plugintest.Pod("p", mountsClaims("bad")), ""},
		{"an inline disk there that cannot be read", base(mountsEBS("bad", false)), plugintest.Pod("p", mountsEBS("vol", false)), "error: converting volume(v0) from inline to csi: no such disk"},
		{"a share is not counted", base(), plugintest.Pod("p", mountsFile), ""},
		{"nor one by a claim", base(), plugintest.Pod("p", mountsClaims("share")), ""},
		{"nor one to come", base(), plugintest.Pod("p", mountsClaims("files")), ""},
	} {
		t.Run(story.name, func(t *testing.T) {
			pl := NewNodeVolumeLimits(nil).WithMigration(fakeMigration{}).(*NodeVolumeLimits)
			if got := story.world.Verdict(t, pl, story.pod, "n"); got != story.want {
				t.Errorf("got %q, want %q", got, story.want)
			}
			if got := story.world.Verdict(t, pl, story.pod, "bare"); got != "" {
				t.Errorf("on a node without CSINode, where nothing has migrated: got %q", got)
			}
		})
	}
	if got := base(mountsEBS("vol", false)).Verdict(t, NewNodeVolumeLimits(nil), plugintest.Pod("p", mountsEBS("other", false)), "n"); got != "" {
		t.Errorf("without a Migration: got %q", got)
	}
}

// What a driver can attach is read anew when a CSINode changes, or a node. Mutant of the column: keep the rows.
func TestNodeVolumeLimitsFollowsCSINodes(t *testing.T) {
	w, pl, p := limitWorld(1, "c0"), NewNodeVolumeLimits(nil), plugintest.Pod("p", mountsClaims("c1"))
	ask := func(what, name, want string) {
		t.Helper()
		if got := w.Verdict(t, pl, p, name); got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	ask("at first", "n", full)
	w.With(csiNode("n", disk, 2))
	ask("the driver can take more", "n", "")
	w.With(csiNode("late", disk, 0))
	ask("an object without its node", "n", "")
	w.With(plugintest.Node("late"))
	ask("its node comes", "late", full)
	w.Store.DeleteObject(cluster.KindCSINode, cluster.ObjectKey{Name: "late"})
	ask("and loses it", "late", "")
}

// Mutants: limits-hint-any-pod, limits-hint-any-update, limits-hint-any-attacher.
func TestNodeVolumeLimitsWakes(t *testing.T) {
	in, pl := convert.NewIntake(), NewNodeVolumeLimits(fakeMigration{})
	gone := func(options ...plugintest.PodOption) plugin.Change {
		return plugin.Change{OldPod: in.Pod(plugintest.Pod("gone", options...))}
	}
	update := func(before, after *storagev1.CSINode) plugin.Change {
		return plugin.Change{OldObject: before, NewObject: after}
	}
	deleted, updated := plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Delete}, plugin.Event{Resource: plugin.CSINodeObject, Action: plugin.Update}
	added, detached := plugin.Event{Resource: plugin.ClaimObject, Action: plugin.Add}, plugin.Event{Resource: plugin.AttachmentObject, Action: plugin.Delete}
	waiting := in.Pod(plugintest.Pod("waiting", mountsClaims("one"), mountsEphemeral))
	plugintest.CheckHints(t, pl, waiting, []plugintest.HintCase{
		{Name: "a CSINode comes", Event: plugin.Event{Resource: plugin.CSINodeObject, Action: plugin.Add}, Change: plugin.Change{}, Want: plugin.QueueHint},
		{Name: "a limit is raised", Event: updated, Change: update(csiNode("n", disk, 1), csiNode("n", disk, 2)), Want: plugin.QueueHint},
		{Name: "a limit is lowered", Event: updated, Change: update(csiNode("n", disk, 2), csiNode("n", disk, 1)), Want: plugin.SkipHint},
		{Name: "a limit stays", Event: updated, Change: update(csiNode("n", disk, 2), csiNode("n", disk, 2)), Want: plugin.SkipHint},
		{Name: "a driver comes", Event: updated, Change: update(csiNode("n"), csiNode("n", disk, 2)), Want: plugin.QueueHint},
		{Name: "a driver without a limit comes", Event: updated, Change: update(csiNode("n"), csiNode("n", disk, -1)), Want: plugin.SkipHint},
		{Name: "a limit is lifted", Event: updated, Change: update(csiNode("n", disk, 2), csiNode("n", disk, -1)), Want: plugin.SkipHint},
		{Name: "a pod with a claim goes", Event: deleted, Change: gone(plugintest.OnNode("n"), mountsClaims("c")), Want: plugin.QueueHint},
		{Name: "a pod with an ephemeral volume goes", Event: deleted, Change: gone(plugintest.OnNode("n"), mountsEphemeral), Want: plugin.QueueHint},
		{Name: "a pod with an in-tree disk goes", Event: deleted, Change: gone(plugintest.OnNode("n"), mountsEBS("vol", false)), Want: plugin.QueueHint},
		{Name: "a pod with a GCE disk, of which nobody knows", Event: deleted, Change: gone(plugintest.OnNode("n"), mountsGCE("pd", false)), Want: plugin.SkipHint},
		{Name: "a pod without volumes goes", Event: deleted, Change: gone(plugintest.OnNode("n")), Want: plugin.SkipHint},
		{Name: "a pod that was nowhere goes", Event: deleted, Change: gone(mountsClaims("c")), Want: plugin.SkipHint},
		{Name: "a pod that was nominated goes", Event: deleted, Change: gone(plugintest.Nominated("n"), mountsClaims("c")), Want: plugin.QueueHint},
		{Name: "the claim comes", Event: added, Change: plugin.Change{NewObject: storageClaim("one", "")}, Want: plugin.QueueHint},
		{Name: "that of the ephemeral volume", Event: added, Change: plugin.Change{NewObject: storageClaim("waiting-v1", "")}, Want: plugin.QueueHint},
		{Name: "another claim", Event: added, Change: plugin.Change{NewObject: storageClaim("two", "")}, Want: plugin.SkipHint},
		{Name: "a volume is detached", Event: detached, Change: plugin.Change{OldObject: attachment("a", "n", net, "pv")}, Want: plugin.QueueHint},
	})
	plugintest.CheckEvents(t, pl, plugin.Event{Resource: plugin.CSINodeObject, Action: plugin.Add}, plugin.Event{Resource: plugin.CSINodeObject, Action: plugin.Update}, plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Delete}, added, detached)
	plugintest.CheckHints(t, pl, in.Pod(plugintest.Pod("inline", mountsEBS("vol", false))), []plugintest.HintCase{
		{Name: "its driver detaches", Event: detached, Change: plugin.Change{OldObject: attachment("a", "n", ebsDriver, "pv")}, Want: plugin.QueueHint},
		{Name: "another driver detaches", Event: detached, Change: plugin.Change{OldObject: attachment("a", "n", net, "pv")}, Want: plugin.SkipHint},
	})
	plugintest.CheckHints(t, pl, in.Pod(plugintest.Pod("broken", mountsEBS("bad", false))), []plugintest.HintCase{
		{Name: "a disk that cannot be read", Event: detached, Change: plugin.Change{OldObject: attachment("a", "n", net, "pv")}, Want: plugin.QueueHint},
	})
	plugintest.CheckHints(t, pl, in.Pod(plugintest.Pod("ephemeral", mountsEphemeral)), []plugintest.HintCase{
		{Name: "an ephemeral volume alone", Event: detached, Change: plugin.Change{OldObject: attachment("a", "n", disk, "pv")}, Want: plugin.SkipHint},
	})
}
