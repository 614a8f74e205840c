// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/internal/nodematch"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
	"github.com/kumiki-scheduler/kumiki/record"
)

// Claims that hold a pod back wherever it could go. Mutants: volume-lost-usable, volume-deleted-usable,
// volume-owner-ignored, volume-immediate-ignored, volume-half-bound.
func TestVolumeBindingWaitsForClaims(t *testing.T) {
	lost := func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName, c.Status.Phase = "pv", v1.ClaimLost }
	leaving := func(c *v1.PersistentVolumeClaim) { c.DeletionTimestamp = &metav1.Time{} }
	w := plugintest.NewCluster().With(plugintest.Node("n"), offered("pv", "1Gi", "made"), storageClass("made", disk, later), storageClass("soon", disk, now),
		storageClass("unset", disk, ""),
		wants("bound", "1Gi", "made", hasVolume("pv")), wants("lost", "1Gi", "made", lost), wants("leaving", "1Gi", "made", hasVolume("pv"), leaving),
		wants("waiting", "1Gi", "made"), wants("soon", "1Gi", "soon"), wants("classless", "1Gi", ""), wants("unknown", "1Gi", "nowhere"),
		wants("unset", "1Gi", "unset"), wants("half", "1Gi", "made", func(c *v1.PersistentVolumeClaim) { c.Spec.VolumeName = "pv" }),
		wants("mine-v0", "1Gi", "made", hasVolume("pv"), ownedBy("uid-mine")), wants("other-v0", "1Gi", "made", hasVolume("pv"), ownedBy("uid-mine")),
		wants("stray-v0", "1Gi", "made", hasVolume("pv")))
	for _, story := range []struct {
		name string
		pod  *v1.Pod
		want string
	}{
		{"no claims", plugintest.Pod("p", mountsEBS("disk", false)), ""},
		{"bound", plugintest.Pod("p", mountsClaims("bound")), ""},
		{"bound twice", plugintest.Pod("p", mountsClaims("bound", "bound")), ""},
		{"no such claim", plugintest.Pod("p", mountsClaims("bound", "gone", "lost")), `!persistentvolumeclaim "gone" not found`},
		{"in another namespace", plugintest.Pod("p", mountsClaims("bound"), plugintest.InNamespace("else")), `!persistentvolumeclaim "bound" not found`},
		{"lost", plugintest.Pod("p", mountsClaims("lost", "gone")), `!persistentvolumeclaim "lost" bound to non-existent persistentvolume "pv"`},
		{"being deleted", plugintest.Pod("p", mountsClaims("leaving")), `!persistentvolumeclaim "leaving" is being deleted`},
		{"ephemeral", plugintest.Pod("mine", mountsEphemeral), ""},
		{"ephemeral, not made yet", plugintest.Pod("new", mountsEphemeral), `!waiting for ephemeral volume controller to create the persistentvolumeclaim "new-v0"`},
		{"ephemeral, of another pod", plugintest.Pod("other", mountsEphemeral), "!PVC ns/other-v0 was not created for pod ns/other (pod is not owner)"},
		{"ephemeral, of nobody", plugintest.Pod("stray", mountsEphemeral), "!PVC ns/stray-v0 was not created for pod ns/stray (pod is not owner)"},
		{"to be bound at once", plugintest.Pod("p", mountsClaims("soon")), unbound},
		{"without a class", plugintest.Pod("p", mountsClaims("classless")), unbound},
		{"of an unknown class", plugintest.Pod("p", mountsClaims("unknown")), unbound},
		{"half bound", plugintest.Pod("p", mountsClaims("waiting", "half")), unbound},
		{"of a class without a mode", plugintest.Pod("p", mountsClaims("soon", "unset")), `error: VolumeBindingMode not set for StorageClass "unset"`},
		{"waiting for the pod", plugintest.Pod("p", mountsClaims("waiting")), ""},
	} {
		t.Run(story.name, func(t *testing.T) {
			if got := w.Verdict(t, binding(), story.pod, "n"); got != story.want {
				t.Errorf("got %q, want %q", got, story.want)
			}
		})
	}
}

