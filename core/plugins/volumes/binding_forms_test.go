// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/internal/nodematch"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

// randomBindingWorld has nodes in zones and racks, claims in every state, volumes and storage with capacity.
func randomBindingWorld(t *rapid.T, most int) *plugintest.Cluster {
	w := plugintest.NewCluster().With(storageClass("local", noProvisioner, later), storageClass("made", disk, later),
		allowing(allowing(storageClass("zonal", disk, later), zone, "a"), "rack", "b", "c"))
	if plugintest.Chance(t, 70, "told") {
		w.With(telling(disk))
	}
	for i := range rapid.IntRange(1, most).Draw(t, "nodes") {
		n := plugintest.Node(plugintest.NodeName(i))
		for _, key := range []string{zone, "rack"} {
			if plugintest.Chance(t, 80, key) {
				plugintest.Labels(key, plugintest.Pick(t, []string{"a", "b", "c"}, "value"))(n)
			}
		}
		w.With(n)
		if plugintest.Chance(t, 40, "CSINode") {
			c := csiNode(n.Name)
			c.Annotations = map[string]string{v1.MigratedPluginsAnnotationKey: plugintest.Pick(t, []string{"", ebsPlugin, ebsPlugin + "," + filePlugin}, "handed over")}
			w.With(c)
		}
	}
	for i := range 6 {
		pv := randomOffer(t, fmt.Sprint("pv", i))
		if plugintest.Chance(t, 20, "in-tree") {
			inTree(pv, v1.PersistentVolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: plugintest.Pick(t, []string{"vol", "vol", "bad"}, "disk")}})
		}
		w.With(pv)
	}
	for _, name := range someWants {
		c := randomWant(t, name)
		if plugintest.Chance(t, 30, "zonal") {
			ofClass("zonal")(c)
		}
		switch rapid.IntRange(0, 9).Draw(t, "state") {
		case 0, 1, 2:
			hasVolume(fmt.Sprint("pv", rapid.IntRange(0, 6).Draw(t, "volume")))(c)
		case 3:
			noteOnClaim(annSelectedNode, plugintest.NodeName(rapid.IntRange(0, 2).Draw(t, "selected")))(c)
		case 4:
			if plugintest.Chance(t, 10, "bad selector") {
				c.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "tier", Operator: "Near"}}}
			}
		}
		w.With(c)
	}
	for i := range rapid.IntRange(0, 4).Draw(t, "rooms") {
		w.With(randomRoom(t, fmt.Sprint("room", i)))
	}
	return w
}

func randomRoom(t *rapid.T, name string) *storagev1.CSIStorageCapacity {
	on := &metav1.LabelSelector{}
	for range rapid.IntRange(0, 2).Draw(t, "labels") {
		key := plugintest.Pick(t, []string{zone, "rack"}, "key")
		op := plugintest.Pick(t, []metav1.LabelSelectorOperator{metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn, metav1.LabelSelectorOpExists, metav1.LabelSelectorOpDoesNotExist}, "operator")
		r := metav1.LabelSelectorRequirement{Key: key, Operator: op}
		if op == metav1.LabelSelectorOpIn || op == metav1.LabelSelectorOpNotIn {
			r.Values = []string{plugintest.Pick(t, []string{"a", "b"}, "value")}
		}
		on.MatchExpressions = append(on.MatchExpressions, r)
	}
	if plugintest.Chance(t, 10, "nowhere") {
		on = nil
	}
	c := room(name, plugintest.Pick(t, []string{"made", "zonal"}, "class"), plugintest.Pick(t, []string{"", "1Gi", "2Gi"}, "free"), on)
	if plugintest.Chance(t, 20, "at most") {
		atMost(c, "1Gi")
	}
	return c
}

// The column form says what the plain form says, on whole clusters and on parts of them, and finds the same volumes; it
// meets an error where, and only where, the plain form meets one. That holds as the cluster changes. Mutants:
// volume-catalog-stale, and whatever is built into one form alone.
func propertyVolumeBinding(t *rapid.T) {
	w := randomBindingWorld(t, 150)
	pl := binding().WithMigration(movedDisks{}).(*VolumeBinding)
	for range rapid.IntRange(1, 3).Draw(t, "decisions") {
		var names []string
		for range rapid.IntRange(1, 3).Draw(t, "claims") {
			names = append(names, plugintest.Pick(t, someWants, "claim"))
		}
		s := w.Store.Snapshot()
		lo := cluster.NodeIdx(rapid.IntRange(0, s.Rows()-1).Draw(t, "row"))
		p := w.Intake.PendingPod(plugintest.Pod("p", mountsClaims(names...)))
		if f, ok := pl.PrepareFilter(s, p).Filter.(*volumeFilter); ok {
			scoresOf(t, s, pl, p, fitting(s, f))
			sameVolumeForms(t, s, f, 0, cluster.NodeIdx(s.Rows()))
			sameVolumeForms(t, s, f, lo, lo+1)
			sameVolumeForms(t, s, f, lo, cluster.NodeIdx(s.Rows()))
		}
		for range rapid.IntRange(0, 3).Draw(t, "changes") {
			changeBinding(t, w)
		}
	}
}

