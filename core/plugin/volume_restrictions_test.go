// SPDX-License-Identifier: Apache-2.0

package plugin

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
)

const (
	noDisk   = "node(s) had no available disk"
	oncePod  = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
	gceDisk  = "gce"
	rbdImage = "rbd"
)

func mountsGCE(name string, readOnly bool) podOption {
	return mounts(v1.VolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: name, ReadOnly: readOnly}})
}

func mountsISCSI(iqn string, readOnly bool) podOption {
	return mounts(v1.VolumeSource{ISCSI: &v1.ISCSIVolumeSource{IQN: iqn, ReadOnly: readOnly}})
}

func mountsRBD(pool string, readOnly bool, monitors ...string) podOption {
	return mounts(v1.VolumeSource{RBD: &v1.RBDVolumeSource{CephMonitors: monitors, RBDPool: pool, RBDImage: rbdImage, ReadOnly: readOnly}})
}

// Which disks two pods on one node cannot share. Mutants: restrict-read-only-ebs, restrict-any-monitor,
// restrict-one-reader.
func TestVolumeRestrictionsKeepsDisksApart(t *testing.T) {
	for _, story := range []struct {
		name   string
		there  podOption
		wanted podOption
		fits   bool
	}{
		{"another disk", mountsGCE(gceDisk, false), mountsGCE("other", false), true},
		{"one GCE disk", mountsGCE(gceDisk, false), mountsGCE(gceDisk, false), false},
		{"one GCE disk, both read", mountsGCE(gceDisk, true), mountsGCE(gceDisk, true), true},
		{"one GCE disk, one writes", mountsGCE(gceDisk, true), mountsGCE(gceDisk, false), false},
		{"one EBS volume", mountsEBS("vol", false), mountsEBS("vol", false), false},
		{"one EBS volume, both read", mountsEBS("vol", true), mountsEBS("vol", true), false},
		{"another EBS volume", mountsEBS("vol", false), mountsEBS("other", false), true},
		{"one iSCSI target", mountsISCSI("iqn", false), mountsISCSI("iqn", true), false},
		{"one iSCSI target, both read", mountsISCSI("iqn", true), mountsISCSI("iqn", true), true},
		{"another kind", mountsISCSI("iqn", false), mountsGCE("iqn", false), true},
		{"one RBD image", mountsRBD("p", false, "a", "b"), mountsRBD("p", false, "b", "c"), false},
		{"one RBD image, both read", mountsRBD("p", true, "a"), mountsRBD("p", true, "a"), true},
		{"an RBD image of other monitors", mountsRBD("p", false, "a"), mountsRBD("p", false, "c"), true},
		{"an RBD image of another pool", mountsRBD("p", false, "a"), mountsRBD("q", false, "a"), true},
		{"an RBD image without monitors", mountsRBD("p", false), mountsRBD("p", false), true},
		{"no disk at all", mountsGCE(gceDisk, false), asks(), true},
	} {
		t.Run(story.name, func(t *testing.T) {
			there := pod("there", story.there, inNamespace("far"), onNode("n"))
			want := noDisk
			if story.fits {
				want = ""
			}
			w := newWorld().with(node("n"), node("empty"), there)
			if got := w.verdictOf(t, VolumeRestrictions{}, pod("p", story.wanted), "n"); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if got := w.verdictOf(t, VolumeRestrictions{}, pod("p", story.wanted), "empty"); got != "" {
				t.Errorf("got %q on an empty node", got)
			}
		})
	}
}

