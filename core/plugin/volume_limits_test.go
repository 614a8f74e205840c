// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
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
func limitWorld(limit int, mounted ...string) *world {
	w := newWorld().with(node("n"), node("bare"), csiNode("n", disk, limit, net, 1, ebsDriver, 1, fileDriver, 0))
	for _, name := range []string{"c0", "c1", "c2", "c3"} {
		w.with(storageClaim(name, "pv-"+name), volume("pv-"+name, disk))
	}
	w.with(storageClaim("d0", "pv-d0"), volume("pv-d0", net))
	if len(mounted) != 0 {
		w.with(pod("there", mountsClaims(mounted...), onNode("n")))
	}
	return w
}

// What counts towards a driver's limit. Mutants: limits-column-blind, limits-shared-twice, limits-no-attachments,
// limits-attached-twice, limits-all-drivers.
func TestNodeVolumeLimitsCounts(t *testing.T) {
	for _, story := range []struct {
		name  string
		world *world
		pod   *v1.Pod
		want  string
	}{
		{"the last place", limitWorld(2, "c0"), pod("p", mountsClaims("c1")), ""},
		{"one too many", limitWorld(2, "c0", "c1"), pod("p", mountsClaims("c2")), full},
		{"two for one place", limitWorld(2, "c0"), pod("p", mountsClaims("c1", "c2")), full},
		{"a driver that can attach none", limitWorld(0), pod("p", mountsClaims("c0")), full},
		{"a volume that is there already", limitWorld(2, "c0", "c1"), pod("p", mountsClaims("c0")), ""},
		{"one that is there and one that is not", limitWorld(2, "c0", "c1"), pod("p", mountsClaims("c0", "c2")), full},
		{"one claim twice", limitWorld(1), pod("p", mountsClaims("c0", "c0")), ""},
		{"a limit that is exceeded, and nothing new", limitWorld(1, "c0", "c1"), pod("p", mountsClaims("c0")), ""},
		{"another driver's volumes do not count", limitWorld(2, "c0", "d0"), pod("p", mountsClaims("c1")), ""},
		{"each driver has its limit", limitWorld(9, "c0", "d0"), pod("p", mountsClaims("c1"), mountsClaims("d1")),
			"!looking up PVC ns/d1: persistentvolumeclaim \"d1\" not found"},
		{"a driver without a limit", limitWorld(-1, "c0", "c1"), pod("p", mountsClaims("c2")), ""},
		{"no volumes", limitWorld(0), pod("p"), ""},
		{"attached without a pod", limitWorld(2, "c0").with(attachment("a", "n", disk, "pv-c1")), pod("p", mountsClaims("c2")), full},
		{"attached for its pod", limitWorld(2, "c0").with(attachment("a", "n", disk, "pv-c0")), pod("p", mountsClaims("c2")), ""},
		{"attached twice", limitWorld(2).with(attachment("a", "n", disk, "pv-c0"), attachment("b", "n", disk, "pv-c0")), pod("p", mountsClaims("c2")), ""},
		{"attached already, not in use: counts as both", limitWorld(1).with(attachment("a", "n", disk, "pv-c0")), pod("p", mountsClaims("c0")), full},
		{"attached elsewhere", limitWorld(1).with(attachment("a", "m", disk, "pv-c0")), pod("p", mountsClaims("c0")), ""},
		{"attached by another driver", limitWorld(1).with(attachment("a", "n", net, "pv-c0")), pod("p", mountsClaims("c1")), ""},
		{"an attachment of nobody", limitWorld(1).with(attachment("a", "n", "", "pv-c0")), pod("p", mountsClaims("c1")), ""},
		{"an attachment of an inline volume", limitWorld(1).with(attachment("a", "n", disk, "")), pod("p", mountsClaims("c1")), ""},
		{"an attachment of a volume that is gone", limitWorld(1).with(attachment("a", "n", disk, "pv-gone")), pod("p", mountsClaims("c1")), ""},
		{"an attachment of a local volume", limitWorld(1).with(volume("local", ""), attachment("a", "n", disk, "local")), pod("p", mountsClaims("c1")), ""},
		{"a claim of a pod there that is gone", limitWorld(2, "c0", "gone"), pod("p", mountsClaims("c1")), ""},
	} {
		t.Run(story.name, func(t *testing.T) {
			pl := NewNodeVolumeLimits(fakeMigration{})
			if got := story.world.verdictOf(t, pl, story.pod, "n"); got != story.want {
				t.Errorf("got %q, want %q", got, story.want)
			}
			want := story.want
			if want == full {
				want = "" // nobody tells what fits there
			}
			if got := story.world.verdictOf(t, pl, story.pod, "bare"); got != want {
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
	base := func(limit int, mounted ...string) *world {
		return limitWorld(limit, mounted...).with(storageClass("slow", disk, storagev1.VolumeBindingWaitForFirstConsumer),
			later("w0"), later("w1"), later("p-v0", ownedBy("uid-p")), later("q-v0", ownedBy("uid-other")), later("r-v0"))
	}
	notOwner := "PVC ns/q-v0 was not created for pod ns/q (pod is not owner)"
	for _, story := range []struct {
		name  string
		world *world
		pod   *v1.Pod
		want  string
	}{
		{"an unbound claim takes a place", base(1, "c0"), pod("p", mountsClaims("w0")), full},
		{"the unbound claim of a pod there", base(1, "w0"), pod("p", mountsClaims("c0")), full},
		{"one unbound claim twice", base(1, "w0"), pod("p", mountsClaims("w0")), ""},
		{"two unbound claims", base(1, "w0"), pod("p", mountsClaims("w1")), full},
		{"a claim without a class", base(0).with(storageClaim("none", "")), pod("p", mountsClaims("none")), ""},
		{"a class that does not exist", base(0).with(storageClaim("none", "", ofClass("gone"))), pod("p", mountsClaims("none")), ""},
		{"the class as an annotation", base(0).with(storageClaim("beta", "", ofClass("gone"), func(c *v1.PersistentVolumeClaim) {
			c.Annotations = map[string]string{v1.BetaStorageClassAnnotation: "slow"}
		})), pod("p", mountsClaims("beta")), full},
		{"a volume that is gone falls back to the class", base(0).with(storageClaim("lost", "pv-lost", ofClass("slow"))), pod("p", mountsClaims("lost")), full},
		{"an ephemeral volume", base(1, "c0"), pod("p", mountsEphemeral), full},
		{"an ephemeral volume fits", base(1), pod("p", mountsEphemeral), ""},
		{"its claim is somebody else's", base(9), pod("q", mountsEphemeral), "error: " + notOwner},
		{"its claim is nobody's", base(9), pod("r", mountsEphemeral), "error: PVC ns/r-v0 was not created for pod ns/r (pod is not owner)"},
		{"its claim does not exist yet", base(9), pod("s", mountsEphemeral), `!looking up PVC ns/s-v0: persistentvolumeclaim "s-v0" not found`},
		{"a claim without a name", base(9), pod("p", mountsClaims("")), "error: PersistentVolumeClaim had no name"},
		{"a pod there whose claim is somebody else's", base(9).with(pod("q", mountsEphemeral, onNode("n"))), pod("p", mountsClaims("c0")), "error: " + notOwner},
		{"the same, and nothing to attach", base(9).with(pod("q", mountsEphemeral, onNode("n")), volume("local", ""), storageClaim("here", "local")), pod("p", mountsClaims("here")), ""},
		{"a pod there with a claim without a name", base(9, ""), pod("p", mountsClaims("c0")), "error: PersistentVolumeClaim had no name"},
	} {
		t.Run(story.name, func(t *testing.T) {
			if got := story.world.verdictOf(t, NewNodeVolumeLimits(nil), story.pod, "n"); got != story.want {
				t.Errorf("got %q, want %q", got, story.want)
			}
		})
	}
}

// Volumes of in-tree kinds count for the drivers that took over. Mutant: limits-every-plugin.
func TestNodeVolumeLimitsCountsMigratedVolumes(t *testing.T) {
	base := func(there ...podOption) *world {
		w := limitWorld(9).with(
			storageClass("ebs", ebsPlugin, storagev1.VolumeBindingImmediate), storageClass("file", filePlugin, ""),
			storageClaim("old", "pv-old"), inTree(volume("pv-old", ""), v1.PersistentVolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "vol"}}),
			storageClaim("bad", "pv-bad"), inTree(volume("pv-bad", ""), v1.PersistentVolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: "bad"}}),
			storageClaim("share", "pv-share"), inTree(volume("pv-share", ""), v1.PersistentVolumeSource{AzureFile: &v1.AzureFilePersistentVolumeSource{}}),
			storageClaim("later", "", ofClass("ebs")), storageClaim("files", "", ofClass("file")))
		return w.with(pod("there", append(there, onNode("n"))...))
	}
	for _, story := range []struct {
		name  string
		world *world
		pod   *v1.Pod
		want  string
	}{
		{"an inline disk takes the last place", base(), pod("p", mountsEBS("vol", false)), ""},
		{"two inline disks", base(mountsEBS("vol", false)), pod("p", mountsEBS("other", false)), full},
		{"one inline disk twice", base(mountsEBS("vol", false)), pod("p", mountsEBS("vol", false)), ""},
		{"the same disk by a claim", base(mountsEBS("vol", false)), pod("p", mountsClaims("old")), ""},
		{"another disk by a claim", base(mountsEBS("other", false)), pod("p", mountsClaims("old")), full},
		{"a claim that the driver will serve", base(mountsEBS("vol", false)), pod("p", mountsClaims("later")), full},
		{"an inline disk that cannot be read", base(), pod("p", mountsEBS("bad", false)), "error: converting volume(v0) from inline to csi: no such disk"},
		{"a volume that cannot be read is not counted", base(mountsEBS("vol", false)), pod("p", mountsClaims("bad")), ""},
		{"an inline disk there that cannot be read", base(mountsEBS("bad", false)), pod("p", mountsEBS("vol", false)), "error: converting volume(v0) from inline to csi: no such disk"},
		{"a share is not counted", base(), pod("p", mountsFile), ""},
		{"nor one by a claim", base(), pod("p", mountsClaims("share")), ""},
		{"nor one to come", base(), pod("p", mountsClaims("files")), ""},
	} {
		t.Run(story.name, func(t *testing.T) {
			pl := NewNodeVolumeLimits(nil).WithMigration(fakeMigration{}).(*NodeVolumeLimits)
			if got := story.world.verdictOf(t, pl, story.pod, "n"); got != story.want {
				t.Errorf("got %q, want %q", got, story.want)
			}
			if got := story.world.verdictOf(t, pl, story.pod, "bare"); got != "" {
				t.Errorf("on a node without CSINode, where nothing has migrated: got %q", got)
			}
		})
	}
	if got := base(mountsEBS("vol", false)).verdictOf(t, NewNodeVolumeLimits(nil), pod("p", mountsEBS("other", false)), "n"); got != "" {
		t.Errorf("without a Migration: got %q", got)
	}
}