// fitting lists the rows that fit by the plain form.
func fitting(s cluster.Snapshot, f *volumeFilter) (rows []cluster.NodeIdx) {
	for n := range cluster.NodeIdx(s.Rows()) {
		if on, err := f.slowly(s, s.Node(n)); err == nil && on.code == plugin.Fit {
			rows = append(rows, n)
		}
	}
	return rows
}

// changeBinding does something small to a world.
func changeBinding(t *rapid.T, w *plugintest.Cluster) {
	name := fmt.Sprint("pv", rapid.IntRange(0, 7).Draw(t, "volume"))
	switch rapid.IntRange(0, 3).Draw(t, "change") {
	case 0:
		w.With(randomOffer(t, name))
	case 1:
		w.Store.DeleteObject(cluster.KindVolume, cluster.ObjectKey{Name: name})
	case 2:
		w.With(randomWant(t, plugintest.Pick(t, someWants, "claim")))
	case 3: // a decision that is undone
		w.Store.Begin()
		trial := w.Store.Trial()
		if pv, ok := cluster.Find[*v1.PersistentVolume](trial.Snapshot(), "", name); ok {
			is := pv.DeepCopy()
			claimedBy("w0", "uid-w0")(is)
			trial.AssumeObject(is)
		}
		if rapid.Bool().Draw(t, "taken back") {
			trial.Discard()
		} else {
			trial.Commit()
		}
		w.Store.Commit()
	}
}

// sameVolumeForms holds the column form against the plain form on rows lo to hi-1.
func sameVolumeForms(t *rapid.T, s cluster.Snapshot, f *volumeFilter, lo, hi cluster.NodeIdx) {
	f.err = nil
	for n := lo; n < hi; n++ {
		slow, err := f.slowly(s, s.Node(n))
		if err == nil {
			sameFinds(t, s, f, s.Node(n), slow)
			continue
		}
		f.Column(s, lo, hi, plugin.TagOf(1), make([]plugin.Verdict, s.Rows()))
		if f.Failed() == nil {
			t.Fatalf("the plain form fails on %s, the column form does not", s.NodeName(n))
		}
		return
	}
	plugintest.CheckForms(t, s, []plugintest.Prepared{{Name: f.pl.Name(), Filter: f}}, lo, hi)
	if f.Failed() != nil {
		t.Fatalf("the column form fails on rows %d to %d: %v", lo, hi, f.Failed())
	}
}

func TestVolumeBindingForms(t *testing.T) { rapid.Check(t, propertyVolumeBinding) }

// The index finds the first of the things whose rules a node satisfies, as trying them all does.
func TestLabelIndexFindsTheFirst(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var rules []*nodematch.Selector
		for range rapid.IntRange(0, 12).Draw(t, "things") {
			a := &v1.VolumeNodeAffinity{}
			if plugintest.Chance(t, 90, "required") {
				a.Required = &v1.NodeSelector{}
				for range rapid.IntRange(0, 2).Draw(t, "terms") {
					a.Required.NodeSelectorTerms = append(a.Required.NodeSelectorTerms, randomReach(t))
				}
			}
			and := volumeRules(a)
			rules = append(rules, &and)
		}
		n := &cluster.Node{Labels: map[string]string{zone: plugintest.Pick(t, []string{"a", "b"}, "zone")}}
		if plugintest.Chance(t, 70, "rack") {
			n.Labels["rack"] = plugintest.Pick(t, []string{"a", "c"}, "rack")
		}
		skipped := int32(rapid.IntRange(-1, 3).Draw(t, "skipped"))
		x, want := indexLabels(rules), int32(-1)
		for i := range rules {
			if rules[i].Matches(n) && int32(i) != skipped {
				want = int32(i)
				break
			}
		}
		if got := x.first(n, func(item int32) bool { return item == skipped }); got != want {
			t.Fatalf("got %d, want %d", got, want)
		}
	})
}
