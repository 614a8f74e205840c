// SPDX-License-Identifier: Apache-2.0

package volumes

import (
	"fmt"
	"testing"

	v1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"pgregory.net/rapid"

	"github.com/kumiki-scheduler/kumiki/core/cluster"
	"github.com/kumiki-scheduler/kumiki/core/plugin"
	"github.com/kumiki-scheduler/kumiki/core/plugins/basic"
	"github.com/kumiki-scheduler/kumiki/internal/plugintest"
)

// The words of random clusters with volumes: few, so that they meet.
var (
	someClaims  = []string{"c0", "c1", "c2", "c3", "c4", "gone"}
	someDrivers = []string{disk, net, ebsDriver, fileDriver}
	someDisks   = []string{"vol-a", "vol-b", "bad"}
	somePlaces  = []string{"a", "b", "a__b", "a__", "c"}
)

func randomVolumes(t *rapid.T, p *v1.Pod) *v1.Pod {
	for range rapid.IntRange(0, 3).Draw(t, "volumes") {
		read := rapid.Bool().Draw(t, "read only")
		name := plugintest.Pick(t, someDisks, "disk")
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			mountsEphemeral(p)
		case 1:
			if name != "bad" || plugintest.Chance(t, 20, "bad") {
				mountsEBS(name, read)(p)
			}
		case 2:
			mountsGCE(name, read)(p)
		case 3:
			mountsRBD("pool", read, name)(p)
		case 4:
			mountsFile(p)
		case 5:
			if plugintest.Chance(t, 10, "nameless") {
				mountsClaims("")(p)
			}
		default:
			mountsClaims(plugintest.Pick(t, someClaims, "claim"))(p)
		}
	}
	return p
}

func randomClaim(t *rapid.T, name string) *v1.PersistentVolumeClaim {
	c := storageClaim(name, "")
	if plugintest.Chance(t, 60, "bound") {
		c.Spec.VolumeName = plugintest.Pick(t, []string{"pv0", "pv1", "pv2", "pv3", "pv-gone"}, "volume")
	}
	if plugintest.Chance(t, 70, "class") {
		ofClass(plugintest.Pick(t, []string{"now", "later", "ebs", "file", "gone"}, "class"))(c)
	}
	if plugintest.Chance(t, 30, "for one pod") {
		forOnePod(c)
	}
	return c
}

func randomVolume(t *rapid.T, name string) *v1.PersistentVolume {
	pv := volume(name, plugintest.Pick(t, append(someDrivers, ""), "driver"))
	switch rapid.IntRange(0, 4).Draw(t, "in-tree") {
	case 0:
		inTree(pv, v1.PersistentVolumeSource{AWSElasticBlockStore: &v1.AWSElasticBlockStoreVolumeSource{VolumeID: plugintest.Pick(t, someDisks, "disk")}})
	case 1:
		inTree(pv, v1.PersistentVolumeSource{AzureFile: &v1.AzureFilePersistentVolumeSource{}})
	}
	for _, label := range zoneLabels {
		if plugintest.Chance(t, 20, label) {
			pv.Labels[label] = plugintest.Pick(t, somePlaces, "place")
		}
	}
	return pv
}

func randomCSINode(t *rapid.T, name string) *storagev1.CSINode {
	c := csiNode(name)
	for _, driver := range someDrivers {
		if plugintest.Chance(t, 70, driver) {
			c.Spec.Drivers = append(c.Spec.Drivers, csiNode("", driver, rapid.IntRange(-1, 4).Draw(t, "limit")).Spec.Drivers...)
		}
	}
	return c
}

// randomVolumeWorld has nodes in zones, with what their drivers can attach, claims, volumes, and pods that use them.
func randomVolumeWorld(t *rapid.T, most int) (w *plugintest.Cluster, nodes int) {
	w, nodes = plugintest.NewCluster(), rapid.IntRange(1, most).Draw(t, "nodes")
	w.With(storageClass("now", disk, storagev1.VolumeBindingImmediate), storageClass("later", net, storagev1.VolumeBindingWaitForFirstConsumer),
		storageClass("ebs", ebsPlugin, storagev1.VolumeBindingWaitForFirstConsumer), storageClass("file", filePlugin, storagev1.VolumeBindingWaitForFirstConsumer))
	for _, driver := range []string{disk, net} {
		if plugintest.Chance(t, 20, "needed") {
			w.With(needed(driver, true))
		}
	}
	var kinds []*v1.Node
	for range rapid.IntRange(1, 5).Draw(t, "kinds") {
		n := plugintest.Node("")
		for _, l := range zoneLabels {
			if plugintest.Chance(t, 30, l) {
				plugintest.Labels(l, plugintest.Pick(t, []string{"a", "b", "c", ""}, "place"))(n)
			}
		}
		plugintest.Features(rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"A", "B", "C"}), 0, 3, rapid.ID[string]).Draw(t, "features")...)(n)
		kinds = append(kinds, n)
	}
	for i := range nodes {
		n := plugintest.Pick(t, kinds, "kind").DeepCopy()
		n.Name = plugintest.NodeName(i)
		w.With(n)
		if i < 6 && plugintest.Chance(t, 80, "CSINode") {
			w.With(randomCSINode(t, n.Name))
		}
	}
	for _, name := range someClaims[:5] {
		w.With(randomClaim(t, name))
	}
	for i := range 4 {
		w.With(randomVolume(t, fmt.Sprint("pv", i)))
	}
	for i := range rapid.IntRange(0, 8).Draw(t, "pods") {
		changeVolumes(t, w, nodes, 3, fmt.Sprint("bound", i))
	}
	return w, nodes
}