// From where bound volumes can be reached. Mutants: volume-reach-ignored, volume-name-counts.
func TestVolumeBindingReachesBoundVolumes(t *testing.T) {
	unnamed := plugintest.FieldTerm(plugintest.Expression(metav1.ObjectNameField, v1.NodeSelectorOpNotIn, "n"))
	both := within(zone, "b")
	both.MatchFields = plugintest.FieldTerm(plugintest.Expression(metav1.ObjectNameField, v1.NodeSelectorOpIn, "n")).MatchFields
	for _, story := range []struct {
		name string
		pv   *v1.PersistentVolume
		want string
	}{
		{"from everywhere", offered("pv", "1Gi", ""), ""},
		{"from this zone", offered("pv", "1Gi", "", only(within(zone, "a"))), ""},
		{"from another zone", offered("pv", "1Gi", "", only(within(zone, "b"))), outOfReach},
		{"from one of two places", offered("pv", "1Gi", "", only(within(zone, "b"), within("rack", "1"))), ""},
		{"from zone and rack", offered("pv", "1Gi", "", only(plugintest.Term(plugintest.Expression(zone, v1.NodeSelectorOpIn, "a"), plugintest.Expression("rack", v1.NodeSelectorOpNotIn, "1")))), outOfReach},
		{"from high racks", offered("pv", "1Gi", "", only(plugintest.Term(plugintest.Expression("rack", v1.NodeSelectorOpGt, "0")))), ""},
		{"no terms", offered("pv", "1Gi", "", only()), outOfReach},
		{"no requirement", offered("pv", "1Gi", "", func(pv *v1.PersistentVolume) { pv.Spec.NodeAffinity = &v1.VolumeNodeAffinity{} }), ""},
		{"an empty term", offered("pv", "1Gi", "", only(v1.NodeSelectorTerm{})), outOfReach},
		{"a term that does not parse", offered("pv", "1Gi", "", only(plugintest.Term(plugintest.Expression("rack", v1.NodeSelectorOpGt, "many")))), outOfReach},
		{"a broken term beside a good one", offered("pv", "1Gi", "", only(plugintest.Term(plugintest.Expression("rack", "Like", "1")), within(zone, "a"))), ""},
		{"a key that is none", offered("pv", "1Gi", "", only(within("not a key!", "a"))), outOfReach},
		{"by name: fields do not count", offered("pv", "1Gi", "", only(unnamed)), ""},
		{"by name and zone: the zone counts", offered("pv", "1Gi", "", only(both)), outOfReach},
		{"by a field that does not parse", offered("pv", "1Gi", "", only(plugintest.FieldTerm(plugintest.Expression("spec.x", v1.NodeSelectorOpExists)))), outOfReach},
	} {
		t.Run(story.name, func(t *testing.T) {
			w := plugintest.NewCluster().With(plugintest.Node("n", plugintest.Labels(zone, "a", "rack", "1")), story.pv, wants("c", "1Gi", "", hasVolume("pv")))
			if got := w.Verdict(t, binding(), plugintest.Pod("p", mountsClaims("c")), "n"); got != story.want {
				t.Errorf("one row: got %q, want %q", got, story.want)
			}
			for i := range nodematch.LongRange { // from here on the column form works on bitmaps
				w.With(plugintest.Node(plugintest.NodeName(int(i))))
			}
			if got := w.Verdict(t, binding(), plugintest.Pod("p", mountsClaims("c")), "n"); got != story.want {
				t.Errorf("many rows: got %q, want %q", got, story.want)
			}
		})
	}
}

// Of several bound claims the first that is in the way decides.
func TestVolumeBindingFirstBoundClaimDecides(t *testing.T) {
	w := plugintest.NewCluster().With(plugintest.Node("n"), offered("far", "1Gi", "", only(within(zone, "b"))), wants("far", "1Gi", "", hasVolume("far")), wants("gone", "1Gi", "", hasVolume("gone")))
	for _, story := range []struct {
		claims []string
		want   string
	}{
		{[]string{"gone"}, vanished},
		{[]string{"far", "gone"}, outOfReach},
		{[]string{"gone", "far"}, vanished},
	} {
		if got := w.Verdict(t, binding(), plugintest.Pod("p", mountsClaims(story.claims...)), "n"); got != story.want {
			t.Errorf("%v: got %q, want %q", story.claims, got, story.want)
		}
	}
}

