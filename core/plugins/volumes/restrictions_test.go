// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"testing"

	v1 "k8s.io/api/core/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster/convert"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

const (
	noDisk   = "node(s) had no available disk"
	oncePod  = "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
	gceDisk  = "gce"
	rbdImage = "rbd"
)

func mountsGCE(name string, readOnly bool) plugintest.PodOption {
	return mounts(v1.VolumeSource{GCEPersistentDisk: &v1.GCEPersistentDiskVolumeSource{PDName: name, ReadOnly: readOnly}})
}

func mountsISCSI(iqn string, readOnly bool) plugintest.PodOption {
	return mounts(v1.VolumeSource{ISCSI: &v1.ISCSIVolumeSource{IQN: iqn, ReadOnly: readOnly}})
}

func mountsRBD(pool string, readOnly bool, monitors ...string) plugintest.PodOption {
	return mounts(v1.VolumeSource{RBD: &v1.RBDVolumeSource{CephMonitors: monitors, RBDPool: pool, RBDImage: rbdImage, ReadOnly: readOnly}})
}

// Which disks two pods on one node cannot share. Mutants: restrict-read-only-ebs, restrict-any-monitor,
// restrict-one-reader.
func TestVolumeRestrictionsKeepsDisksApart(t *testing.T) {
	for _, story := range []struct {
		name   string
		there  plugintest.PodOption
		wanted plugintest.PodOption
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
		{"no disk at all", mountsGCE(gceDisk, false), plugintest.Requests(), true},
	} {
		t.Run(story.name, func(t *testing.T) {
			there := plugintest.Pod("there", story.there, plugintest.InNamespace("far"), plugintest.OnNode("n"))
			want := noDisk
			if story.fits {
				want = ""
			}
			w := plugintest.NewCluster().With(plugintest.Node("n"), plugintest.Node("empty"), there)
			if got := w.Verdict(t, VolumeRestrictions{}, plugintest.Pod("p", story.wanted), "n"); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if got := w.Verdict(t, VolumeRestrictions{}, plugintest.Pod("p", story.wanted), "empty"); got != "" {
				t.Errorf("got %q on an empty node", got)
			}
		})
	}
}

// A claim for one pod keeps others off all nodes. Mutants: restrict-all-modes, restrict-claim-unresolvable.
func TestVolumeRestrictionsKeepsClaimsForOnePod(t *testing.T) {
	w := plugintest.NewCluster().With(plugintest.Node("n"), plugintest.Node("m"), storageClaim("one", "", forOnePod), storageClaim("many", ""),
		storageClaim("idle", "", forOnePod), plugintest.Pod("there", mountsClaims("one", "many"), plugintest.OnNode("m")))
	for _, story := range []struct {
		name   string
		wanted plugintest.PodOption
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
			w.With(plugintest.Pod("disk", mountsEBS("vol", false), plugintest.OnNode("n")))
			if got := w.Verdict(t, VolumeRestrictions{}, plugintest.Pod("p", story.wanted), "n"); got != story.want {
				t.Errorf("got %q, want %q", got, story.want)
			}
		})
	}
	if got := w.Verdict(t, VolumeRestrictions{}, plugintest.Pod("p", mountsClaims("one"), plugintest.InNamespace("far")), "n"); got != `!persistentvolumeclaim "one" not found` {
		t.Errorf("in another namespace: %q", got)
	}
	w.Store.DeleteNode("m")
	if got := w.Verdict(t, VolumeRestrictions{}, plugintest.Pod("p", mountsClaims("one")), "n"); got != "" {
		t.Errorf("the node of the pod with the claim is gone: got %q", got)
	}
}

// Pods that are supposed to come and go count once for each of their volumes, as upstream counts them. Mutant:
// restrict-once-per-pod.
func TestVolumeRestrictionsSupposes(t *testing.T) {
	there := plugintest.Pod("there", mountsClaims("one"), plugintest.OnNode("m"))
	w := plugintest.NewCluster().With(plugintest.Node("n"), plugintest.Node("m"), storageClaim("one", "", forOnePod), there)
	s, in := w.Store.Snapshot(), w.Intake
	f := VolumeRestrictions{}.PrepareFilter(s, in.Pod(plugintest.Pod("p", mountsClaims("one")))).Filter.(plugin.Supposing)
	n, _ := s.Find("n")
	ask := func(what, want string) {
		t.Helper()
		if got := plugintest.CodeText(f, f.Plain(s, s.View(n))); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	victim, twice, other := in.Pod(there), in.Pod(plugintest.Pod("twice", mountsClaims("one", "one"))), in.Pod(plugintest.Pod("other", mountsClaims("two")))
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
	in := convert.NewIntake()
	waiting := in.Pod(plugintest.Pod("waiting", mountsClaims("one"), mountsEBS("vol", false), mountsEphemeral))
	gone := func(options ...plugintest.PodOption) plugin.Change {
		return plugin.Change{OldPod: in.Pod(plugintest.Pod("gone", options...))}
	}
	deleted, added := plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Delete}, plugin.Event{Resource: plugin.ClaimObject, Action: plugin.Add}
	plugintest.CheckHints(t, VolumeRestrictions{}, waiting, []plugintest.HintCase{
		{Name: "a pod with the claim goes", Event: deleted, Change: gone(mountsClaims("one")), Want: plugin.QueueHint},
		{Name: "a pod with the disk goes", Event: deleted, Change: gone(mountsEBS("vol", false)), Want: plugin.QueueHint},
		{Name: "one with another disk", Event: deleted, Change: gone(mountsEBS("other", false)), Want: plugin.SkipHint},
		{Name: "one with the disk in another namespace", Event: deleted, Change: gone(mountsEBS("vol", false), plugintest.InNamespace("far")), Want: plugin.SkipHint},
		{Name: "one with a claim of that name in another namespace", Event: deleted, Change: gone(mountsClaims("one"), plugintest.InNamespace("far")), Want: plugin.SkipHint},
		{Name: "one without volumes", Event: deleted, Change: gone(), Want: plugin.SkipHint},
		{Name: "a node comes", Event: plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}, Change: plugin.Change{}, Want: plugin.QueueHint},
		{Name: "the claim comes", Event: added, Change: plugin.Change{NewObject: storageClaim("one", "")}, Want: plugin.QueueHint},
		{Name: "another claim comes", Event: added, Change: plugin.Change{NewObject: storageClaim("two", "")}, Want: plugin.SkipHint},
		{Name: "the claim of an ephemeral volume comes", Event: added, Change: plugin.Change{NewObject: storageClaim("waiting-v2", "")}, Want: plugin.SkipHint},
		{Name: "a claim in another namespace comes", Event: added, Change: plugin.Change{NewObject: storageClaim("one", "", func(c *v1.PersistentVolumeClaim) { c.Namespace = "far" })}, Want: plugin.SkipHint},
	})
	plugintest.CheckEvents(t, VolumeRestrictions{}, plugin.Event{Resource: plugin.AssignedPod, Action: plugin.Delete}, plugin.Event{Resource: plugin.NodeObject, Action: plugin.Add}, plugin.Event{Resource: plugin.ClaimObject, Action: plugin.Add})
}