// changeVolumes does something small to a world; kind 3 binds a pod of that name.
func changeVolumes(t *rapid.T, w *plugintest.Cluster, nodes, kind int, name string) {
	on := plugintest.NodeName(rapid.IntRange(0, min(nodes, 7)).Draw(t, "on")) // perhaps one that does not exist
	switch kind {
	case 0:
		w.With(randomClaim(t, plugintest.Pick(t, someClaims[:5], "claim")))
	case 1:
		w.With(randomVolume(t, fmt.Sprint("pv", rapid.IntRange(0, 3).Draw(t, "pv"))))
	case 2:
		w.With(randomCSINode(t, on))
	case 3:
		p := randomVolumes(t, plugintest.Pod(name, plugintest.OnNode(on)))
		w.With(p)
		for i := range p.Spec.Volumes {
			if p.Spec.Volumes[i].Ephemeral == nil || plugintest.Chance(t, 20, "no claim yet") {
				continue
			}
			c := randomClaim(t, name+"-"+p.Spec.Volumes[i].Name)
			if !plugintest.Chance(t, 10, "of somebody else") {
				ownedBy("uid-" + name)(c)
			}
			w.With(c)
		}
	case 4:
		w.With(attachment(fmt.Sprint("va", rapid.IntRange(0, 5).Draw(t, "attachment")), on,
			plugintest.Pick(t, append(someDrivers, ""), "driver"), plugintest.Pick(t, []string{"pv0", "pv1", "pv2", "pv3", ""}, "volume")))
	case 5:
		w.Store.DeleteNode(on)
	case 6:
		w.Store.DeletePod(cluster.UID(fmt.Sprint("uid-bound", rapid.IntRange(0, 8).Draw(t, "gone"))))
	case 7:
		w.Store.DeleteObject(cluster.KindAttachment, cluster.ObjectKey{Name: fmt.Sprint("va", rapid.IntRange(0, 5).Draw(t, "attachment"))})
	}
}

// A column form says what the plain form says of each row, errors included, before and after the cluster changes; on
// many rows and on one. Mutants: limits-special-free, limits-column-blind, zone-column-heir-only, and every other that
// is built into one form alone.
func propertyVolumeForms(t *rapid.T) {
	w, nodes := randomVolumeWorld(t, 300)
	limits := NewNodeVolumeLimits(fakeMigration{})
	for step := range 4 {
		s := w.Store.Snapshot()
		p := w.Intake.Pod(randomVolumes(t, plugintest.Pod("pending")))
		if features := rapid.SampledFrom([][]string{nil, {"A"}, {"A", "C"}}).Draw(t, "needs"); features != nil {
			p = plugintest.NeedsFeatures(p, features...)
		}
		for _, pl := range []plugin.Filter{VolumeRestrictions{}, limits, VolumeZone{}, basic.NodeDeclaredFeatures{}} {
			f := pl.PrepareFilter(s, p).Filter
			if f == nil {
				continue
			}
			rows := cluster.NodeIdx(s.Rows())
			lo := cluster.NodeIdx(rapid.IntRange(0, int(rows)-1).Draw(t, "from"))
			plugintest.CheckForms(t, s, []plugintest.Prepared{{Name: pl.Name(), Filter: f}}, 0, rows)
			plugintest.CheckForms(t, s, []plugintest.Prepared{{Name: pl.Name(), Filter: f}}, lo, rows)
			for n := range min(rows, 8) {
				if s.Node(n) == nil {
					continue
				}
				plain := plugintest.CodeText(f, f.Plain(s, s.View(n)))
				out := make([]plugin.Verdict, rows)
				f.Column(s, n, n+1, plugin.TagOf(0), out)
				if column := plugintest.CodeText(f, out[n].Code()); column != plain {
					t.Fatalf("%s on row %d: column %q, plain %q", pl.Name(), n, column, plain)
				}
			}
		}
		changeVolumes(t, w, nodes, rapid.IntRange(0, 7).Draw(t, "change"), fmt.Sprint("late", step))
	}
}

func TestVolumeColumnsSayWhatPlainFormsSay(t *testing.T) { rapid.Check(t, propertyVolumeForms) }

// What is supposed to come and go in any order leaves no trace once it has gone and come again.
func TestSupposedVolumesLeaveNoTrace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, _ := randomVolumeWorld(t, 4)
		s := w.Store.Snapshot()
		f, ok := VolumeRestrictions{}.PrepareFilter(s, w.Intake.Pod(randomVolumes(t, plugintest.Pod("pending")))).Filter.(*restrictionFilter)
		if !ok {
			return
		}
		before, others := f.used, []*cluster.Pod{}
		for i := range rapid.IntRange(1, 4).Draw(t, "others") {
			others = append(others, w.Intake.Pod(randomVolumes(t, plugintest.Pod(fmt.Sprint("other", i)))))
			f.AddPod(s, others[i], nil)
		}
		for _, other := range rapid.Permutation(others).Draw(t, "order") {
			f.RemovePod(s, other, nil)
		}
		if f.used != before {
			t.Fatalf("%d uses of the claims, at first there were %d", f.used, before)
		}
	})
}