// A bound volume and one that is sought can both be in the way.
func TestVolumeBindingTellsBothReasons(t *testing.T) {
	w := plugintest.NewCluster().With(plugintest.Node("n"), storageClass("local", noProvisioner, later), storageClass("made", disk, later), telling(disk),
		offered("far", "1Gi", "", only(within(zone, "b"))), wants("far", "1Gi", "", hasVolume("far")), wants("local", "1Gi", "local"), wants("made", "1Gi", "made"))
	for claim, want := range map[string]string{
		"local": outOfReach + ", " + nothingFound[1:],
		"made":  outOfReach + ", " + tooLittle[1:],
	} {
		if got := w.Verdict(t, binding(), plugintest.Pod("p", mountsClaims("far", claim)), "n"); got != want {
			t.Errorf("%s: got %q, want %q", claim, got, want)
		}
	}
}

// movedDisks knows EBS disks, which are reached by the driver's own label, and Azure files; see fakeMigration.
type movedDisks struct{ fakeMigration }

func (m movedDisks) Volume(pv *v1.PersistentVolume) (plugin.Migrated, bool) {
	moved, ok := m.fakeMigration.Volume(pv)
	if moved.PV != nil {
		only(within("topology.csi/zone", "a"))(moved.PV)
	}
	return moved, ok
}

// In-tree volumes count in their CSI form on nodes that have handed their kind over. Mutants: volume-migration-ignored,
// volume-migration-any-node, volume-migration-any-plugin.
func TestVolumeBindingMigration(t *testing.T) {
	ebs := func(id string) *v1.PersistentVolume {
		return inTree(offered(id, "1Gi", "", only(within(zone, "a"))), v1.PersistentVolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: id}})
	}
	handsOver := func(name, plugins string) *storagev1.CSINode {
		c := csiNode(name)
		c.Annotations = map[string]string{v1.MigratedPluginsAnnotationKey: plugins}
		return c
	}
	w := plugintest.NewCluster().With(plugintest.Node("old", plugintest.Labels(zone, "a")), plugintest.Node("kept", plugintest.Labels(zone, "a")), csiNode("kept"),
		plugintest.Node("moved", plugintest.Labels("topology.csi/zone", "a")), handsOver("moved", "kubernetes.io/gce-pd,"+ebsPlugin+","+filePlugin),
		plugintest.Node("beside", plugintest.Labels(zone, "a")), handsOver("beside", ebsPlugin),
		ebs("vol"), wants("vol", "1Gi", "", hasVolume("vol")), ebs("bad"), wants("bad", "1Gi", "", hasVolume("bad")),
		inTree(offered("share", "1Gi", "", only(within(zone, "a"))), v1.PersistentVolumeSource{AzureFile: &v1.AzureFilePersistentVolumeSource{}}),
		wants("share", "1Gi", "", hasVolume("share")))
	pl := binding().WithMigration(movedDisks{}).(*VolumeBinding)
	for _, story := range []struct{ name, claim, node, want string }{
		{"no CSINode", "vol", "old", ""},
		{"nothing handed over", "vol", "kept", ""},
		{"handed over, and there", "vol", "moved", ""},
		{"handed over, and elsewhere", "vol", "beside", outOfReach},
		{"cannot be translated, need not be", "bad", "kept", ""},
		{"cannot be translated", "bad", "moved", "error: could not translate pv: no such disk"},
		{"of a kind that counts as it is", "share", "moved", outOfReach},
	} {
		t.Run(story.name, func(t *testing.T) {
			if got := w.Verdict(t, pl, plugintest.Pod("p", mountsClaims(story.claim)), story.node); got != story.want {
				t.Errorf("got %q, want %q", got, story.want)
			}
		})
	}
	if got := w.Verdict(t, binding(), plugintest.Pod("p", mountsClaims("vol")), "moved"); got != outOfReach {
		t.Errorf("without a Migration: got %q, want %q", got, outOfReach)
	}
}