// What a driver can attach is read anew when a CSINode changes, or a node. Mutant of the column: keep the rows.
func TestNodeVolumeLimitsFollowsCSINodes(t *testing.T) {
	w, pl, p := limitWorld(1, "c0"), NewNodeVolumeLimits(nil), pod("p", mountsClaims("c1"))
	ask := func(what, name, want string) {
		t.Helper()
		if got := w.verdictOf(t, pl, p, name); got != want {
			t.Errorf("%s: got %q, want %q", what, got, want)
		}
	}
	ask("at first", "n", full)
	w.with(csiNode("n", disk, 2))
	ask("the driver can take more", "n", "")
	w.with(csiNode("late", disk, 0))
	ask("an object without its node", "n", "")
	w.with(node("late"))
	ask("its node comes", "late", full)
	w.store.DeleteObject(cluster.KindCSINode, cluster.ObjectKey{Name: "late"})
	ask("and loses it", "late", "")
}

// Mutants: limits-hint-any-pod, limits-hint-any-update, limits-hint-any-attacher.
func TestNodeVolumeLimitsWakes(t *testing.T) {
	in, pl := cluster.NewIntake(), NewNodeVolumeLimits(fakeMigration{})
	gone := func(options ...podOption) Change { return Change{OldPod: in.Pod(pod("gone", options...))} }
	update := func(before, after *storagev1.CSINode) Change { return Change{OldObject: before, NewObject: after} }
	deleted, updated := Event{Resource: AssignedPod, Action: Delete}, Event{Resource: CSINodeObject, Action: Update}
	added, detached := Event{Resource: ClaimObject, Action: Add}, Event{Resource: AttachmentObject, Action: Delete}
	waiting := in.Pod(pod("waiting", mountsClaims("one"), mountsEphemeral))
	tellHints(t, pl, waiting, []hintStory{
		{"a CSINode comes", Event{Resource: CSINodeObject, Action: Add}, Change{}, QueueHint},
		{"a limit is raised", updated, update(csiNode("n", disk, 1), csiNode("n", disk, 2)), QueueHint},
		{"a limit is lowered", updated, update(csiNode("n", disk, 2), csiNode("n", disk, 1)), SkipHint},
		{"a limit stays", updated, update(csiNode("n", disk, 2), csiNode("n", disk, 2)), SkipHint},
		{"a driver comes", updated, update(csiNode("n"), csiNode("n", disk, 2)), QueueHint},
		{"a driver without a limit comes", updated, update(csiNode("n"), csiNode("n", disk, -1)), SkipHint},
		{"a limit is lifted", updated, update(csiNode("n", disk, 2), csiNode("n", disk, -1)), SkipHint},
		{"a pod with a claim goes", deleted, gone(onNode("n"), mountsClaims("c")), QueueHint},
		{"a pod with an ephemeral volume goes", deleted, gone(onNode("n"), mountsEphemeral), QueueHint},
		{"a pod with an in-tree disk goes", deleted, gone(onNode("n"), mountsEBS("vol", false)), QueueHint},
		{"a pod with a GCE disk, of which nobody knows", deleted, gone(onNode("n"), mountsGCE("pd", false)), SkipHint},
		{"a pod without volumes goes", deleted, gone(onNode("n")), SkipHint},
		{"a pod that was nowhere goes", deleted, gone(mountsClaims("c")), SkipHint},
		{"a pod that was nominated goes", deleted, gone(nominated("n"), mountsClaims("c")), QueueHint},
		{"the claim comes", added, Change{NewObject: storageClaim("one", "")}, QueueHint},
		{"that of the ephemeral volume", added, Change{NewObject: storageClaim("waiting-v1", "")}, QueueHint},
		{"another claim", added, Change{NewObject: storageClaim("two", "")}, SkipHint},
		{"a volume is detached", detached, Change{OldObject: attachment("a", "n", net, "pv")}, QueueHint},
	})
	listensTo(t, pl, Event{Resource: CSINodeObject, Action: Add}, Event{Resource: CSINodeObject, Action: Update}, Event{Resource: Pod, Action: Delete}, added, detached)
	tellHints(t, pl, in.Pod(pod("inline", mountsEBS("vol", false))), []hintStory{
		{"its driver detaches", detached, Change{OldObject: attachment("a", "n", ebsDriver, "pv")}, QueueHint},
		{"another driver detaches", detached, Change{OldObject: attachment("a", "n", net, "pv")}, SkipHint},
	})
	tellHints(t, pl, in.Pod(pod("broken", mountsEBS("bad", false))), []hintStory{
		{"a disk that cannot be read", detached, Change{OldObject: attachment("a", "n", net, "pv")}, QueueHint},
	})
	tellHints(t, pl, in.Pod(pod("ephemeral", mountsEphemeral)), []hintStory{
		{"an ephemeral volume alone", detached, Change{OldObject: attachment("a", "n", disk, "pv")}, SkipHint},
	})
}