// A claim for one pod keeps others off all nodes. Mutants: restrict-all-modes, restrict-claim-unresolvable.
func TestVolumeRestrictionsKeepsClaimsForOnePod(t *testing.T) {
	w := newWorld().with(node("n"), node("m"), storageClaim("one", "", forOnePod), storageClaim("many", ""),
		storageClaim("idle", "", forOnePod), pod("there", mountsClaims("one", "many"), onNode("m")))
	for _, story := range []struct {
		name   string
		wanted podOption
		want   string
	}{
		{"a claim in use", mountsClaims("one"), oncePod},
		{"one of two in use", mountsClaims("idle", "one"), oncePod},
		{"a claim for many pods", mountsClaims("many"), ""},
		{"a claim that nobody uses", mountsClaims("idle"), ""},
		{"a claim that does not exist", mountsClaims("gone"), `!persistentvolumeclaim "gone" not found`},
		{"the first that does not exist", mountsClaims("one", "gone", "lost"), `!persistentvolumeclaim "gone" not found`},
		{"a claim without a name", mountsClaims(""), `!persistentvolumeclaim "" not found`},
		{"the disk comes first", func(p *v1.Pod) { mountsClaims("one")(p); mountsEBS("vol", false)(p) }, noDisk},
	} {
		t.Run(story.name, func(t *testing.T) {
			w.with(pod("disk", mountsEBS("vol", false), onNode("n")))
			if got := w.verdictOf(t, VolumeRestrictions{}, pod("p", story.wanted), "n"); got != story.want {
				t.Errorf("got %q, want %q", got, story.want)
			}
		})
	}
	if got := w.verdictOf(t, VolumeRestrictions{}, pod("p", mountsClaims("one"), inNamespace("far")), "n"); got != `!persistentvolumeclaim "one" not found` {
		t.Errorf("in another namespace: %q", got)
	}
	w.store.DeleteNode("m")
	if got := w.verdictOf(t, VolumeRestrictions{}, pod("p", mountsClaims("one")), "n"); got != "" {
		t.Errorf("the node of the pod with the claim is gone: got %q", got)
	}
}

// Pods that are supposed to come and go count once for each of their volumes, as upstream counts them. Mutant:
// restrict-once-per-pod.
func TestVolumeRestrictionsSupposes(t *testing.T) {
	there := pod("there", mountsClaims("one"), onNode("m"))
	w := newWorld().with(node("n"), node("m"), storageClaim("one", "", forOnePod), there)
	s, in := w.store.Snapshot(), w.intake
	f := VolumeRestrictions{}.PrepareFilter(s, in.Pod(pod("p", mountsClaims("one")))).Filter.(Supposing)
	n, _ := s.Find("n")
	ask := func(what, want string) {
		t.Helper()
		if got := wordsOf(f, f.Plain(s, s.View(n))); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	victim, twice, other := in.Pod(there), in.Pod(pod("twice", mountsClaims("one", "one"))), in.Pod(pod("other", mountsClaims("two")))
	ask("as it is", oncePod)
	f.RemovePod(s, victim, nil)
	ask("without its user", "")
	f.AddPod(s, other, nil)
	ask("with a pod that has nothing to do with it", "")
	f.AddPod(s, victim, nil)
	ask("with its user again", oncePod)
	f.AddPod(s, twice, nil)
	f.RemovePod(s, victim, nil)
	f.RemovePod(s, victim, nil)
	ask("with a pod that names it twice, less two that name it once", oncePod)
}

// Mutants: restrict-hint-ephemeral, restrict-hint-any-namespace.
func TestVolumeRestrictionsWakes(t *testing.T) {
	in := cluster.NewIntake()
	waiting := in.Pod(pod("waiting", mountsClaims("one"), mountsEBS("vol", false), mountsEphemeral))
	gone := func(options ...podOption) Change { return Change{OldPod: in.Pod(pod("gone", options...))} }
	deleted, added := Event{Resource: AssignedPod, Action: Delete}, Event{Resource: ClaimObject, Action: Add}
	tellHints(t, VolumeRestrictions{}, waiting, []hintStory{
		{"a pod with the claim goes", deleted, gone(mountsClaims("one")), QueueHint},
		{"a pod with the disk goes", deleted, gone(mountsEBS("vol", false)), QueueHint},
		{"one with another disk", deleted, gone(mountsEBS("other", false)), SkipHint},
		{"one with the disk in another namespace", deleted, gone(mountsEBS("vol", false), inNamespace("far")), SkipHint},
		{"one with a claim of that name in another namespace", deleted, gone(mountsClaims("one"), inNamespace("far")), SkipHint},
		{"one without volumes", deleted, gone(), SkipHint},
		{"a node comes", Event{Resource: NodeObject, Action: Add}, Change{}, QueueHint},
		{"the claim comes", added, Change{NewObject: storageClaim("one", "")}, QueueHint},
		{"another claim comes", added, Change{NewObject: storageClaim("two", "")}, SkipHint},
		{"the claim of an ephemeral volume comes", added, Change{NewObject: storageClaim("waiting-v2", "")}, SkipHint},
		{"a claim in another namespace comes", added, Change{NewObject: storageClaim("one", "", func(c *v1.PersistentVolumeClaim) { c.Namespace = "far" })}, SkipHint},
	})
	listensTo(t, VolumeRestrictions{}, Event{Resource: Pod, Action: Delete}, Event{Resource: NodeObject, Action: Add}, Event{Resource: ClaimObject, Action: Add})
}