// Where volumes can be made. Mutants: volume-no-provisioner-makes, volume-topology-ignored, volume-selected-ignored.
func TestVolumeBindingMakesVolumes(t *testing.T) {
	odd := storageClass("odd", disk, later)
	odd.AllowedTopologies = []v1.TopologySelectorTerm{{}, {MatchLabelExpressions: []v1.TopologySelectorLabelRequirement{{Key: zone}}}}
	w := plugintest.NewCluster().With(plugintest.Node("n", plugintest.Labels(zone, "a")), plugintest.Node("m", plugintest.Labels(zone, "b")),
		storageClass("made", disk, later), storageClass("local", noProvisioner, later), storageClass("nobody", "", later),
		allowing(allowing(storageClass("zonal", disk, later), zone, "c"), zone, "a", "d"), odd,
		wants("made", "1Gi", "made"), wants("local", "1Gi", "local"), wants("nobody", "1Gi", "nobody"), wants("zonal", "1Gi", "zonal"),
		wants("odd", "1Gi", "odd"), wants("chosen", "1Gi", "made", noteOnClaim(annSelectedNode, "n")),
		wants("other", "1Gi", "made", noteOnClaim(annSelectedNode, "m")), wants("blank", "1Gi", "made", noteOnClaim(annSelectedNode, "")),
		wants("stuck", "1Gi", "local", noteOnClaim(annSelectedNode, "n")))
	for _, story := range []struct {
		claims []string
		on     string
		want   string
	}{
		{[]string{"made"}, "n", ""},
		{[]string{"made", "made"}, "n", ""},
		{[]string{"local"}, "n", nothingFound},
		{[]string{"nobody"}, "n", nothingFound},
		{[]string{"made", "local"}, "n", nothingFound},
		{[]string{"zonal"}, "n", ""},
		{[]string{"zonal"}, "m", nothingFound},
		{[]string{"odd"}, "n", nothingFound},
		{[]string{"chosen"}, "n", ""},
		{[]string{"chosen"}, "m", nothingFound},
		{[]string{"chosen", "other"}, "n", nothingFound},
		{[]string{"chosen", "other"}, "m", nothingFound},
		{[]string{"blank"}, "n", nothingFound},
		{[]string{"stuck"}, "n", nothingFound},
	} {
		if got := w.Verdict(t, binding(), plugintest.Pod("p", mountsClaims(story.claims...)), story.on); got != story.want {
			t.Errorf("%v on %s: got %q, want %q", story.claims, story.on, got, story.want)
		}
	}
}

// Whether there is capacity to make a volume. Mutants: volume-capacity-ignored, volume-maximum-ignored.
func TestVolumeBindingChecksRoom(t *testing.T) {
	sizeless := wants("sizeless", "1Gi", "c", func(c *v1.PersistentVolumeClaim) { c.Spec.Resources.Requests = nil })
	mute := &storagev1.CSIDriver{ObjectMeta: metav1.ObjectMeta{Name: disk}}
	broken := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: zone, Operator: "Near"}}}
	notB := &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
		{Key: zone, Operator: metav1.LabelSelectorOpNotIn, Values: []string{"b"}}, {Key: "lone", Operator: metav1.LabelSelectorOpDoesNotExist},
		{Key: zone, Operator: metav1.LabelSelectorOpExists}, {Key: zone, Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "c"}}}}
	for _, story := range []struct {
		name  string
		claim *v1.PersistentVolumeClaim
		given []any
		want  string
	}{
		{"the driver is unknown", wants("c", "10Gi", "c"), nil, ""},
		{"the driver does not tell", wants("c", "10Gi", "c"), []any{mute}, ""},
		{"nobody knows of any", wants("c", "10Gi", "c"), []any{telling(disk)}, tooLittle},
		{"the claim names no size", sizeless, []any{telling(disk)}, ""},
		{"just enough", wants("c", "10Gi", "c"), []any{telling(disk), room("r", "c", "10Gi", where(zone, "a"))}, ""},
		{"too little", wants("c", "10Gi", "c"), []any{telling(disk), room("r", "c", "9Gi", where(zone, "a"))}, tooLittle},
		{"of another class", wants("c", "10Gi", "c"), []any{telling(disk), room("r", "d", "10Gi", where(zone, "a"))}, tooLittle},
		{"elsewhere", wants("c", "10Gi", "c"), []any{telling(disk), room("r", "c", "10Gi", where(zone, "b"))}, tooLittle},
		{"here, after others", wants("c", "10Gi", "c"), []any{telling(disk), room("q", "c", "1Gi", where(zone, "a")), room("r", "c", "10Gi", where(zone, "b")),
			room("s", "c", "10Gi", where(zone, "a"))}, ""},
		{"everywhere", wants("c", "10Gi", "c"), []any{telling(disk), room("r", "c", "10Gi", &metav1.LabelSelector{})}, ""},
		{"nowhere", wants("c", "10Gi", "c"), []any{telling(disk), room("r", "c", "10Gi", nil)}, tooLittle},
		{"by expressions", wants("c", "10Gi", "c"), []any{telling(disk), room("r", "c", "10Gi", notB)}, ""},
		{"for a selector that is none", wants("c", "10Gi", "c"), []any{telling(disk), room("r", "c", "10Gi", broken)}, tooLittle},
		{"unknown how much", wants("c", "10Gi", "c"), []any{telling(disk), room("r", "c", "", where(zone, "a"))}, tooLittle},
		{"much, in small volumes", wants("c", "10Gi", "c"), []any{telling(disk), atMost(room("r", "c", "100Gi", where(zone, "a")), "5Gi")}, tooLittle},
		{"the maximum is all that counts", wants("c", "10Gi", "c"), []any{telling(disk), atMost(room("r", "c", "1Gi", where(zone, "a")), "10Gi")}, ""},
	} {
		t.Run(story.name, func(t *testing.T) {
			w := plugintest.NewCluster().With(plugintest.Node("n", plugintest.Labels(zone, "a")), storageClass("c", disk, later), story.claim).With(story.given...)
			if got := w.Verdict(t, binding(), plugintest.Pod("p", mountsClaims(story.claim.Name)), "n"); got != story.want {
				t.Errorf("got %q, want %q", got, story.want)
			}
		})
	}
}

// A selector that does not convert fails the attempt, but only where volumes are sought at all.
func TestVolumeBindingBadSelector(t *testing.T) {
	bad := wants("bad", "1Gi", "local", func(c *v1.PersistentVolumeClaim) {
		c.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Near"}}}
	})
	w := plugintest.NewCluster().With(plugintest.Node("n"), plugintest.Node("m"), storageClass("local", noProvisioner, later), storageClass("made", disk, later), bad,
		wants("chosen", "1Gi", "made", noteOnClaim(annSelectedNode, "m")))
	failure := `error: error creating internal label selector for claim: ns/bad: "Near" is not a valid label selector operator`
	for _, story := range []struct {
		claims   []string
		on, want string
	}{
		{[]string{"bad"}, "n", failure},
		{[]string{"bad", "chosen"}, "n", nothingFound},
		{[]string{"bad", "chosen"}, "m", failure},
	} {
		if got := w.Verdict(t, binding(), plugintest.Pod("p", mountsClaims(story.claims...)), story.on); got != story.want {
			t.Errorf("%v on %s: got %q, want %q", story.claims, story.on, got, story.want)
		}
	}
	s := w.Store.Snapshot()
	f := binding().PrepareFilter(s, w.Intake.PendingPod(plugintest.Pod("p", mountsClaims("bad")))).Filter
	f.Column(s, 0, cluster.NodeIdx(s.Rows()), plugin.TagOf(1), []plugin.Verdict{plugin.NoNode, plugin.Excluded})
	if err := f.(plugin.Failing).Failed(); err != nil {
		t.Errorf("no row was asked about, and yet: %v", err)
	}
}

// Arguments that upstream refuses are refused.
func TestVolumeBindingArguments(t *testing.T) {
	for _, args := range []VolumeBindingArgs{{BindTimeout: -record.Second},
		{Shape: []plugin.ShapePoint{{Utilization: 100, Score: 0}, {Utilization: 0, Score: 10}}}} {
		if pl, err := NewVolumeBinding(args); err == nil || pl != nil {
			t.Errorf("%+v: %v, %v", args, pl, err)
		}
	}
	if binding().timeout != 600*record.Second {
		t.Errorf("volumes may take %d by default", binding().timeout)
	}
}

// The advice names the pod's claims.
func TestVolumeBindingAdvice(t *testing.T) {
	p := plugintest.NewCluster().Intake.PendingPod(plugintest.Pod("p", mountsClaims("data"), mountsEBS("disk", false), mountsEphemeral))
	remedy := record.Remedy{Node: "n"}
	binding().Advise(nil, p, &remedy)
	if want := "provide volumes that n can reach for the pod's claims (data, p-v2)"; remedy.Do != want {
		t.Errorf("got %q, want %q", remedy.Do, want)
	}
}
